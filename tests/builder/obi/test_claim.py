"""Claims: who gets which time, by which clock, and who comes after whom."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from builder.obi import key
from builder.obi.claim import OpenedRun
from builder.obi.history import standing
from builder.obi.run import Committed, ObiRuntime, Purpose, abandon, claim, history
from builder.store.folder import FolderStore
from functions.snapshot.errors import Conflict, StoreError
from tests.builder.obi.conftest import Time
from tests.builder.obi.holding import GATHER, HANDLE, INGEST, Store, ingested
from tests.builder.obi.logs import describe, put
from tests.builder.obi.writing import PURPOSE, written

pytestmark = pytest.mark.shared(2)

NOW = 1795255200  # of the clock in these tests


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seconds", [0, 1, 3599, 3600, 86_400])
def test_a_clock_that_is_a_little_behind_is_no_fault_and_one_of_a_day_is(
    store: Store, time: Time, seconds: int
) -> None:
    ingested(store, time, {HANDLE: "x"})
    time.clock.now -= timedelta(seconds=seconds)
    if seconds <= 3600:
        assert claim(store, INGEST, time.runtime).tist == NOW + 1
        return
    with pytest.raises(StoreError, match=r"clock shows 2026-11-20T10:00:00Z.*the last run was at"):
        claim(store, INGEST, time.runtime)
    assert len(standing(store)) == 1


@pytest.mark.sampled(3)
def test_a_run_of_a_given_time(store: Store, time: Time) -> None:
    """History is replayed: each run at its date."""
    dates = [datetime(2025, 1, day, tzinfo=UTC) for day in (5, 6, 7)]
    for date in dates:
        run = claim(store, INGEST, time.runtime, tist=int(date.timestamp()))
        run.commit([])
    assert [run.tist for run in history(store)] == [d.timestamp() for d in dates]
    assert history(store)[0].begun == time.clock.now
    with pytest.raises(
        StoreError,
        match=r"has a run of 2025-01-07T00:00:00Z, so a state of .* order of their dates",
    ):
        claim(store, INGEST, time.runtime, tist=int(dates[1].timestamp()))
    with pytest.raises(StoreError, match="is in the future"):
        claim(store, INGEST, time.runtime, tist=NOW + 1)
    with pytest.raises(key.BadTist, match="9 to 11 digits"):
        claim(store, INGEST, time.runtime, tist=12)
    assert claim(store, INGEST, time.runtime).tist == NOW


def test_a_given_time_goes_on_with_its_own_run_alone(store: Store, time: Time) -> None:
    first = claim(store, INGEST, time.runtime, tist=NOW - 10)
    second = claim(store, INGEST, time.runtime, tist=NOW - 5)
    assert claim(store, INGEST, time.runtime, tist=NOW - 10).tist == first.tist
    assert claim(store, GATHER, time.runtime).tist == NOW
    second.abandon("x")
    with pytest.raises(StoreError, match="is too old to be added"):
        claim(store, INGEST, time.runtime, tist=NOW - 5)


def test_the_time_of_an_abandoned_run_is_given_to_nobody(store: Store, time: Time) -> None:
    claim(store, INGEST, time.runtime, tist=NOW - 10).abandon("x")
    with pytest.raises(StoreError, match="was abandoned, and its time cannot be used again"):
        claim(store, INGEST, time.runtime, tist=NOW - 10)
    assert claim(store, INGEST, time.runtime, tist=NOW - 11).tist == NOW - 11


def test_an_abandoned_run_of_a_wrong_clock_stands_in_nobody_s_way(store: Store, time: Time) -> None:
    time.clock.now += timedelta(days=3650)
    run = claim(store, INGEST, time.runtime)
    time.clock.now -= timedelta(days=3650)
    with pytest.raises(StoreError, match="correct the clock"):
        claim(store, GATHER, time.runtime)
    abandon(store, run.tist, "the clock was wrong", time.runtime)
    assert claim(store, GATHER, time.runtime).tist == NOW


@pytest.mark.sampled(3)
def test_two_writers_in_the_same_second(store: Store) -> None:
    """One gets the time, the other the next; both commit, and nothing is overwritten."""
    together = threading.Barrier(2)

    def write(name: str) -> Committed:
        time = Time()
        runtime = ObiRuntime(time.clock, lambda seconds: None, time.said.append)
        together.wait(30)
        run = claim(store, Purpose("ingest", name, name), runtime)
        data = name.encode()
        where = put(run, HANDLE, data)
        while True:
            try:
                run.turn()
                break
            except StoreError as error:
                assert "is still open" in str(error)  # noqa: PT017
        return run.commit([describe(where, data, HANDLE)])

    for _ in range(3):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(write, ("a", "b")))
    runs = history(store)
    assert len(runs) == 6
    assert {r.source for r in runs[:2]} == {"a", "b"}
    assert [store.read(key.key(r.tist, HANDLE)) for r in runs] == [r.source.encode() for r in runs]
    assert len({r.tist for r in runs}) == 6
    counting = [r.tist for r in runs]
    gone = [t for t in standing(store) if t not in counting]
    assert min(counting + gone) == NOW
    for before, run in pairwise(runs):
        assert run.previous == before.digest


@pytest.mark.sampled(3)
def test_two_who_go_on_with_one_run_write_it_once(store: Store) -> None:
    """The same command was given twice: both find the run open, and write the same."""
    run = claim(store, PURPOSE, Time().runtime)
    together = threading.Barrier(2)

    def go_on(_: int) -> Committed:
        together.wait(30)
        return written(store, Time().runtime)

    with ThreadPoolExecutor(2) as pool:
        done = set(pool.map(lambda n: go_on(n).tist, range(2)))
    assert run.tist in done
    assert [r.tist for r in history(store)] == sorted(done)
    assert history(store)[0].counts == {"version": 4, "redirect": 1}


class Late(FolderStore):
    """Between the listing and the opening of a run somebody else does something."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.meanwhile = lambda: None

    def create(self, key: str, data: bytes) -> None:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        if key.endswith("open.json"):
            meanwhile()
        super().create(key, data)


