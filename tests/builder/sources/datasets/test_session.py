"""Many requests at once, and what becomes of their outcomes."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builder.intake import intake
from builder.intake.lines import line_table
from builder.sources.datasets import request as line
from builder.sources.datasets import results
from builder.sources.datasets.ingest import by_turns
from builder.sources.datasets.item import IngestOutcome, IngestRequest
from builder.sources.datasets.request import BadLine, read_requests
from builder.sources.datasets.results import Keeping, Results
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreError
from functions.store import engine
from tests.builder.sources.datasets.command import refuse_runs
from tests.builder.sources.datasets.outcomes import failed, item, outcome

AT = "20261122100000"


def done(request: IngestRequest) -> IngestOutcome:
    return IngestOutcome(request=request, status="success", at=AT)


def urls(many: int) -> list[IngestRequest]:
    return [IngestRequest(f"https://data.example.org/{n}") for n in range(many)]


def test_requests_are_asked_for_by_one_thread_at_a_time_and_not_after_a_stop() -> None:
    asked: list[int] = []
    stop = threading.Event()

    def requests() -> Iterator[IngestRequest]:
        for number, request in enumerate(urls(10)):
            asked.append(number)
            yield request

    first, second = (work() for work in [by_turns(done, requests(), stop)] * 2)
    outcomes = [next(first), next(second), next(first)]
    assert [outcome.request for outcome in outcomes] == urls(3)
    assert asked == [0, 1, 2]
    stop.set()
    assert [*first, *second] == []
    assert asked == [0, 1, 2]


NOW = datetime(2026, 11, 22, 10, tzinfo=UTC)


def rows(store: FolderStore) -> list[tuple[str, str, str | None]]:
    """Return deed, status and kind of each row of the intake."""
    found = list(intake.runs(store))
    files = intake.files(store, found, intake.keys_of(store, found), "filesets")
    connection = engine.connect(threads=1)
    sql = f"SELECT deed, status, kind FROM {line_table(files, intake.FILESETS)} ORDER BY ALL"
    return connection.execute(sql, {"files": files}).fetchall() if files else []


@dataclass
class Kept:
    """Keeps outcomes in a store by way of a journal, as a process does."""

    folder: Path
    settled: list[IngestOutcome] = field(default_factory=list)

    @property
    def store(self) -> FolderStore:
        return FolderStore(self.folder / "store")

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def writer(self) -> Results:
        return Results(self.store, self.folder / "scratch", lambda: NOW)

    def keeping(self, journal: results.Journal, **more: Any) -> Keeping:
        return Keeping(self.writer(), journal, self.settled.append, **more)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    (tmp_path / "home").mkdir()
    return Kept(tmp_path)


def test_an_outcome_is_settled_once_a_run_has_it(kept: Kept) -> None:
    now = [0.0]
    with results.open_journal(kept.home, "store") as journal:
        keeping = kept.keeping(journal, clock=lambda: now[0])
        first, second = (done(request) for request in urls(2))
        keeping.add(first)
        now[0] = 59
        keeping.tick()
        assert (kept.settled, list(journal.outcomes())) == ([], [first])
        now[0] = 61
        keeping.add(second)
        assert kept.settled == [first, second]
        runs = [run.name for run in intake.runs(kept.store)]
        assert (list(journal.outcomes()), keeping.runs, len(runs)) == ([], runs, 1)
    assert list(kept.home.iterdir()) == []


def test_what_was_cancelled_and_what_is_no_request_is_settled_and_not_kept(kept: Kept) -> None:
    bad = line.invalid_request("line 3: not JSON", "x")
    odd = IngestRequest("10.5/1", given={"base_url": "10.5/1", "line": "of my file"})
    outcomes = [
        failed("cancelled", request=urls(1)[0]),
        failed("bad-identifier", request=bad),
        done(odd),
    ]
    with results.open_journal(kept.home, "store") as journal:
        keeping = kept.keeping(journal)
        for outcome in outcomes:
            keeping.add(outcome)
        keeping.commit()
    assert kept.settled == outcomes
    assert rows(kept.store) == [("leave", "success", None)]


def test_what_the_store_did_not_take_is_taken_the_next_time(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    with results.open_journal(kept.home, "store") as journal:
        keeping = kept.keeping(journal)
        keeping.add(done(urls(1)[0]))
        with monkeypatch.context() as patch:
            refuse_runs(patch, "the store is away")
            with pytest.raises(StoreError, match="away"):
                keeping.commit()
    assert (kept.settled, rows(kept.store)) == ([], [])
    with results.open_journal(kept.home, "store") as journal:
        assert kept.keeping(journal).recover() == 1
    assert rows(kept.store) == [("leave", "success", None)]
    assert list(kept.home.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from builder.sources.datasets import results
from builder.sources.datasets.item import IngestOutcome, IngestRequest
with results.open_journal(Path(sys.argv[1]), sys.argv[2]) as kept:
    for n in range(3):
        request = IngestRequest(f"https://data.example.org/{n}")
        kept.add(IngestOutcome(request=request, status="success", at="20261122100000"))
    with (kept.folder / "outcomes").open("ab") as file:
        file.write(b'{"request": {"base_u')
        file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_taken_over_by_the_next_one_of_its_store(
    tmp_path: Path,
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "store"], check=False)
    assert killed.returncode == -signal.SIGKILL
    with results.open_journal(tmp_path, "another store") as kept:
        assert list(kept.outcomes()) == []
    with results.open_journal(tmp_path, "store") as kept:
        assert [outcome.request for outcome in kept.outcomes()] == urls(3)
        kept.clear()
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_is_torn_spoils_no_other(tmp_path: Path) -> None:
    first, second = (done(request) for request in urls(2))
    with results.open_journal(tmp_path, "store") as kept:
        kept.add(first)
        with (kept.folder / "outcomes").open("ab") as file:
            file.write(b'{"request": {"base_u')
        kept.add(second)
        assert list(kept.outcomes()) == [first, second]
        kept.clear()


def test_a_folder_that_another_process_takes_for_left_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, seen = results.lock_folder, []

    def first(folder: Path) -> Any:
        seen.append(folder)
        return locked(folder) if len(seen) > 1 else None

    monkeypatch.setattr(results, "lock_folder", first)
    with results.open_journal(tmp_path, "store") as kept:
        kept.add(done(urls(1)[0]))
        assert kept.folder == seen[1] != seen[0]
        kept.clear()


def test_what_a_process_has_that_lives_is_left_alone(tmp_path: Path) -> None:
    with results.open_journal(tmp_path, "store") as living:
        living.add(done(urls(1)[0]))
        with results.open_journal(tmp_path, "store") as kept:
            assert list(kept.outcomes()) == []
        assert len(list(living.outcomes())) == 1
        with (living.folder / ".lock").open("rb") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        living.clear()


def test_a_journal_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    with (
        pytest.raises(StoreError, match="cannot be written"),
        results.open_journal(blocked, "store"),
    ):
        pass


# Lines


def fed(data: bytes) -> list[IngestRequest]:
    out, into = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(into, data), os.close(into)))
    writer.start()
    try:
        return list(read_requests(out, threading.Event()))
    finally:
        writer.join()
        os.close(out)


def test_a_line_is_a_request_and_its_other_fields_come_back() -> None:
    (found,) = fed(b' {"base_url": " 10.5/1 ", "link_source": "doi"}\n')
    assert (found.base_url, found.ingest_type) == ("10.5/1", "dataset")
    assert found.given["link_source"] == "doi"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"honey of Brno", "line 1: not JSON: "),
        (b"[1]", "line 1: not a JSON object"),
        (b"{}", "line 1: base_url: expected a URL or a DOI"),
        (b'{"base_url": 3}', "line 1: base_url: expected a URL or a DOI"),
        (b'{"base_url": " "}', "line 1: base_url: expected a URL or a DOI"),
        (b'{"base_url": "%s"}' % (b"x" * 1501), "line 1: base_url: more than 1,500 characters"),
        (b'{"base_url": "a", "ingest_type": 3}', "line 1: ingest_type: expected a text"),
        (b'{"base_url": "a", "n": NaN}', "line 1: not JSON: NaN is not a JSON number"),
        (b'{"base_url": "\xff"}', "line 1: no UTF-8"),
        (b"[" * 100_000, "line 1: not JSON: "),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value,
)
def test_a_line_that_is_none_is_named(data: bytes, problem: str) -> None:
    (found,) = fed(data)
    assert found.base_url.startswith(problem)
    assert len(str(found.given["line"])) <= 1500


def test_lines_are_counted_and_empty_ones_passed_over() -> None:
    found = fed(b'\n{"base_url": "a"}\r\n\nnothing\n{"base_url": "b"}')
    assert [request.base_url[:7] for request in found] == ["a", "line 4:", "b"]


def test_of_a_line_without_end_little_is_in_memory() -> None:
    found = fed(b"x" * (6 * line.LONGEST) + b'\n{"base_url": "b"}\n')
    assert [request.base_url for request in found] == [
        "line 1: more than 1,000,000 characters",
        "b",
    ]


def test_a_feed_that_nobody_writes_to_ends_with_the_run() -> None:
    out, into = os.pipe()
    stop = threading.Event()
    ended = threading.Timer(0.3, stop.set)
    ended.start()
    began = time.monotonic()
    assert list(read_requests(out, stop)) == []
    assert time.monotonic() - began < 30
    os.close(into)
    os.close(out)


def test_a_request_of_a_url_is_given_back_as_one() -> None:
    assert line.request_of_text("10.5/1").given == {"base_url": "10.5/1", "ingest_type": "dataset"}
    with pytest.raises(BadLine):
        line.parse_request("")


def test_results_are_a_run(kept: Kept) -> None:
    store, writer = kept.store, kept.writer()
    assert writer.commit() is None
    writer.add(outcome(item("a.csv")))
    writer.add(failed("platform-gone"))
    run = writer.commit()
    assert run.name.startswith("20261122T100000Z-")
    assert [one.name for one in intake.runs(store)] == [run.name]
    assert run.results == 2
    assert rows(store) == [
        ("delete", "platform-gone", None),
        ("list", "success-file", "file"),
    ]
    assert writer.commit() is None
    writer.add(failed("stalled"))
    assert writer.commit() != run
    assert len([*intake.runs(store)]) == 2
    assert not any((kept.folder / "scratch").iterdir())


def test_many_threads_may_add(kept: Kept) -> None:
    store, writer = kept.store, kept.writer()

    def add() -> None:
        for _ in range(50):
            writer.add(outcome(item("a.csv", "b.csv")))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.commit()
    assert rows(store) == [("list", "success", "fileset")] * 200


def test_what_could_not_be_committed_is_committed_the_next_time(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, writer = kept.store, kept.writer()
    writer.add(outcome(item("a.csv")))
    with monkeypatch.context() as patch:
        refuse_runs(patch, "the store does not answer")
        with pytest.raises(StoreError, match="does not answer"):
            writer.commit()
    assert rows(store) == []
    writer.add(failed("stalled"))
    writer.commit()
    assert rows(store) == [("leave", "stalled", None), ("list", "success-file", "file")]
