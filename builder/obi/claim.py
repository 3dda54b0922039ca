"""Claims and commits: how a run gets its time, and how it begins to count.

A process lists the other runs after it has opened its own. Of two runs, the later one therefore
sees the earlier one and waits for it. If the later one was faster, the earlier one sees that, and
starts again with a later time. The commit is written when the rest of the run is complete.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from builder.obi import key, log
from builder.obi.history import (
    ALIVE,
    COMMIT,
    DATED,
    DOCUMENTS,
    FORMAT,
    LOG,
    OPEN,
    Committed,
    OpenedRun,
    find_ended,
    history,
    is_open,
    standing,
    write_json,
)
from builder.obi.log_table import WrittenLog
from builder.store import durable
from builder.store.lease import Leases
from functions.snapshot import instant
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.snapshot.store import Writer

BEHIND = 3600
"""Seconds by which a clock may lag behind the last run."""
LEASE = 60.0
"""Seconds after which the run of a killed process no longer blocks others."""
_TRIES = 20


def commit_run(
    store: Writer,
    opened: OpenedRun,
    log_file: WrittenLog,
    documents: str | None,
    before: Sequence[Committed],
    now: datetime,
) -> Committed:
    """Commit a run whose log and documents are in the store, and return it.

    If another process committed the same log just before, that commit is returned. Raises Conflict
    if its log differs, StoreError if the run was abandoned.
    """
    last = before[-1] if before else None
    run = Committed(
        opened.tist,
        opened.kind,
        opened.source,
        opened.begun,
        now,
        log_file.digest,
        log_file.bytes,
        documents,
        last.digest if last else None,
        "",
        log_file.counts,
        FORMAT if opened.as_of is None else DATED,
        as_of=opened.as_of,
    )
    data = run.document(last)
    try:
        store.create(key.run(run.tist) + COMMIT, data)
    except Conflict:
        ended = find_ended(store, run.tist)
        if ended is None:
            raise StoreError(
                f"another process abandoned the run {opened.name()}; run the command again"
            ) from None
        if ended.log != run.log:
            raise Conflict(f"another process committed the run {opened.name()}") from None
        return ended
    ended = Committed.of(run.tist, data)
    assert ended is not None
    return ended


def complete_run(store: Writer, tist: int, now: datetime) -> None:
    """Commit a run that was cut off just before its commit.

    Its log exists, so its writer had waited for its turn and had written everything else.
    """
    digest, size, counts = log.count_rows(store, tist)
    try:
        documents: str | None = durable.digest_object(store, key.run(tist) + DOCUMENTS)[0]
    except MissingObject:
        documents = None
    before = [run for run in history(store) if run.tist < tist]
    log_file = WrittenLog(digest, size, counts)
    commit_run(store, OpenedRun.read(store, tist), log_file, documents, before, now)


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a run is for: ingest or gather, its source as given, and the `request`.

    A request for the same continues a run that was cut off, if its source still holds the same.
    `content` is a digest of the source's content, where it is known before the run.
    """

    kind: str
    source: str
    request: str
    content: str = ""


@dataclass(frozen=True, slots=True)
class ObiRuntime:
    """Dependencies of a run: the clock, how to wait, and how to show a message."""

    clock: Callable[[], datetime]
    sleep: Callable[[float], None]
    say: Callable[[str], None]

    def leases(self, store: Writer) -> Leases:
        """Return the leases by which processes show that their runs go on."""
        return Leases(store, lambda: self.clock().timestamp(), self.sleep, LEASE)


def announce(store: Writer, run: OpenedRun, runtime: ObiRuntime) -> Callable[[], None]:
    """Show that this process carries out the run; return what ends that."""
    return runtime.leases(store).announce(key.run(run.tist) + ALIVE)


def has_ended(store: Writer, run: OpenedRun, runtime: ObiRuntime) -> bool:
    """Return whether the process of an open run has ended, as far as its lease tells."""
    young = (runtime.clock() - run.begun).total_seconds() < LEASE
    is_held = runtime.leases(store).is_valid(key.run(run.tist) + ALIVE)
    return run.leased and not young and not is_held


