"""Older states after later ones: the history is the one of their dates, in whatever order."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.obi import replay
from builder.obi.history import history, is_open, standing
from builder.obi.run import ObiRun, Purpose, claim
from builder.redif import staging
from builder.redif.acceptance import Acceptance
from builder.redif.account import RedifReport
from builder.redif.job import RedifJob, accept_held
from builder.redif.spool import FileOrigin
from builder.verify.verify import VerifyRuntime, verify
from builder.withdraw.rebuild import rebuild
from functions.database import engine
from functions.snapshot import obi
from functions.snapshot.errors import StoreError
from tests.builder.obi.archive import EVERYTHING, Repec, harvested, state
from tests.builder.obi.test_publish import rows_of
from tests.builder.redif.trees import archive, paper, tarball
from tests.extent import examples

DAY = 86400
BEGIN = 1_700_000_000
PLACES = {"pack", "start"}
"""Columns that may differ: a pack has what its run stored."""
_OF_RUN = {"begun", "committed", "log", "digest", "previous", "counts"}


@dataclass(frozen=True)
class State:
    """A tarball: its members by path, its day, and what is accepted of it."""

    day: int
    files: tuple[tuple[str, bytes], ...]
    accepted: tuple[str, ...] = ()
    encoding: str | None = None

    @property
    def tist(self) -> int:
        return BEGIN + DAY * self.day


_PAPER = st.builds(
    lambda number, title, code: paper(number, title, archive=code),
    st.integers(1, 3),
    st.sampled_from(["On Rugs", "On Bowls", "\xd0\xd1"]),
    st.sampled_from(["aaa", "bbb"]),
)
_DATA = st.one_of(
    st.lists(_PAPER, min_size=1, max_size=3).map(b"\n".join),
    st.just(b"<html><body>gone</body></html>"),
    st.just(paper(1, "Caf").replace(b"Caf", b"\xd2\xee")),
)
_NAMES = st.sampled_from(
    [f"RePEc/{code}/wpaper/{name}.rdf" for code in ("aaa", "bbb") for name in "xy"]
    + ["RePEc/stray.rdf"]
)
_HEADS = st.sampled_from(
    [
        [],
        [0],
        [0, 1],
        [0, 1],
        [0, 1],
    ]
)


@st.composite
def _states(draw: st.DrawFn) -> list[State]:
    found = []
    for day in range(draw(st.integers(2, 4))):
        files = dict(draw(st.lists(st.tuples(_NAMES, _DATA), max_size=5)))
        for code in draw(st.sampled_from([["aaa"], ["aaa", "bbb"], ["aaa", "bbb"]])):
            head = list(archive(code).items())
            for number in draw(_HEADS):
                name, data = head[number]
                if number and draw(st.booleans()):
                    data = data.replace(b"Working", b"Walking")
                files[f"RePEc/{name}"] = data
        twice = draw(st.lists(st.tuples(_NAMES, _DATA), max_size=1))
        accepted = draw(st.sampled_from([(), (), ("*",), ("bbb",)]))
        encoding = draw(st.sampled_from([None, None, "koi8-r"]))
        members = (*sorted(files.items()), *twice) or ((("RePEc/stray.rdf", paper(1))),)
        found.append(State(day, tuple(members), accepted, encoding))
    return found


def _ingest(repec: Repec, one: State) -> RedifReport | None:
    path = tarball(repec.root.parent / f"{one.tist}.tar", one.files, "")
    encodings = {"aaa": one.encoding} if one.encoding else {}
    accepted = Acceptance.parse(one.accepted)
    return repec.replay(path, tist=one.tist, accepted=accepted, encodings=encodings)


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
    newest = {row["identifier"]: row for row in sorted(rows_of(repec, "records"), key=_position)}
    return {
        name: (row["sets"], row["document"]) for name, row in newest.items() if not row["deleted"]
    }


def _position(row: Mapping[str, Any]) -> int:
    return int(row["position"])


def _make(folder: Path, states: Sequence[State], publishes: Sequence[bool]) -> Repec:
    """Ingest the states in this order, and publish after some of them and at the end."""
    folder.mkdir()
    repec = Repec(folder / "store")
    mirror: dict[str, Any] = {}
    since = None
    for one, shown in zip(states, publishes, strict=False):
        _ingest(repec, one)
        if shown or one is states[-1]:
            repec.clock.sleep(10)
            repec.publish()
            with repec.asked() as client:
                since = harvested(client, mirror, since)
                assert mirror == state(client)
    return repec


def find_damage(repec: Repec) -> list[str]:
    means = VerifyRuntime(repec.clock, lambda total: nullcontext(lambda n: None), 512, 1)
    found = verify(repec.store, means)
    assert found.objects_read == found.objects > 0
    return [str(one) for one in found.findings if one.kind == "damage"]


@settings(max_examples=examples(6), deadline=None)
@given(_states(), st.data())
def test_the_order_of_ingest_changes_no_history(states: list[State], data: st.DataObject) -> None:
    order = data.draw(st.permutations(states))
    publishes = data.draw(st.lists(st.booleans(), min_size=len(states), max_size=len(states)))
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "FEW", 1)
        dated = _make(Path(name) / "dated", states, [False] * len(states))
        other = _make(Path(name) / "other", order, publishes)
        try:
            right, found = list_tables(dated), list_tables(other)
            for table in right:
                assert found[table] == right[table], table
            assert list_items(other) == list_items(dated)
        finally:
            dated.close()
            other.close()


def _day(day: int, *papers: bytes, name: str = "x", accepted: tuple[str, ...] = ()) -> State:
    """Return a whole archive with these papers in one file."""
    files = {f"RePEc/{path}": data for path, data in archive().items()}
    files[f"RePEc/aaa/wpaper/{name}.rdf"] = b"\n".join(papers) or b"\n"
    return State(day, tuple(files.items()), accepted)


@pytest.fixture
def older(tmp_path: Path) -> Iterator[Repec]:
    """A store in which an older state was added and published after a later one was."""
    states = [_day(3, paper(1, "New"), paper(2)), _day(1, paper(1), paper(2), paper(3))]
    repec = _make(tmp_path / "older", states, [True, True])
    yield repec
    repec.close()


def _events(repec: Repec) -> list[tuple[int, str, str, bool]]:
    return [
        ((row["tist"] - BEGIN) // DAY, row["id"].rpartition(":")[2], row["what"], row["again"])
        for row in list_tables(repec)["incidence"]
        if row["id"].startswith("RePEc:aaa:wpaper:")
    ]


def test_a_pack_that_logs_of_several_formats_name_is_read_once(tmp_path: Path) -> None:
    states = [_day(day, paper(1, f"Title {day}"), name=f"x{day}") for day in (3, 4, 1)]
    repec = _make(tmp_path / "older", states, [False, False, True])
    try:
        assert find_damage(repec) == []
    finally:
        repec.close()


def test_what_an_older_state_had_is_in_the_history_and_the_store_is_sound(older: Repec) -> None:
    assert _events(older) == [
        (1, "1", "appearance", False),
        (1, "2", "appearance", False),
        (1, "3", "appearance", False),
        (3, "1", "change", False),
        (3, "3", "deletion", False),
    ]
    assert find_damage(older) == []
    runs = history(older.store)
    assert [(run.as_of or 0) > 0 for run in runs] == [False, True]
    assert [run.tist for run in runs] == sorted(run.tist for run in runs)
    # The later run's pack has the second archive file and series; they are not stored again.
    assert sum(1 for _ in older.store.keys("obi/;packs/")) == 2


def test_a_store_with_an_older_state_is_rebuilt_with_the_same_datestamps(
    older: Repec, tmp_path: Path
) -> None:
    with older.asked() as client:
        before = state(client)
    assert len({stamp for stamp, *_ in before.values()}) == 2
    (tmp_path / "new").mkdir()
    new = Repec(tmp_path / "new" / "store")
    shutil.copytree(older.root / "obi", new.root / "obi")
    new.clock.now = older.clock.now + timedelta(days=1)
    assert rebuild(new.store, new.configuration(), new.runtime(), {}) == 2
    with new.asked() as client:
        assert state(client) == before
    new.close()


def test_an_older_state_that_was_cut_off_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = [_day(3, paper(1, "New"), paper(2)), _day(1, paper(1), paper(2), paper(3))]
    repec = _make(tmp_path / "cut", states[:1], [True])
    with monkeypatch.context() as patch:
        patch.setattr(ObiRun, "commit_files", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            _ingest(repec, states[1])
    (opened,) = [tist for tist, members in standing(repec.store).items() if is_open(members)]
    _ingest(repec, states[1])
    assert history(repec.store)[-1].tist == opened
    assert [event[0] for event in _events(repec)] == [1, 1, 1, 3, 3]
    repec.close()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_loss_that_an_older_state_shows_is_held_and_accepted_at_its_own_date(
    tmp_path: Path,
) -> None:
    few, many = _day(3, paper(1)), _day(1, *(paper(number) for number in range(1, 20)))
    repec = _make(tmp_path / "held", [few], [True])
    report = _ingest(repec, many)
    assert report is not None
    assert report.held_later == {few.tist: {"aaa": 18}}
    assert "18 templates of RePEc:aaa disappeared at once until 2023-11-17" in report.text()
    assert len(list_tables(repec)["incidence"]) == 21
    path = repec.root.parent / f"{few.tist}.tar"
    order = RedifJob((FileOrigin(path, path.name, is_tree=False),), few.tist, EVERYTHING)
    accepted = accept_held(repec.store, order)
    assert accepted.tist == few.tist + 1
    repec.replay(path, tist=accepted.tist)
    gone = [row["tist"] for row in list_tables(repec)["incidence"] if row["what"] == "deletion"]
    assert gone == [few.tist + 1] * 18
    repec.close()


def test_a_run_that_does_not_tell_what_it_read_takes_no_older_state_before_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "bare").mkdir()
    repec = Repec(tmp_path / "bare" / "store")
    claim(repec.store, Purpose("ingest", "x", "x"), repec.run_outside, tist=BEGIN + DAY).commit([])
    with pytest.raises(StoreError, match="made by an earlier Sheaf"):
        _ingest(repec, _day(0, paper(1)))
    _ingest(repec, _day(2, paper(1)))
    assert [run.time for run in history(repec.store)] == [BEGIN + DAY, BEGIN + 2 * DAY]
    repec.close()
