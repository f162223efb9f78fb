"""status: what is shown of a policy, for people and for programs."""

import json
from typing import Any

import pytest
from rich.console import Console

from gpufair.api.kinds import GPU_SCHEDULING_POLICY, Resource
from gpufair.cli.status import read, show, tenant_table, tier_table, view
from gpufair.cluster.errors import ApiError
from gpufair.errors import GpufairError
from tests.unit.builders import GPU, Json


def condition(type_: str, status: str, message: str = "m") -> Json:
    return {"type": type_, "status": status, "reason": "Why", "message": message}


def stored(name: str = "pool", **status: Any) -> Json:
    return {"metadata": {"name": name}, "status": status}


class Server:
    """Lists policies, or refuses to."""

    def __init__(self, *policies: Json, refusal: ApiError | None = None) -> None:
        self._policies = list(policies)
        self._refusal = refusal

    async def list_all(self, resource: Resource) -> list[Json]:
        assert resource is GPU_SCHEDULING_POLICY
        if self._refusal is not None:
            raise self._refusal
        return self._policies


def text(shown: Any) -> str:
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        console.print(shown)
    return capture.get()


async def test_all_policies_come_by_name() -> None:
    found = await read(Server(stored("b"), stored("a")), None)
    assert [raw["metadata"]["name"] for raw in found] == ["a", "b"]


async def test_one_policy_by_its_name() -> None:
    found = await read(Server(stored("b"), stored("a")), "b")
    assert [raw["metadata"]["name"] for raw in found] == ["b"]


async def test_a_name_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(GpufairError, match="no policy 'c' on the cluster; there is: a, b"):
        await read(Server(stored("a"), stored("b")), "c")
    with pytest.raises(GpufairError, match="there is: none"):
        await read(Server(), "c")


async def test_without_the_crd_it_says_how_to_install_it() -> None:
    with pytest.raises(GpufairError, match=r"gpufair crd \| kubectl apply") as caught:
        await read(Server(refusal=ApiError(404, "NotFound")), None)
    assert caught.value.exit_code == 2


async def test_other_refusals_are_told_as_they_are() -> None:
    with pytest.raises(ApiError, match="403"):
        await read(Server(refusal=ApiError(403, "Forbidden")), None)


@pytest.mark.parametrize("output", [None, "json"])
def test_in_a_pipe_it_is_json(output: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    show([stored("a", utilization="50.0%"), {"metadata": {"name": "new"}}], output)
    assert json.loads(capsys.readouterr().out) == [
        {"name": "a", "utilization": "50.0%"},
        {"name": "new"},
    ]


def test_a_table_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    show([], "table")
    assert capsys.readouterr().out == "There is no policy on the cluster.\n"


def test_the_head_shows_ready_and_what_is_not_as_it_should_be() -> None:
    shown = text(
        view(
            stored(
                utilization="50.0%",
                worstShareError="1.0%",
                conditions=[
                    condition("Ready", "True", "is-ready"),
                    condition("Valid", "True", "is-valid"),
                    condition("Supported", "False", "not-supported"),
                    condition("Conflict", "False", "no-conflict"),
                    condition("Suspended", "True", "is-suspended"),
                    condition("FairSharingActive", "Unknown", "who-knows"),
                ],
                activeWindows=["day", "night"],
                nextTransitionTime="2026-12-01T17:00:00Z",
            )
        )
    )
    assert "pool  utilization 50.0%  worst share error 1.0%" in shown
    assert "active windows: day, night" in shown
    assert "next transition: 2026-12-01T17:00:00Z" in shown
    for there in ("is-ready", "not-supported", "is-suspended", "who-knows"):
        assert there in shown
    for absent in ("is-valid", "no-conflict"):
        assert absent not in shown


def test_a_policy_without_status_can_be_shown() -> None:
    assert "pool  utilization -" in text(view({"metadata": {"name": "pool"}}))


def row(found: str, name: str) -> list[str]:
    return next(line.split() for line in found.splitlines() if line.strip().startswith(name))


TENANT = {
    "name": "nlp",
    "weight": 2.0,
    "nominal": {GPU: "4"},
    "used": {GPU: "6"},
    "borrowed": {GPU: "2"},
    "pending": {},
    "share": "75.0%",
    "entitledShare": "50.0%",
    "shareError": "0.0%",
}


def test_tenants_have_a_row_each() -> None:
    found = text(tenant_table({"tenants": [TENANT, TENANT | {"name": "cv", "weight": 0.5}]}))
    assert row(found, "nlp") == ["nlp", "2", "4", "6", "2", "0", "75.0%", "50.0%", "0.0%"]
    assert row(found, "cv")[:2] == ["cv", "0.5"]


def test_with_several_resources_there_is_a_row_for_each() -> None:
    both = {GPU: "4", "nvidia.com/mig-1g.10gb": "7"}
    found = text(tenant_table({"tenants": [TENANT | {"nominal": both}]}))
    assert "gpu" in found
    assert "mig-1g.10gb" in found


def test_tiers_have_a_row_each() -> None:
    tiers = [{"name": "prod", "pending": 3, "running": 1, "longestWait": "2m0s"}, {"name": "dev"}]
    found = text(tier_table({"tiers": tiers}))
    assert row(found, "prod") == ["prod", "1", "3", "2m0s"]
    assert row(found, "dev") == ["dev", "-", "-", "-"]