def test_a_run_that_a_later_one_could_not_know_of_begins_anew(tmp_path: Path, time: Time) -> None:
    """The later one has looked before the earlier one was opened, and may have committed."""
    store = Late(tmp_path)
    ahead = Time()
    ahead.clock.now += timedelta(seconds=5)
    store.meanwhile = lambda: (
        claim(FolderStore(tmp_path), GATHER, ahead.runtime).commit([]) and None
    )
    run = claim(store, INGEST, time.runtime)
    assert run.tist == NOW + 6
    assert [r.tist for r in run.turn()] == [NOW + 5]
    assert run.commit([]).previous == history(store)[0].digest
    assert b'"abandoned": "another process opened the run 1795255205"' in store.read(
        key.run(NOW) + "commit.json"
    )


def test_a_run_that_was_cut_off_before_it_could_look_begins_anew(
    tmp_path: Path, time: Time
) -> None:
    """It opened a run, behind which somebody else had committed, and was killed at once."""
    store = FolderStore(tmp_path)
    opened = OpenedRun(NOW - 50, "ingest", "RePEc", INGEST.request, "", time.clock.now, None)
    claim(store, GATHER, time.runtime).commit([])
    store.create(key.run(opened.tist) + "open.json", opened.document())
    run = claim(store, INGEST, time.runtime)
    assert run.tist == NOW + 1
    run.commit([])
    assert len(history(store)) == 2


def test_a_later_run_found_committed_ends_this_one(tmp_path: Path, time: Time) -> None:
    store = FolderStore(tmp_path)
    run = claim(store, INGEST, time.runtime)
    other = OpenedRun(NOW + 9, "gather", "x", "x", "", time.clock.now, None)
    store.create(key.run(other.tist) + "open.json", other.document())
    run.abandon("x")
    Time()
    done = claim(store, Purpose("gather", "x", "x"), time.runtime, tist=other.tist).commit([])
    with pytest.raises(Conflict, match="was too late"):
        run.turn()
    assert history(store) == (done,)


def test_a_disk_that_folds_case_is_refused(tmp_path: Path, time: Time) -> None:
    class Folding(FolderStore):
        """Takes names that differ by case alone for one."""

        def path(self, key: str) -> Path:
            return super().path(key.lower())

        def folds_case(self) -> bool:
            self.create("probe", b"")
            return self.tag("PROBE") is not None

    with pytest.raises(StoreError, match="differ by case"):
        claim(Folding(tmp_path), INGEST, time.runtime)
    assert not FolderStore(tmp_path).folds_case()
