"""What the API server was asked, by whom: read from its audit log (level Metadata)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CREDENTIAL = "authentication.kubernetes.io/credential-id"
WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One request and the status of its answer."""

    user: str
    credential: str
    """The token, by its id: two processes of one account have one each."""
    verb: str
    group: str
    resource: str
    """With its subresource, as RBAC spells it: `workloads/status`."""
    namespace: str
    name: str
    status: int
    at: str

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES


class Audit:
    """The log from where it stood at the last `mark`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def mark(self) -> int:
        """Begin here; return the place, for `since`."""
        self._offset = self._path.stat().st_size
        return self._offset

    def entries(self, user: str = "", since: int | None = None) -> list[Entry]:
        """Requests that were answered since the mark, those of one user if it is given."""
        with self._path.open("rb") as log:
            log.seek(self._offset if since is None else since)
            found = [entry for line in log if line.endswith(b"\n") for entry in _entry(line)]
        return [entry for entry in found if not user or entry.user == user]

    def writes(self, user: str, *names: str) -> list[Entry]:
        """Successful writes of one user to objects whose name or namespace begins with a name."""
        return [
            entry
            for entry in self.entries(user)
            if entry.is_write
            and entry.status < 300
            and any(part.startswith(n) for n in names for part in (entry.name, entry.namespace))
        ]


def _entry(line: bytes) -> Iterator[Entry]:
    event: dict[str, Any] = json.loads(line)
    about = event.get("objectRef")
    # A watch has two stages; what it was allowed to do shows in the first.
    if about is None or (event["verb"] == "watch" and event["stage"] != "ResponseStarted"):
        return
    sub = about.get("subresource")
    yield Entry(
        user=event["user"]["username"],
        credential=next(iter(event["user"].get("extra", {}).get(_CREDENTIAL, ())), ""),
        verb=event["verb"],
        group=about.get("apiGroup", ""),
        resource=f"{about['resource']}/{sub}" if sub else about["resource"],
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        status=event.get("responseStatus", {}).get("code", 0),
        at=event["stageTimestamp"],
    )
