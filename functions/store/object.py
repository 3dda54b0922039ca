"""Objects of a bucket, as they are told of."""

from dataclasses import dataclass
from datetime import datetime


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
