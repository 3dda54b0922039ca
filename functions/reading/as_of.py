"""As-of clock: which snapshot is in effect, and at which instant a response is true.

These rules ensure that no harvester ever misses a change:

1. A reading is the clock's instant T and the pointer as read after T. A publish writes the pointer
   ahead of its effect. So the pointer already holds all that takes effect up to T, and its entry in
   effect at T is correct for T. If the clock were read after the pointer, a publish between the two
   would be missed although the response claims its instant.
2. `responseDate` is T minus an allowance of more than twice the tolerated clock skew, because
   readers with different clocks serve the pages of a list. It is rounded down to whole seconds.
3. A reading may be cached for some seconds. It remains true for T and says nothing about later
   instants. If the cached pointer names a snapshot that took effect meanwhile, the response still
   describes T and has T's responseDate. With the new clock the response would claim an instant for
   which the pointer was not read; a still later snapshot may be in effect by then.
4. The last page of a list needs a new reading. It says that nothing more follows, so it must not be
   older than the pages before it: the harvester may start its next harvest at their responseDate.
5. If the store does not respond for a while, a cached reading serves longer, by rule 3. Who may
   take one waits for half a second at most, and not at all if somebody has waited so long for the
   reading in progress. The last page of a list and refusals wait, by rule 4.
6. A reader first compares the pointer with the witness (functions.snapshot.pointer). It never
   answers from an older snapshot than before. If the pointer goes back, an old copy of it was
   restored. The reader then continues with the newest pointer that it has read, as long as the
   witness knows of no newer snapshot. That pointer is correct, because no publish can happen
   meanwhile.
7. A cache may serve an older response with its older responseDate if the page is pinned
   (answer.pinned). A harvester that starts at an older date gets some records twice, never too few.
   Caches must revalidate the last page of a list each time, by rule 4.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from functions.reading.repository import Repository
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, NothingPublished, StoreUnavailable
from functions.snapshot.pointer import REMEDY, Pointer, PointerEntry, contradiction
from functions.store import s3_request

_LOG = logging.getLogger("sheaf")

STALE = timedelta(minutes=5)
"""Maximum age of a cached reading while the store fails: records withdrawn since still show."""
_PATIENCE = 0.5
"""Seconds for which the store may take before a cached reading serves; S3 takes a tenth of that."""


@dataclass(frozen=True, slots=True)
class PointerReading:
    """The pointer at an instant, and the entry that was in effect then.

    `reached` is the newest snapshot in effect by any clock within the allowance. Tokens that name
    it are genuine, even if this reader's own clock is behind. `cached` is True if the pointer was
    not read for the current request.
    """

    instant: datetime
    pointer: Pointer
    entry: PointerEntry
    response_date: datetime
    reached: int
    cached: bool = False


class AsOf:
    """Reads the pointer, or reuses a recent reading. Thread-safe.

    `patience` is how many real seconds a reading may take before a cached one serves.
    """

    patience = _PATIENCE

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
        self._cached: PointerReading | None = None
        self._seen: Pointer | None = None
        """The newest pointer that was ever read."""
        self._warned = False
        self._flight: Future[PointerReading] | None = None
        self._is_slow = False  # True: somebody has waited for this flight long enough

    def reading(self, *, fresh: bool = False) -> PointerReading:
        """Return a reading; a cached one if it is young enough and `fresh` is False.

        Raises NothingPublished if no snapshot is in effect, StoreError if the store fails.
        """
        if fresh:
            return self._read_now()
        if (cached := self._young(self._keep)) is not None:
            return cached
        cached = self._young(max(STALE, self._keep))
        flight, is_own = self.begin()
        patience = self.patience if is_own or not self._is_slow else 0
        try:
            reading = flight.result(None if cached is None else patience)
        except (TimeoutError, StoreUnavailable):
            if cached is None:
                raise
            self._is_slow |= not flight.done()
            return cached
        # One that was begun for another request may be older than the page before (rule 4).
        return reading if is_own else replace(reading, cached=True)

    def begin(self) -> tuple[Future[PointerReading], bool]:
        """Return the reading in progress; with True a new one, if there was none.

        However many wait for a store that hangs, it has one thread.
        """
        with self._lock:
            if self._flight is not None and not self._flight.done():
                return self._flight, False
            flight = self._flight = Future[PointerReading]()
            self._is_slow = False
        read = s3_request.carry_tally(self._fly)
        threading.Thread(target=read, args=(flight,), daemon=True).start()
        return flight, True

    def _fly(self, flight: Future[PointerReading]) -> None:
        try:
            reading = self._read_now()
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            flight.set_exception(error)
        else:
            flight.set_result(reading)

    def _read_now(self) -> PointerReading:
        """Read the pointer, and cache the reading."""
        reading = self._read()
        # The store is read outside the lock, so that no thread waits for another's slow read. If
        # two threads race, either reading may be cached: each is true for its own instant.
        with self._lock:
            self._cached = replace(reading, cached=True)
            if not _is_behind(reading.pointer, self._seen, reading.instant):
                self._seen = reading.pointer
        return reading

    def find_reading(self) -> PointerReading | None:
        """Return the cached reading, if it still serves; the store is not read."""
        return self._young(self._keep)

    def _young(self, age: timedelta) -> PointerReading | None:
        """Return the cached reading if it is younger than `age`."""
        with self._lock:
            cached = self._cached
        if cached is None:
            return None
        # If the clock was set back, the age is negative and therefore unknown.
        elapsed = self._clock().astimezone(UTC) - cached.instant
        return cached if timedelta(0) <= elapsed < age else None

    def _read(self) -> PointerReading:
        now = self._clock().astimezone(UTC)
        pointer = self._repository.pointer() if self._seen else self._read_first()
        if pointer.entries and _is_behind(pointer, self._seen, now):
            # A late publish may have moved the pointer since the clock was read.
            now = self._clock().astimezone(UTC)
            pointer = self._repository.pointer()
        if pointer.entries and _is_behind(pointer, self._seen, now):
            pointer = self._newest(pointer)
        else:
            self._warned = False
        try:
            entry = pointer.at(now)
        except NothingPublished as error:
            if self._cached is None:
                raise
            raise StoreUnavailable("the store's pointer no longer exists") from error
        reached = pointer.at(now + self._allowance).snapshot
        certain = now if pointer.copied is None else min(now, pointer.copied)
        response_date = (certain - self._allowance).replace(microsecond=0)
        return PointerReading(now, pointer, entry, response_date, reached)

    def _read_first(self) -> Pointer:
        """Read the first pointer and check that it is not an old copy. Raises DamagedStore.

        The witness is read in parallel to shorten a cold start.
        """
        with ThreadPoolExecutor(1) as pool:
            read = pool.submit(s3_request.carry_tally(self._repository.witness))
            pointer = self._repository.pointer()
            witness = read.result()
        if contradiction(pointer, witness) is None:
            return pointer
        # A publish may have moved the pointer just before the witness was read.
        witness = self._repository.witness()
        pointer = self._repository.pointer()
        conflict = contradiction(pointer, witness)
        if conflict is not None:
            raise conflict.error()
        return pointer

    def _newest(self, pointer: Pointer) -> Pointer:
        """Return the newest pointer read so far, because `pointer` is older than it.

        Raises StoreUnavailable if the witness knows of a newer snapshot: then the snapshot in
        effect is unknown.
        """
        assert self._seen is not None
        old, seen = pointer.newest(), self._seen.newest()
        assert old is not None
        assert seen is not None
        warning = (
            f"{layout.POINTER} names snapshot {old.snapshot} as the newest, but snapshot "
            f"{seen.snapshot} was served: an old copy was restored. The server stays at snapshot "
            f"{seen.snapshot}; {REMEDY}"
        )
        if not self._warned:
            self._warned = True
            _LOG.error("%s", warning)
        try:
            witness = self._repository.witness()
        except DamagedStore:
            witness = None
        if witness is not None and witness.number > seen.snapshot:
            raise StoreUnavailable(f"{warning}. {layout.WITNESS} names snapshot {witness.number}")
        if witness is None and self._seen.copied is None and self._cached is not None:
            # A newer snapshot cannot be ruled out, so the answer is dated to the last good reading.
            return replace(self._seen, copied=self._cached.instant)
        return self._seen


def _is_behind(pointer: Pointer, seen: Pointer | None, when: datetime) -> bool:
    """Return whether `pointer` has an older snapshot in effect than `seen`."""
    return seen is not None and _number(pointer, when) < _number(seen, when)


def _number(pointer: Pointer, when: datetime) -> int:
    """Return the number of the snapshot in effect, 0 if there is no such snapshot."""
    return max((e.snapshot for e in pointer.entries if e.effective <= when), default=0)
