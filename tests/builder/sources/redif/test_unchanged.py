"""An ingest that reads only what has changed records what one that reads everything does."""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builder.intake import loss
from builder.obi import replay
from builder.obi.content import FILE, SeenRow
from builder.obi.history import history
from builder.obi.log import read_rows
from builder.sources.redif.staging import Acceptance
from functions.snapshot import obi
from functions.store import engine
from tests.builder.obi.archive import Repec
from tests.builder.obi.test_publish import rows_of, sound
from tests.builder.sources.redif.trees import archive, paper
from tests.extent import examples

OLD = 1_700_000_000
PLACES = {"pack", "start"}
"""Columns that may differ: a pack has what its run stored."""
_OF_RUN = {"begun", "committed", "log", "digest", "previous", "counts"}


def list_tables(repec: Repec) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the replay, but for places in packs and for facts of runs."""
    found: dict[str, list[dict[str, Any]]] = {}
    with (
        TemporaryDirectory() as folder,
        closing(engine.connect(scratch=Path(folder))) as connection,
    ):
        replay.fold(connection, repec.store, history(repec.store), Path(folder))
        for table in (*obi.TABLES, "archive", "fault", "seen"):
            cursor = connection.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            without = PLACES | (_OF_RUN if table == "run" else set())
            rows = [
                {n: v for n, v in zip(names, row, strict=True) if n not in without}
                for row in cursor.fetchall()
            ]
            found[table] = sorted(rows, key=repr)
    return found


def list_items(repec: Repec) -> dict[str, tuple[Any, ...]]:
    """Return what is published of each item that is not deleted: its sets and its document."""
    newest = {
        row["identifier"]: row
        for row in sorted(rows_of(repec, "records"), key=lambda row: row["position"])
    }
    return {
        name: (row["sets"], row["document"]) for name, row in newest.items() if not row["deleted"]
    }


@dataclass(frozen=True)
class Step:
    """A state of the folder: its files by path, what is accepted, and what happened before it."""

    files: Mapping[str, bytes]
    accepted: tuple[str, ...] = ()
    before: str = ""
    touched: bool = False


_PAPER = st.builds(
    lambda number, title, code: paper(number, title, archive=code),
    st.integers(1, 4),
    st.sampled_from(["On Rugs", "On Bowls"]),
    st.sampled_from(["aaa", "bbb"]),
)
_DATA = st.one_of(
    st.lists(_PAPER, min_size=1, max_size=4).map(b"\n".join),
    st.just(b"<html><body>gone</body></html>"),
    st.just(b"Template-Type: ReDIF-Paper 1.0\nTitle: Nameless\n\n" + paper(2, "Caf\xe9")),
)
_NAMES = st.sampled_from(
    [f"{code}/wpaper/{name}.rdf" for code in ("aaa", "bbb") for name in "xy"]
    + ["aaa/more/x.rdf", "stray.rdf"]
)


@st.composite
def _steps(draw: st.DrawFn) -> list[Step]:
    files = {**archive(), **archive("bbb"), "aaa/wpaper/x.rdf": paper(1), "bbb/x.rdf": paper(2)}
    found = [Step(dict(files))]
    for _ in range(draw(st.integers(2, 5))):
        for name, data in draw(st.lists(st.tuples(_NAMES, st.none() | _DATA), max_size=3)):
            files.pop(name, None)
            if data is not None:
                files[name] = data
        for name, data in {**archive(), **archive("bbb")}.items():
            head = draw(st.sampled_from([data] * 5 + [None, data.replace(b"Working", b"Walking")]))
            files.pop(name, None)
            if head is not None:
                files[name] = head
        accepted = draw(st.sampled_from([(), (), (), ("*",), ("bbb",)]))
        before = draw(st.sampled_from(["", "", "", "gather", "other"]))
        found.append(Step(dict(files) or {"stray.rdf": paper(1)}, accepted, before, draw(_TOUCHED)))
    return found


_TOUCHED = st.sampled_from([False, False, False, True])


def _write(folder: Path, step: Step, number: int) -> None:
    """Make the folder hold the files of a step; only changed ones get another time."""
    there = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}
    for name in there.keys() - step.files.keys():
        there[name].unlink()
    for name, data in step.files.items():
        path = folder / name
        if step.touched or name not in there or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            os.utime(path, (OLD + number, OLD + number))


def _compare(folder: Path, steps: Sequence[Step]) -> None:
    """Ingest the steps into two stores, in one of them without the short cut, and compare them."""
    source, other = folder / "RePEc", folder / "other" / "RePEc"
    source.mkdir()
    _write(other, Step({**archive(), "aaa/wpaper/x.rdf": paper(1, "Other")}), 0)
    short, whole = (Repec(folder / name / "store") for name in ("short", "whole"))
    homes = {id(short): folder / "short", id(whole): None}
    try:
        for number, step in enumerate(steps):
            _write(source, step, number)
            reports = []
            for repec in (short, whole):
                if step.before == "gather":
                    repec.gathered(SeenRow(id="http://example.org/", kind=FILE, status=304))
                if step.before == "other":
                    repec.replay(other, is_tree=True)
                accepted = Acceptance("*" in step.accepted, set(step.accepted) - {"*"})
                home = homes[id(repec)]
                report = repec.replay(source, is_tree=True, accepted=accepted, home=home)
                assert report is not None
                reports.append(replace(report, commit="", known_files=0))
            assert reports[0] == reports[1]
        assert _list_logged(short) == _list_logged(whole)
        found, right = list_tables(short), list_tables(whole)
        for table in right:
            assert found[table] == right[table], table
        for repec in (short, whole):
            repec.clock.sleep(10)
            repec.publish()
        assert list_items(short) == list_items(whole)
        assert sound(short) == []
    finally:
        short.close()
        whole.close()


def _list_logged(repec: Repec) -> list[tuple[int, list[str]]]:
    """Return the rows of all logs, by run, but for places in packs."""
    found = []
    for run in history(repec.store):
        rows = (
            [(n, v) for n, v in asdict(row).items() if n not in PLACES] + [row.row]
            for row in read_rows(repec.store, run)
        )
        found.append((run.tist, sorted(map(repr, rows))))
    return found


_BASE = {**archive(), **archive("bbb"), "aaa/wpaper/x.rdf": paper(1)}
_MORE = {"aaa/wpaper/y.rdf": b"\n".join(paper(n) for n in range(10, 25))}
_OTHER = _MORE["aaa/wpaper/y.rdf"].replace(b"On Rugs", b"On Bowls", 1)
_MANY = {f"aaa/wpaper/{n}.rdf": paper(n) for n in range(5)}
_FEWER = {
    name: data for name, data in _MANY.items() if "/wpaper/0" not in name and "/1" not in name
}


@settings(max_examples=examples(10))
@given(_steps())
# A loss that is held stays held, against the templates that have not changed.
@example([Step({**_BASE, **_MANY}), Step(_BASE), Step(_BASE), Step(_BASE, ("*",)), Step(_BASE)])
# A loss that is small against the templates that have not changed is none to hold.
@example([Step({**archive(), **_MORE, **_MANY}), Step({**archive(), **_MORE, **_FEWER})])
# One template of a file changes; then a known one comes back, with a fault before it.
@example(
    [
        Step({**archive(), **_MORE}),
        Step({**archive(), "aaa/wpaper/y.rdf": _OTHER}),
        Step({**archive(), "aaa/wpaper/y.rdf": _OTHER + b"\n" + paper(11)}),
        Step(archive()),
        Step({**archive(), "aaa/wpaper/y.rdf": b"Odd: 1\n" + _OTHER}),
        Step({**archive(), "aaa/wpaper/y.rdf": _OTHER + paper(11)}, before="other"),
    ]
)
# A template moves to another file, to one outside of archives, and to one that has it already.
@example(
    [
        Step({**_BASE, "aaa/y.rdf": paper(1), "aaa/z.rdf": paper(3)}),
        Step({**archive(), "aaa/y.rdf": paper(1), "stray.rdf": paper(3)}),
        Step({**archive(), "aaa/y.rdf": paper(1), "stray.rdf": paper(3)}),
        Step({**archive(), "aaa/v.rdf": paper(1) * 2, "stray.rdf": paper(3)}),
    ]
)
def test_a_short_ingest_records_what_a_whole_one_does(steps: list[Step]) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss, "FEW", 1)
        _compare(Path(name), steps)
