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
6. A reader begins by holding the pointer against the witness (functions.snapshot.witness). It never
   answers from an older snapshot than before. Where the pointer goes back, an old copy of it was
   put back: the reader goes on with the newest pointer that it has seen, as long as the witness
   knows of no newer snapshot; that is then the truth of now, for nobody can publish meanwhile.
7. A cache may give an older answer with its older responseDate, for a page of which that is as true
   as ever (answer.pinned): whoever asks from an older date gets records twice, never too few. What
   ends a list it has to ask about each time, by 4.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from functions.oai.repository import Repository
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, NothingPublished, StoreUnavailable
from functions.snapshot.pointer import Pointer, PointerEntry
from functions.snapshot.witness import REMEDY, Witness, contradiction
from functions.store import tally

_LOG = logging.getLogger("sheaf")

STALE = timedelta(minutes=5)
"""How old a kept reading may be where the store does not answer: what was withdrawn since shows."""


@dataclass(frozen=True, slots=True)
class PointerReading:
    """The pointer as of an instant, and the entry that was in effect at that instant.

    `reached` is the newest snapshot that is in effect by some clock within the allowance: tokens
    that name it are genuine, even where this reader's own clock is not there yet. `kept` tells
    that the pointer was not read for the request at hand.
    """

    instant: datetime
    pointer: Pointer
    entry: PointerEntry
    response_date: datetime
    reached: int
    kept: bool = False


class AsOf:
    """Reads the pointer, or keeps a reading of it. May be used by many threads at once.

    With `guarded` the first pointer is held against the witness. A command has done that before it
    begins to serve.
    """

    def __init__(
        self,
        repository: Repository,
        clock: Callable[[], datetime],
        pointer_seconds: float,
        clock_allowance: float,
        *,
        guarded: bool = False,
    ):
        self._repository = repository
        self._clock = clock
        self._keep = timedelta(seconds=pointer_seconds)
        self._allowance = timedelta(seconds=clock_allowance)
        self._lock = threading.Lock()
        self._kept: PointerReading | None = None
        self._seen: Pointer | None = None
        """The newest pointer that was ever read."""
        self._warned = False
        self._guarded = guarded

    def reading(self, *, fresh: bool = False) -> PointerReading:
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
            if not _is_behind(reading.pointer, self._seen, reading.instant):
                self._seen = reading.pointer
        return reading

    def _young(self, age: timedelta) -> PointerReading | None:
        """Return the kept reading if it is younger than `age`."""
        with self._lock:
            kept = self._kept
        if kept is None:
            return None
        # A clock that was set back makes the age negative: then nothing is known of the age.
        found = self._clock().astimezone(UTC) - kept.instant
        return kept if timedelta(0) <= found < age else None

    def _read(self) -> PointerReading:
        now = self._clock().astimezone(UTC)
        begins = self._guarded and self._seen is None
        pointer = self._read_first() if begins else self._repository.pointer()
        if pointer.entries and _is_behind(pointer, self._seen, now):
            # A publish that was late may have moved the pointer since the clock was read.
            now = self._clock().astimezone(UTC)
            pointer = self._repository.pointer()
        if pointer.entries and _is_behind(pointer, self._seen, now):
            pointer = self._newest(pointer)
        else:
            self._warned = False
        try:
            entry = pointer.at(now)
        except NothingPublished as error:
            if self._kept is None:
                raise
            raise StoreUnavailable("the store's pointer is not there any more") from error
        reached = pointer.at(now + self._allowance).snapshot
        known = now if pointer.copied is None else min(now, pointer.copied)
        response_date = (known - self._allowance).replace(microsecond=0)
        return PointerReading(now, pointer, entry, response_date, reached)

    def _read_first(self) -> Pointer:
        """Read the first pointer, and see that it is not an old one. Raises DamagedStore.

        The witness is read at the same time, for time counts where a function begins.
        """
        with ThreadPoolExecutor(1) as pool:
            read = pool.submit(tally.carry(self._repository.witness))
            pointer = self._repository.pointer()
            witness = read.result()
        if contradiction(pointer, witness) is None:
            return pointer
        # A publish may have moved the pointer just before the witness was read.
        witness = self._repository.witness()
        pointer = self._repository.pointer()
        found = contradiction(pointer, witness)
        if found is not None:
            raise found.error()
        return pointer

    def _newest(self, pointer: Pointer) -> Pointer:
        """Return the newest pointer that was seen, as `pointer` went back behind it.

        Raises StoreUnavailable where the witness knows of a newer snapshot: then it cannot be told
        what is in effect.
        """
        assert self._seen is not None
        old, seen = pointer.newest(), self._seen.newest()
        assert old is not None
        assert seen is not None
        told = (
            f"{layout.POINTER} names {old.snapshot} as the newest snapshot, and {seen.snapshot} "
            f"was served: an old copy was put back. Answers stay at snapshot {seen.snapshot}; "
            f"{REMEDY}"
        )
        if not self._warned:
            self._warned = True
            _LOG.error("%s", told)
        witness = self._witness()
        if witness is not None and witness.number > seen.snapshot:
            raise StoreUnavailable(f"{told}. By {layout.WITNESS} there is {witness.number}")
        if witness is None and self._seen.copied is None and self._kept is not None:
            # Nothing tells whether there is a newer snapshot, so the truth is that of then.
            return replace(self._seen, copied=self._kept.instant)
        return self._seen

    def _witness(self) -> Witness | None:
        try:
            return self._repository.witness()
        except DamagedStore:
            return None


def _is_behind(pointer: Pointer, seen: Pointer | None, when: datetime) -> bool:
    """Tell whether a pointer has an older snapshot in effect than the one that was seen before."""
    return seen is not None and _number(pointer, when) < _number(seen, when)


def _number(pointer: Pointer, when: datetime) -> int:
    """Return the number of the snapshot in effect; 0 where none is."""
    return max((e.snapshot for e in pointer.entries if e.effective <= when), default=0)
