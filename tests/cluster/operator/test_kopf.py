"""`kopf run -m gpufair.handlers` is an operator, too."""

from gpufair.api.kinds import LEASE

from .conftest import OperatorFactory
from .kit.kube import Kube
from .kit.policies import pair
from .kit.process import NAMESPACE
from .kit.space import Space


def test_kopf_run(space: Space, kube: Kube, new_operator: OperatorFactory) -> None:
    p = space.prefix
    made = pair(p)
    space.namespaces_of(made)
    operator = new_operator(kopf=True).start()
    space.ready(made)
    space.job(f"{p}-a", "train", 4, tier=f"{p}-prod")
    space.admitted(f"{p}-a", "train")
    # Kopf keeps nothing of its own on a policy.
    metadata = space.policy(p)["metadata"]
    assert metadata["finalizers"] == ["gpufair.io/objects"]
    assert "annotations" not in metadata
    assert operator.stop() == 0
    assert kube.get(LEASE, "gpufair", NAMESPACE)["spec"]["holderIdentity"] == ""
