"""A real control plane with a real Kueue for all tests of this directory."""

import os
import sys
import uuid
from collections.abc import Iterator

import pytest

from gpufair import local
from gpufair.local.progress import LineProgress


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[local.Instance]:
    """A local cluster for the session: 4 nodes of 8 GPUs, with an audit log.

    GPUFAIR_TEST_CLUSTER=NAME uses the cluster of that name (started when there is none) and
    leaves it running: for quick turns while developing.
    """
    kept = os.environ.get("GPUFAIR_TEST_CLUSTER")
    name = kept or f"test-{uuid.uuid4().hex[:8]}"
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    # A first run builds for minutes: let people and CI see that something happens.
    with capture.global_and_fixture_disabled():
        instance = local.up(name, audit=True, progress=LineProgress(sys.stderr))
    try:
        yield instance
    finally:
        if not kept:
            local.down(name)
