"""Sheets: the records of one page as XML, as many as fit.

A page ends before its limit where the next record would pass a number of bytes. Which record that
is follows from the records alone, not from how many are written at once. So every server cuts a
page at the same place, and a token always gives the same page.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from functions.oai.answer import RecordList
from functions.oai.repository import PublishedRecord

_LOG = logging.getLogger("sheaf")

_MOST = 1024
"""Records that are written at once. Of these the ones that do not fit are written in vain."""
_SAMPLES = 4
"""Records by whose fields it is estimated how large the first ones are."""
_HEADER, _MARKUP = 512, 2
"""Bytes of a record without its fields, and how many XML makes of each character of these."""
_SAFE = 0.9
"""The share of what should fit that is written next, for records differ in size."""


class Room(Protocol):
    """Takes the records of a page, one part after the other, until there is no room left."""

    def take(self, part: RecordList) -> int:
        """Take the next records of the page; return how many fit, of a page at least one."""
        ...

    def likely(self) -> int | None:
        """Return about how many more records fit, None where that is not limited or known."""
        ...

    def finish(self) -> tuple[bytes, ...] | None:
        """Return what was made of the records that fit; None where that is still to be done."""
        ...


class Boundless:
    """Room for any number of records, of which nothing is made. Implements Room."""

    def take(self, part: RecordList) -> int:
        """Take all of them."""
        return part.count

    def likely(self) -> int | None:
        """Return None."""
        return None

    def finish(self) -> tuple[bytes, ...] | None:
        """Return None."""
        return None


@dataclass(slots=True)
class UnrenderedRecords:
    """Records that a crosswalk cannot make: what is wrong with the first, and how many."""

    first: str = ""
    count: int = 0

    def add(self, problem: str, count: int = 1) -> None:
        """Count one more, or several of which the first has that problem."""
        self.first = self.first or problem
        self.count += count


class Sheet:
    """Writes the records of a page by `write`, up to `largest` bytes. Implements Room.

    The first record is taken whatever its size: without any, the page would end its list.
    """

    def __init__(
        self, write: Callable[[RecordList], tuple[bytes, UnrenderedRecords]], largest: int | None
    ) -> None:
        """`write` returns the XML of records; that of several is that of each, joined."""
        self._write = write
        self._largest = math.inf if largest is None else largest
        self._made: list[bytes] = []
        self._missed = UnrenderedRecords()
        self._size = self._count = 0

    def take(self, part: RecordList) -> int:
        """Write the next records; return how many fit."""
        taken, most = 0, _MOST
        while taken < part.count:
            rest = part.records[taken:]
            some = rest[: min(most, self._next(rest))]
            body, missed = self._write(replace(part, records=some))
            count, left = len(some), self._largest - self._size
            if len(body) <= left or (count == 1 and not self._count):
                taken += count
                self._keep(body, count, missed)
            elif count == 1:
                break
            else:
                # Fewer each time, so that it ends with the single record that does not fit.
                most = max(1, min(count // 2, int(count * left / len(body) * _SAFE)))
        return taken

    def likely(self) -> int | None:
        """Return how many more records fit if they are as large as those so far."""
        if not self._size or self._largest == math.inf:
            return None
        return max(0, int((self._largest - self._size) * self._count / self._size))

    def finish(self) -> tuple[bytes, ...]:
        """Return the XML of the records that fit; the log tells of those that are left out."""
        if self._missed.count:
            # One line a page: where a crosswalk fails for everything, so does it for each alike.
            more = self._missed.count - 1
            _LOG.error("%s%s", self._missed.first, f" (and {more} more)" if more else "")
        return tuple(self._made)

    def _next(self, rest: Sequence[PublishedRecord]) -> int:
        """Return how many of the records to write next."""
        if self._largest == math.inf:
            return len(rest)
        likely = self.likely()
        if likely is None:
            likely = int(self._largest) // _estimate(rest)
        return max(1, int(likely * _SAFE))

    def _keep(self, body: bytes, count: int, missed: UnrenderedRecords) -> None:
        self._made.append(body)
        self._size += len(body)
        self._count += count
        self._missed.add(missed.first, missed.count)


def _estimate(records: Sequence[PublishedRecord]) -> int:
    """Return about how many bytes of XML a record makes."""
    some = records[:: max(1, len(records) // _SAMPLES)]
    return _HEADER + _MARKUP * sum(len(str(one.fields)) for one in some) // len(some)
