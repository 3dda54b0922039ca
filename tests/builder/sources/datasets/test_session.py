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
from pathlib import Path
from typing import Any

import pytest

from builder.sources.datasets import request as line
from builder.sources.datasets import results
from builder.sources.datasets.entry import FilesetEntry
from builder.sources.datasets.ingest import by_turns
from builder.sources.datasets.item import IngestOutcome, IngestRequest
from builder.sources.datasets.request import BadLine, read_requests
from builder.sources.datasets.results import Keeping
from functions.snapshot.errors import StoreError

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


@dataclass
class Written:
    """Stands in for Results: what was added, and in which run it is."""

    runs: list[list[IngestOutcome]] = field(default_factory=list)
    open: list[IngestOutcome] = field(default_factory=list)
    broken: bool = False

    def add(self, outcome: IngestOutcome) -> FilesetEntry | None:
        self.open.append(outcome)
        return None

    def commit(self) -> Any:
        if self.broken:
            raise StoreError("the store is away")
        if not self.open:
            return None
        self.runs.append(self.open)
        self.open = []
        return type("Run", (), {"name": f"run-{len(self.runs)}"})()


def keeping(written: Written, kept: results.Journal, **more: Any) -> Keeping:
    return Keeping(written, kept, **more)  # type: ignore[arg-type]


def test_an_outcome_is_settled_once_a_run_has_it(tmp_path: Path) -> None:
    settled: list[IngestOutcome] = []
    now = [0.0]
    written = Written()
    with results.open_journal(tmp_path, "store") as kept:
        keep = keeping(written, kept, settled=settled.append, clock=lambda: now[0])
        first, second = (done(request) for request in urls(2))
        keep.add(first)
        now[0] = 59
        keep.tick()
        assert (settled, list(kept.outcomes())) == ([], [first])
        now[0] = 61
        keep.add(second)
        assert settled == [first, second]
        assert (settled[0].request, settled[1].request) == (first.request, second.request)
        assert (list(kept.outcomes()), keep.runs) == ([], ["run-1"])
    assert list(tmp_path.iterdir()) == []


def test_what_was_cancelled_is_settled_and_not_kept(tmp_path: Path) -> None:
    settled: list[IngestOutcome] = []
    written = Written()
    with results.open_journal(tmp_path, "store") as kept:
        keep = keeping(written, kept, settled=settled.append)
        keep.add(IngestOutcome(request=urls(1)[0], status="cancelled", at=AT))
        keep.commit()
    assert [outcome.status for outcome in settled] == ["cancelled"]
    assert written.runs == []


def test_of_a_line_that_is_no_request_nothing_is_kept(tmp_path: Path) -> None:
    settled: list[IngestOutcome] = []
    written = Written()
    bad = IngestOutcome(
        request=line.invalid_request("line 3: not JSON", "x"), status="bad-identifier", at=AT
    )
    odd = IngestRequest("10.5/1", given={"base_url": "10.5/1", "line": "of my file"})
    with results.open_journal(tmp_path, "store") as kept:
        keep = keeping(written, kept, settled=settled.append)
        for outcome in (bad, done(odd)):
            keep.add(outcome)
        keep.commit()
    assert [outcome.status for outcome in settled] == ["bad-identifier", "success"]
    assert written.runs == [[done(odd)]]


def test_what_the_store_did_not_take_is_taken_the_next_time(tmp_path: Path) -> None:
    written, first = Written(broken=True), done(urls(1)[0])
    settled: list[IngestOutcome] = []
    with results.open_journal(tmp_path, "store") as kept:
        keep = keeping(written, kept, settled=settled.append)
        keep.add(first)
        with pytest.raises(StoreError, match="away"):
            keep.commit()
    assert settled == []
    written = Written()
    with results.open_journal(tmp_path, "store") as kept:
        assert keeping(written, kept).recover() == 1
    assert written.runs == [[first]]
    assert list(tmp_path.iterdir()) == []


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
