"""The present: which snapshot is in effect, and as of which instant an answer is true.

The rule for instants, on which rests that no harvester ever misses a change:

1. A reading is the clock's instant T and the pointer as read after T. Whatever takes effect up to
   T was in the pointer before (a publish writes the pointer ahead of its effect), so the entry in
   effect at T is the truth of T. The clock comes first: were it read after the pointer, a publish
   between the two would be missed and still be claimed.
2. `responseDate` is T less an allowance of more than twice the tolerated clock skew, for a list's
   pages come from readers with different clocks. It is cut to whole seconds, downwards.
3. A reading may be kept for some seconds. It stays true of T and says nothing of later: where the
   kept pointer already names a snapshot that has come into effect since, the answer remains that
   of T, with T's responseDate. To go by the new clock would claim an instant of which the pointer
   was not read, and a still later snapshot may be in effect by then.
4. What ends a list reads anew: an answer that promises "there is no more" must not be older than
   the pages before it, whose responseDate the harvester may ask from next.
5. Where the store does not answer for a while, a kept reading serves for longer, by 3. What ends a
   list or refuses it waits, by 4.
6. A cache may give an older answer with its older responseDate, for a page of which that is as true
   as ever (answer.pinned): whoever asks from an older date gets records twice, never too few. What
   ends a list it has to ask about each time, by 4.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from functions.oai.repository import Repository
from functions.snapshot.errors import NothingPublished, StoreUnavailable
from functions.snapshot.pointer import Entry, Pointer

STALE = timedelta(minutes=5)
"""How old a kept reading may be where the store does not answer: what was withdrawn since shows."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The pointer as of an instant, and the entry that was in effect at that instant.

    `reached` is the newest snapshot that is in effect by some clock within the allowance: tokens
    that name it are genuine, even where this reader's own clock is not there yet. `kept` tells
    that the pointer was not read for the request at hand.
    """

    instant: datetime
    pointer: Pointer
    entry: Entry
    response_date: datetime
    reached: int
    kept: bool = False


class Present:
    """Reads the pointer, or keeps a reading of it. May be used by many threads at once."""

    def __init__(
        self,
        repository: Repository,
        clock: Callable[[], datetime],
        pointer_seconds: float,
        clock_allowance: float,
    ):
        self._repository = repository
        self._clock = clock
        self._keep = timedelta(seconds=pointer_seconds)
        self._allowance = timedelta(seconds=clock_allowance)
        self._lock = threading.Lock()
        self._kept: Reading | None = None

    def reading(self, *, fresh: bool = False) -> Reading:
        """Return a reading: the kept one if it is young enough, and not where `fresh` is asked.

        Raises NothingPublished where no snapshot is in effect, StoreError where the store fails.
        """
        kept = None if fresh else self._young(self._keep)
        if kept is not None:
            return kept
        try:
            reading = self._read()
        except StoreUnavailable:
            kept = None if fresh else self._young(max(STALE, self._keep))
            if kept is None:
                raise
            return kept
        # The store is read outside the lock, so that no thread waits for another's slow read.
        # Of two that race either may be kept: each is true of its own instant.
        with self._lock:
            self._kept = replace(reading, kept=True)
        return reading

    def _young(self, age: timedelta) -> Reading | None:
        """Return the kept reading if it is younger than `age`."""
        with self._lock:
            kept = self._kept
        if kept is None:
            return None
        # A clock that was set back makes the age negative: then nothing is known of the age.
        found = self._clock().astimezone(UTC) - kept.instant
        return kept if timedelta(0) <= found < age else None

    def _read(self) -> Reading:
        now = self._clock().astimezone(UTC)
        pointer = self._repository.pointer()
        try:
            entry = pointer.at(now)
        except NothingPublished as error:
            if self._kept is None:
                raise
            raise StoreUnavailable("the store's pointer is not there any more") from error
        reached = pointer.at(now + self._allowance).snapshot
        known = now if pointer.copied is None else min(now, pointer.copied)
        response_date = (known - self._allowance).replace(microsecond=0)
        return Reading(now, pointer, entry, response_date, reached)