def claim_run(store: Writer, purpose: Purpose, runtime: ObiRuntime, tist: int | None) -> OpenedRun:
    """Continue the run that was cut off, or open a new one, and return it.

    `tist` is the time of the state that is read, None for now. A run that lacks only its commit is
    completed first. Raises StoreError for a time that no run can have, and for a disk that ignores
    case in names.
    """
    if store.folds_case():
        raise StoreError(
            f"{store.address}: this disk ignores case in file names, but ids of files differ by "
            "case; use another disk, or a bucket"
        )
    for _ in range(_TRIES):
        runs = standing(store)
        run = _cut_off(store, runs, purpose, tist)
        if run is not None and LOG in runs[run.tist]:
            complete_run(store, run.tist, runtime.clock())
            continue
        if run is not None and run.content != purpose.content:
            # Abandon a run whose source has changed: the present content is not that of its
            # time.
            if tist is not None:
                raise StoreError(
                    f"the run {run.name()} was interrupted, and its source has changed since; "
                    f"abandon it with `sheaf obi --abandon {run.tist}`, then give a later time"
                )
            abandon(store, run.tist, "its source has changed since it began", runtime)
            continue
        if run is None:
            run = _open_run(store, runs, purpose, runtime, tist)
        if run is not None and not _is_overtaken(store, run, runtime):
            return run
    raise Conflict(
        f"{store.address}: other processes opened runs {_TRIES} times; run the command again"
    )


def _cut_off(
    store: Writer, runs: Mapping[int, frozenset[str]], purpose: Purpose, tist: int | None
) -> OpenedRun | None:
    """Return the open run that was asked for the same; None if there is no such run."""
    for number, members in runs.items():
        if is_open(members) and tist in (None, number):
            run = OpenedRun.read(store, number)
            if (run.kind, run.asked) == (purpose.kind, purpose.request):
                return run
    return None


def _open_run(
    store: Writer,
    runs: Mapping[int, frozenset[str]],
    purpose: Purpose,
    runtime: ObiRuntime,
    tist: int | None,
) -> OpenedRun | None:
    """Open a run and return it; None if another process took its time just before."""
    now = runtime.clock()
    last = next(_counting(store, runs), None)
    number = _time(last, int(now.timestamp()), tist)
    while tist is None and number in runs:
        number += 1  # the time of an abandoned run
    after = max((other for other in runs if other < number), default=None)
    run = OpenedRun(
        number, purpose.kind, purpose.source, purpose.request, purpose.content, now, after, True
    )
    try:
        store.create(key.run(number) + OPEN, run.document())
    except Conflict:
        if number in runs:
            raise StoreError(
                f"the run of {show_tist(number)} was abandoned, and its time cannot be used again: "
                "give a later one"
            ) from None
        return None
    return run


def _counting(store: Writer, runs: Mapping[int, frozenset[str]]) -> Iterator[int]:
    """Yield the times of runs that were not abandoned, latest first."""
    for number in sorted(runs, reverse=True):
        if is_open(runs[number]) or find_ended(store, number) is not None:
            yield number


def _time(last: int | None, now: int, tist: int | None) -> int:
    """Return the time of the next run. Raises StoreError for a time that no run can have."""
    if last is not None and now < last - BEHIND:
        raise StoreError(
            f"this machine's clock shows {show_tist(now)}, but the last run was at "
            f"{show_tist(last)}: correct the clock"
        )
    if tist is None:
        return now if last is None else max(now, last + 1)
    key.folder(tist)
    if tist > now:
        raise StoreError(f"{show_tist(tist)} is in the future: give an earlier time")
    if last is not None and tist <= last:
        raise StoreError(
            f"the store has a run of {show_tist(last)}, so a state of {show_tist(tist)} is too old "
            "to be added: ingest all states into a new store, in the order of their dates, or give "
            "a later time with --tist"
        )
    return tist


def _is_overtaken(store: Writer, run: OpenedRun, runtime: ObiRuntime) -> bool:
    """Abandon a run and return True if a later run was opened without knowing of it."""
    runs = standing(store)
    for number in _counting(store, {n: m for n, m in runs.items() if n > run.tist}):
        after = OpenedRun.read(store, number).after
        if after is None or after < run.tist:
            abandon(store, run.tist, f"another process opened the run {number}", runtime)
            return True
    return False


def abandon(store: Writer, tist: int, why: str, runtime: ObiRuntime) -> None:
    """Abandon a run: nothing of it counts from now on.

    Raises StoreError if there is no such run, or if it is committed.
    """
    if OPEN not in standing(store).get(tist, ()):
        raise StoreError(f"{store.address} has no run {tist}")
    try:
        note = write_json({"tist": tist, "abandoned": why, "at": runtime.clock()})
        store.create(key.run(tist) + COMMIT, note)
    except Conflict:
        if find_ended(store, tist) is not None:
            raise StoreError(f"the run {tist} is committed and cannot be abandoned") from None


def show_tist(tist: int) -> str:
    """Return a tist as an instant in UTC, for messages."""
    return instant.to_text(datetime.fromtimestamp(tist, UTC))
