"""Whether the engine is there: Kueue's kinds, in the version that we write."""

from gpufair.api.kinds import KUEUE_GROUP, Resource
from gpufair.cluster.client import Client
from gpufair.plan.conditions import FALSE, TRUE, Condition

_TYPE = "EngineAvailable"
_INSTALL = "install Kueue 0.17 or later (https://kueue.sigs.k8s.io/docs/installation/)"


async def engine_condition(client: Client, absent: list[Resource]) -> Condition:
    """Return `EngineAvailable`, given the kinds that informers found absent."""
    missing = [resource for resource in absent if resource.group == KUEUE_GROUP]
    if not missing:
        return Condition(_TYPE, TRUE, "KueueServed", "Kueue's API v1beta2 is served.")
    group = await client.discover(KUEUE_GROUP)
    if group is None:
        message = f"The cluster has no Kueue: {_INSTALL}; the policy is applied once it is there."
        return Condition(_TYPE, FALSE, "KueueNotInstalled", message)
    kinds = ", ".join(sorted(resource.kind for resource in missing))
    message = (
        f"Kueue serves {', '.join(group.versions)} but not {missing[0].version} of {kinds}: "
        f"{_INSTALL}; the policy is applied once it is there."
    )
    return Condition(_TYPE, FALSE, "KueueTooOld", message)
