"""A real control plane on one machine, without containers, to try policies on.

>>> cluster = gpufair.local.up("try", nodes=2)  # doctest: +SKIP
>>> cluster.kubeconfig  # doctest: +SKIP
"""

from gpufair.local.instance import ComponentStatus, Instance, names
from gpufair.local.lifecycle import down, get, reset, up

__all__ = ["ComponentStatus", "Instance", "down", "get", "names", "reset", "up"]
