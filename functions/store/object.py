"""Objects of a bucket, as they are told of."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.snapshot.errors import StoreError


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of an object: its bytes, and size and tag of the object that they are of."""

    data: bytes
    size: int
    tag: str


@dataclass(frozen=True, slots=True)
class Listed:
    """An object of a listing, by the bucket's own key."""

    key: str
    bytes: int
    modified: datetime


def tag_of(meta: Mapping[str, Any]) -> str:
    """Return the tag that an object is told of with. Raises StoreError where there is none."""
    tag = meta["e_tag"]
    if not tag:
        raise StoreError("the server gives objects no ETag; see docs/store.md for what it must do")
    return str(tag)
