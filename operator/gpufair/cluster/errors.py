"""What the API server, or the way to it, answered instead of an object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpufair.errors import GpufairError


class ClusterError(GpufairError):
    """The cluster could not do what was asked; the command line ends with exit code 2."""

    exit_code = 2


class NoClusterError(ClusterError):
    """No usable configuration names a cluster."""


class UnreachableError(ClusterError):
    """The API server did not answer at all."""


class ApiError(ClusterError):
    """An answer of the API server with a status of 400 and above.

    `message` and `details` are those of its Status object, `retry_after` is in seconds.
    """

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.retry_after = retry_after
        text = " ".join(message.split()).rstrip(".")
        super().__init__(
            f"The API server answered {status} {reason}".rstrip() + (f": {text}." if text else ".")
        )

    @property
    def is_not_found(self) -> bool:
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """A conflict of versions, of preconditions or of field managers (not: already exists)."""
        return self.status == 409 and self.reason != "AlreadyExists"

    @property
    def is_already_exists(self) -> bool:
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def is_gone(self) -> bool:
        """The resourceVersion or the continue token is too old (410)."""
        return self.status == 410

    @property
    def is_invalid(self) -> bool:
        """The object itself is at fault: sending it again gives the same answer."""
        return self.status in (400, 422) or (
            # What does not fit the schema comes back from server-side apply as a 500.
            self.status == 500 and self.message.startswith("failed to create typed patch object")
        )

    @property
    def is_forbidden(self) -> bool:
        return self.status == 403

    @property
    def is_unauthorized(self) -> bool:
        return self.status == 401

    @property
    def is_throttled(self) -> bool:
        return self.status == 429


def is_conflict(error: BaseException) -> bool:
    """True for an ApiError that reports a conflict."""
    return isinstance(error, ApiError) and error.is_conflict


def is_not_found(error: BaseException) -> bool:
    """True for an ApiError that says the object or the kind does not exist."""
    return isinstance(error, ApiError) and error.is_not_found


def api_error(status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """Read an answer with an error status; the body is a Status object or any text."""
    found: Any
    try:
        found = json.loads(body)
    except ValueError:
        found = {"message": body[:300].decode("utf-8", "replace")}
    if not isinstance(found, dict):
        found = {}
    details = found.get("details") or {}
    return ApiError(
        status,
        found.get("reason") or "",
        found.get("message") or "",
        details,
        _retry_after(headers, details),
    )


def error_of_status(status: Mapping[str, Any]) -> ApiError:
    """The ApiError for a Status object, such as the one in a watch's ERROR event."""
    details = status.get("details") or {}
    return ApiError(
        int(status.get("code") or 500),
        status.get("reason") or "",
        status.get("message") or "",
        details,
        _retry_after({}, details),
    )


def _retry_after(headers: Mapping[str, str], details: Mapping[str, Any]) -> float | None:
    for value in (headers.get("Retry-After"), details.get("retryAfterSeconds")):
        try:
            seconds = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        if 0 <= seconds < 86_400:
            return seconds
    return None
