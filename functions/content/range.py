"""Parses the header Range (RFC 9110, section 14).

A single range is answered with one part. Several ranges, or an invalid header, are answered with
the whole, as a server may (section 14.2).
"""

import re
from dataclasses import dataclass

_RANGE = re.compile(
    r"[ \t]*bytes[ \t]*=[ \t]*(?:([0-9]{1,40})-([0-9]{1,40})?|-([0-9]{1,40}))[ \t]*", re.IGNORECASE
)


class Unsatisfiable(Exception):
    """The range contains no byte of the content."""


@dataclass(frozen=True, slots=True)
class RangePart:
    """The bytes from `first` to `last`, both included, of a content of `size` bytes."""

    first: int
    last: int
    size: int

    @property
    def length(self) -> int:
        """Number of bytes."""
        return self.last - self.first + 1

    @property
    def header(self) -> str:
        """The value of Content-Range."""
        return f"bytes {self.first}-{self.last}/{self.size}"


@dataclass(frozen=True, slots=True)
class RequestedRange:
    """A requested range: from `first` to `last` (None: the end), or the `tail` last bytes."""

    first: int = 0
    last: int | None = None
    tail: int | None = None

    def part(self, size: int, largest: int | None = None) -> RangePart | None:
        """Return the part of `size` bytes, cut to the first `largest` bytes (None: uncut).

        Empty content has no part (None) and is answered whole. A part may be smaller than
        requested; its Content-Range states its size (section 15.3.7). Raises Unsatisfiable.
        """
        if not size:
            return None
        if self.tail is not None:
            first, last = max(0, size - self.tail), size - 1
        else:
            first, last = self.first, size - 1 if self.last is None else min(self.last, size - 1)
        if first > last:
            raise Unsatisfiable
        if largest is not None:
            last = min(last, first + largest - 1)
        return RangePart(first, last, size)


def read(header: str) -> RequestedRange | None:
    """Return the requested range, or None if the whole is the answer."""
    match = _RANGE.fullmatch(header)
    if match is None:
        return None
    first, last, tail = match.groups()
    if tail is not None:
        return RequestedRange(tail=int(tail))
    if last is not None and int(last) < int(first):
        return None  # an invalid range (section 14.1.1)
    return RequestedRange(int(first), None if last is None else int(last))


def content_range(size: int) -> str:
    """Return the Content-Range that states the size alone."""
    return f"bytes */{size}"
