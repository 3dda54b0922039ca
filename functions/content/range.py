"""Ranges: which bytes of a content a caller wants (RFC 9110, section 14).

One range is answered as one part. Several, and what cannot be read, are answered by the whole, as
a server may (section 14.2).
"""

import re
from dataclasses import dataclass

_RANGE = re.compile(
    r"[ \t]*bytes[ \t]*=[ \t]*(?:([0-9]{1,40})-([0-9]{1,40})?|-([0-9]{1,40}))[ \t]*", re.IGNORECASE
)


class Unsatisfiable(Exception):
    """Nothing of the content lies in the range."""


@dataclass(frozen=True, slots=True)
class RangePart:
    """The bytes from `first` to `last`, both included, of a content of `size` bytes."""

    first: int
    last: int
    size: int

    @property
    def length(self) -> int:
        """How many bytes it has."""
        return self.last - self.first + 1

    @property
    def header(self) -> str:
        """The part as Content-Range has it."""
        return f"bytes {self.first}-{self.last}/{self.size}"


@dataclass(frozen=True, slots=True)
class RequestedRange:
    """What a caller wants: from `first` to `last` (None: the end), or the `tail` last bytes."""

    first: int = 0
    last: int | None = None
    tail: int | None = None

    def part(self, size: int, largest: int | None = None) -> RangePart | None:
        """Return that of `size` bytes, the first `largest` of it at most (None: all of it).

        Of no bytes there is no part (None): the whole answers it. A part may be smaller than was
        asked for, and says so itself (section 15.3.7). Raises Unsatisfiable.
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
    """Return what the header Range asks for, None where the whole is the answer."""
    match = _RANGE.fullmatch(header)
    if match is None:
        return None
    first, last, tail = match.groups()
    if tail is not None:
        return RequestedRange(tail=int(tail))
    if last is not None and int(last) < int(first):
        return None  # such a range is none (section 14.1.1)
    return RequestedRange(int(first), None if last is None else int(last))


def content_range(size: int) -> str:
    """Return the Content-Range that tells a caller how many bytes there are."""
    return f"bytes */{size}"
