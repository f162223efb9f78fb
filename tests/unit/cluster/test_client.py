"""The client: what it sends, what it repeats, how it fails."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from gpufair.api.kinds import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE, Resource
from gpufair.cluster import credentials
from gpufair.cluster.client import Client
from gpufair.cluster.errors import ApiError, NoClusterError, UnreachableError

QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {"name": "gpu", "namespace": "fraud"},
    "spec": {"clusterQueue": "fraud"},
}


async def test_apply_sends_json_as_an_apply_patch_of_our_manager(stub: Any, client: Any) -> None:
    stub.script(web.json_response(QUEUE, status=201))
    assert await client.apply(LOCAL_QUEUE, QUEUE) == (201, QUEUE)
    sent = stub.seen[0]
    assert sent.method == "PATCH"
    assert sent.path == "/apis/kueue.x-k8s.io/v1beta2/namespaces/fraud/localqueues/gpu"
    assert sent.query == {
        "fieldManager": "gpufair",
        "force": "false",
        "fieldValidation": "Strict",
    }
    assert sent.headers["Content-Type"] == "application/apply-patch+yaml"
    assert sent.body == QUEUE
    assert client.requests == {("apply", "localqueues.kueue.x-k8s.io"): 1}
    assert client.writes == 1


async def test_a_dry_run_is_no_write(stub: Any, client: Any) -> None:
    stub.script(QUEUE)
    await client.apply(LOCAL_QUEUE, QUEUE, force=True, dry_run=True)
    assert stub.seen[0].query["dryRun"] == "All"
    assert stub.seen[0].query["force"] == "true"
    assert client.writes == 0


async def test_status_is_applied_to_the_subresource(stub: Any, client: Any) -> None:
    stub.script(QUEUE)
    await client.apply_status(LOCAL_QUEUE, QUEUE)
    assert stub.seen[0].path.endswith("/localqueues/gpu/status")
    assert client.requests["apply", "localqueues.kueue.x-k8s.io/status"] == 1


async def test_names_are_quoted_into_the_path(stub: Any, client: Any) -> None:
    stub.script({})
    await client.get(COHORT, "a/b?c")
    assert stub.seen[0].path == "/apis/kueue.x-k8s.io/v1beta2/cohorts/a/b?c"
    assert stub.seen[0].query == {}


async def test_delete_sends_preconditions(stub: Any, client: Any, tools: Any) -> None:
    stub.script({}, tools.status(404, "NotFound"), tools.status(409, "Conflict"))
    assert await client.delete(COHORT, "x", uid="u", resource_version="7", propagation="Orphan")
    assert stub.seen[0].body["preconditions"] == {"uid": "u", "resourceVersion": "7"}
    assert stub.seen[0].body["propagationPolicy"] == "Orphan"
    assert not await client.delete(COHORT, "x")
    with pytest.raises(ApiError) as caught:
        await client.delete(COHORT, "x", uid="u")
    assert caught.value.is_conflict


async def test_429_waits_as_long_as_the_server_asks(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    stub.script(
        tools.status(429, "TooManyRequests", retry_after="3"),
        tools.status(429, "TooManyRequests", retry_after="4"),
        QUEUE,
    )
    await client.apply(LOCAL_QUEUE, QUEUE)
    assert time.sleeps == pytest.approx([3.3, 4.4])


async def test_429_beyond_the_deadline_is_raised_at_once(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    stub.script(tools.status(429, "TooManyRequests", retry_after="60"))
    with pytest.raises(ApiError) as caught:
        await client.apply(LOCAL_QUEUE, QUEUE)
    assert caught.value.is_throttled
    assert caught.value.retry_after == 60
    assert caught.value.exit_code == 2
    assert time.sleeps == []


async def test_5xx_is_repeated_with_growing_pauses_up_to_the_deadline(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    stub.script(*(tools.status(500, "InternalError", "no webhook") for _ in range(50)))
    with pytest.raises(ApiError, match="500 InternalError: no webhook"):
        await client.apply(LOCAL_QUEUE, QUEUE)
    assert time.sleeps == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0])
    assert sum(time.sleeps) <= client.retry_for


async def test_a_lost_connection_is_repeated_where_that_is_harmless(stub: Any, client: Any) -> None:
    stub.script(ConnectionError(), QUEUE)
    status, _ = await client.apply(LOCAL_QUEUE, QUEUE)
    assert status == 200
    assert len(stub.seen) == 2
    stub.script(ConnectionError(), QUEUE)
    with pytest.raises(UnreachableError, match=stub.url):
        await client.create(LOCAL_QUEUE, QUEUE)
    assert len(stub.seen) == 3


async def test_4xx_is_not_repeated(stub: Any, client: Any, tools: Any) -> None:
    stub.script(tools.status(422, "Invalid", 'LocalQueue "gpu" is invalid:\n spec: too long.'))
    with pytest.raises(ApiError) as caught:
        await client.apply(LOCAL_QUEUE, QUEUE)
    assert str(caught.value) == (
        'The API server answered 422 Invalid: LocalQueue "gpu" is invalid: spec: too long.'
    )
    assert caught.value.is_invalid
    assert len(stub.seen) == 1
    stub.script(tools.status(500, "", "failed to create typed patch object (/gpu): .x: unknown"))
    with pytest.raises(ApiError) as caught:
        await client.apply(LOCAL_QUEUE, QUEUE)
    assert caught.value.is_invalid
    assert len(stub.seen) == 2


async def test_lists_come_by_pages(stub: Any, client: Any) -> None:
    stub.script(
        {"metadata": {"continue": "t=1&x"}, "items": [{"a": 1}]},
        {"metadata": {}, "items": [{"a": 2}]},
    )
    assert await client.list_all(CLUSTER_QUEUE, label_selector="a=b") == [{"a": 1}, {"a": 2}]
    assert stub.seen[0].query == {"limit": "500", "labelSelector": "a=b"}
    assert stub.seen[1].query["continue"] == "t=1&x"


async def test_a_watch_yields_lines_whatever_their_length(stub: Any, client: Any) -> None:
    long = b'{"x":"' + b"y" * 3_000_000 + b'"}'

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in (b'{"a"', b":1}\n\n{", b'"b":2}\n', long + b"\n"):
            await response.write(part)
        return response

    stub.handler = handler
    lines = [line async for line in client.watch(CLUSTER_QUEUE, resource_version="5")]
    assert lines == [b"", b'{"a":1}', b'{"b":2}', long]
    assert stub.seen[0].query["resourceVersion"] == "5"
    assert stub.seen[0].query["allowWatchBookmarks"] == "true"


async def test_a_401_reads_the_credentials_again_once(stub: Any, tools: Any) -> None:
    tokens = iter(("old", "new"))
    loads = 0

    async def load() -> Any:
        nonlocal loads
        loads += 1
        return tools.configuration(stub.url, next(tokens))

    async def handler(request: web.Request) -> web.StreamResponse:
        fresh = request.headers["Authorization"] == "Bearer new"
        return web.json_response({}) if fresh else tools.status(401, "Unauthorized")

    stub.handler = handler
    async with Client(load) as client:
        # All of them are sent with the old token; only one has it read again.
        await asyncio.gather(*(client.get(COHORT, f"x{number}") for number in range(8)))
        assert loads == 2
        await client.get(COHORT, "x")
        assert loads == 2
    assert len(stub.seen) == 8 + 8 + 1


async def test_a_401_that_stays_is_an_error_not_a_loop(stub: Any, client: Any, tools: Any) -> None:
    stub.script(tools.status(401, "Unauthorized"), tools.status(401, "Unauthorized"))
    with pytest.raises(ApiError) as caught:
        await client.get(COHORT, "x")
    assert caught.value.is_unauthorized


async def test_discovery_tells_versions_and_kinds(stub: Any, client: Any, tools: Any) -> None:
    stub.script(
        {
            "versions": [{"version": "v1beta2"}, {"version": "v1beta1"}],
            "preferredVersion": {"version": "v1beta2"},
        },
        {"resources": [{"name": "cohorts", "kind": "Cohort"}, {"name": "x/status", "kind": "X"}]},
        {"resources": []},
        tools.status(404, "NotFound"),
    )
    found = await client.discover("kueue.x-k8s.io")
    assert found.versions == ("v1beta2", "v1beta1")
    assert found.serves(COHORT)
    assert not found.serves(CLUSTER_QUEUE)
    assert not found.serves(Resource("kueue.x-k8s.io", "v1beta1", "cohorts", "Cohort"))
    assert found.kinds["v1beta2"] == {"Cohort"}
    assert await client.discover("nobody.example") is None


# -- where the cluster is ------------------------------------------------------------------------


def kubeconfig(path: Path, server: str) -> Path:
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "a",
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "clusters": [{"name": "a", "cluster": {"server": server}}],
                "users": [{"name": "a", "user": {"token": "secret"}}],
            }
        )
    )
    return path


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment in which nothing names a cluster."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_without_any_configuration_the_error_says_what_to_do(bare: Path) -> None:
    with pytest.raises(NoClusterError, match=r"KUBECONFIG.*gpufair local up") as caught:
        Client.auto()
    assert caught.value.exit_code == 2
    with pytest.raises(NoClusterError, match="/nowhere/config"):
        Client.auto("/nowhere/config")


async def test_the_token_of_the_kubeconfig_is_sent(stub: Any, bare: Path) -> None:
    stub.script({"gitVersion": "v1.35.4"})
    async with Client.auto(kubeconfig(bare / "config", stub.url)) as client:
        assert (await client.server_version())["gitVersion"] == "v1.35.4"
    assert stub.seen[0].headers["Authorization"] == "Bearer secret"


async def test_kubeconfig_variable_goes_before_the_home_directory(
    stub: Any, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bare / ".kube").mkdir()
    kubeconfig(bare / ".kube" / "config", "http://127.0.0.1:1")
    chosen = kubeconfig(bare / "mine", stub.url)
    monkeypatch.setenv("KUBECONFIG", f"{bare}/missing{os.pathsep}{chosen}")
    async with Client.auto() as client:
        assert client.url == stub.url
    monkeypatch.delenv("KUBECONFIG")
    async with Client.auto() as client:
        assert client.url == "http://127.0.0.1:1"


@pytest.mark.parametrize("text", ["", "[]", "a: [", "clusters: 7", "current-context: x"])
async def test_a_broken_kubeconfig_is_one_sentence(bare: Path, text: str) -> None:
    path = bare / "config"
    path.write_text(text)
    with pytest.raises(NoClusterError, match=r"^[^\n]*config[^\n]*\.$"):
        async with Client.auto(path):
            pass


async def test_a_server_that_is_not_there_is_named_at_once(bare: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    async with Client.auto(kubeconfig(bare / "config", url)) as client:
        with pytest.raises(UnreachableError) as caught:
            await client.server_version()
    assert str(caught.value) == (
        f"The Kubernetes API server at {url} cannot be reached: Connection refused."
    )
    assert caught.value.exit_code == 2


async def test_something_else_behind_the_url_is_no_traceback(stub: Any, bare: Path) -> None:
    stub.script(web.Response(text="<html>hello</html>"))
    async with Client.auto(kubeconfig(bare / "config", stub.url)) as client:
        with pytest.raises(UnreachableError, match="no Kubernetes API server"):
            await client.server_version()


async def test_a_rotated_service_account_token_is_read_again(stub: Any, tmp_path: Path) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("one")
    authority.write_text("unused")
    host, port = stub.url.removeprefix("http://").split(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    loaded = credentials.in_cluster(str(token), str(authority), environ)

    async def load() -> Any:
        found = await loaded()
        found.host, found.ssl_ca_cert = stub.url, None  # the stub speaks no TLS
        return found

    async def handler(request: web.Request) -> web.StreamResponse:
        good = request.headers["Authorization"].lower() == f"bearer {token.read_text()}"
        return web.json_response({}) if good else web.Response(status=401)

    stub.handler = handler
    async with Client(load) as client:
        await client.get(COHORT, "x")
        token.write_text("two")
        await client.get(COHORT, "x")
    assert [seen.headers["Authorization"].lower() for seen in stub.seen] == [
        "bearer one",
        "bearer one",
        "bearer two",
    ]


async def test_an_exec_plugin_runs_again_when_its_token_expires(stub: Any, bare: Path) -> None:
    plugin, count = bare / "plugin", bare / "count"
    plugin.write_text(
        f"""#!/bin/sh
echo x >> {count}
printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":'
printf '{{"token":"t%s","expirationTimestamp":"%s"}}}}' "$(wc -l < {count} | tr -d ' ')" \\
  "$([ "$(wc -l < {count})" -gt 1 ] && echo 2999-01-01T00:00:00Z || echo 2020-01-01T00:00:00Z)"
"""
    )
    plugin.chmod(0o755)
    path = kubeconfig(bare / "config", stub.url)
    content = yaml.safe_load(path.read_text())
    content["users"][0]["user"] = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}
    }
    path.write_text(yaml.safe_dump(content))
    stub.script({}, {}, {})
    async with Client.auto(path) as client:
        for _ in range(3):
            await client.get(COHORT, "x")
    assert [seen.headers["Authorization"] for seen in stub.seen] == ["Bearer t2"] * 3
    assert len(count.read_text().split()) == 2
