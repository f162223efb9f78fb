"""How lists merge under server-side apply, as annotations of the model's fields.

Only lists of named things merge item by item. All others have one owner as a whole: the server
keeps a record of the owner of each part, and at 1,000 tenants the record would be larger than the
policy, and with it too large for etcd.
Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
"""

from typing import Any

from pydantic import Field


def named_list(most: int, *keys: str, least: int = 0) -> Any:
    """A list of objects that merge by the given keys (default `name`), at most `most` of them."""
    return Field(
        min_length=least or None,
        max_length=most,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": list(keys or ("name",)),
        },
    )


def atomic_list(most: int, *, least: int = 0) -> Any:
    """A list that has one owner, at most `most` items long."""
    return Field(
        min_length=least or None,
        max_length=most,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


def unique_list(most: int, *keys: str, least: int = 0) -> Any:
    """A list with one owner, of distinct scalars or of objects that differ in the given keys."""
    return Field(
        min_length=least or None,
        max_length=most,
        json_schema_extra={
            "x-kubernetes-list-type": "atomic",
            "x-gpufair-unique": list(keys),
        },
    )
