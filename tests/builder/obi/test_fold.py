"""The fold of logs made by hand."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.obi import key, replay
from builder.obi.content import ArchiveRow, FailureRow, FaultRow, Redirect, Refipo, Row, SeenRow
from builder.obi.history import LOG, Committed
from builder.store.folder import FolderStore
from functions.snapshot import obi, schema
from functions.snapshot.errors import DamagedStore
from functions.store import engine
from tests.builder.obi.logs import incidence, logged, version
from tests.extent import examples

pytestmark = pytest.mark.shared(2)

P, Q, U = "RePEc:aaa:ssssss:1", "RePEc:aaa:ssssss:2", "http://a.org/1.pdf"
LOST = "RePEc:aaa:ssssss:3"
T = 1_700_000_000


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


class Folded:
    def __init__(self, store: FolderStore, runs: Sequence[Committed], scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self.connection = engine.connect(scratch=scratch)
        replay.fold(self.connection, store, runs, scratch)

    def rows(self, table: str) -> list[dict[str, Any]]:
        found = self.connection.execute(f"SELECT * FROM {table} ORDER BY ALL")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def obi(self, id_: str) -> dict[str, Any]:
        (row,) = [row for row in self.rows("obi") if row["id"] == id_]
        return row


@pytest.fixture
def folded(store: FolderStore, tmp_path: Path) -> Any:
    def make(*runs: tuple[int, Sequence[Row]]) -> Folded:
        committed = [logged(store, tist, rows) for tist, rows in runs]
        return Folded(store, committed, tmp_path / "scratch")

    return make


def test_an_object_appears_changes_is_lost_and_is_back_as_it_was(folded: Any) -> None:
    done = folded(
        (T, [version(T, P, "a", home="aaa"), incidence(T, P, "appearance")]),
        (T + 10, [version(T + 10, P, "b", home="aaa"), incidence(T + 10, P, "change")]),
        (T + 20, [incidence(T + 10, P, "deletion")]),
        (T + 30, [incidence(T + 10, P, "appearance", again=True)]),
    )
    assert done.obi(P) == {
        "id": P,
        "kind": "tobi",
        "found": T,
        "noted": T + 10,
        "lost": None,
        "seen": T + 30,
        "versions": 2,
        "key": key.key(T + 10, P),
        "digest": version(T, P, "b").text_sha256,
        "home": "aaa",
    }
    assert [(r["tist"] - T, r["what"], r["again"]) for r in done.rows("incidence")] == [
        (0, "appearance", False),
        (10, "change", False),
        (20, "deletion", False),
        (30, "appearance", True),
    ]
    assert [r["tist"] - T for r in done.rows("version")] == [0, 10]


def test_a_lost_object_says_since_when_and_when_it_was_last_seen(folded: Any) -> None:
    whole = ArchiveRow(home="aaa", complete=True, files=1, templates=1)
    done = folded(
        (T, [version(T, P, "a", home="aaa"), incidence(T, P, "appearance"), whole]),
        (T + 10, [whole]),
        (T + 20, [incidence(T, P, "deletion"), whole]),
        (T + 30, [whole]),
    )
    assert (done.obi(P)["lost"], done.obi(P)["seen"]) == (T + 20, T + 10)


def test_an_archive_that_was_read_whole_shows_its_templates(folded: Any) -> None:
    def read(*, complete: bool = True, held: int = 0, home: str = "aaa") -> list[Row]:
        return [ArchiveRow(home=home, complete=complete, files=1, templates=1, held=held)]

    file = version(T, U, "%PDF", kind="fobi", home="aaa")
    done = folded(
        (T, [version(T, P, "a", home="aaa"), file]),
        (T + 10, read()),
        (T + 20, read(complete=False)),
        (T + 30, read(held=3)),  # which ones these are is not known
        (T + 40, read(home="bbb")),
    )
    assert (done.obi(P)["seen"], done.obi(U)["seen"]) == (T + 10, T)


def test_a_template_that_moved_is_of_its_new_archive(folded: Any) -> None:
    moved = SeenRow(id=P, kind="tobi", home="bbb", source="bbb/x.rdf", place=3)
    done = folded(
        (T, [version(T, P, "a", home="aaa", source="aaa/x.rdf", place=0)]),
        (T + 10, [moved]),
        (T + 20, [ArchiveRow(home="aaa", complete=True, files=1, templates=1)]),
    )
    assert (done.obi(P)["home"], done.obi(P)["seen"], done.obi(P)["noted"]) == ("bbb", T + 10, T)


def test_file_blocks_are_those_of_the_newest_version(folded: Any) -> None:
    def block(handle: str, position: int, url: str) -> Row:
        return Refipo(handle=handle, position=position, url=url, id=url, function=None)

    done = folded(
        (T, [version(T, P, "a"), version(T, Q, "a"), block(P, 0, "x"), block(P, 1, "y")]),
        (T + 1, [block(Q, 0, "x")]),
        (T + 2, [version(T + 2, P, "b"), block(P, 0, "z")]),
        (T + 3, [version(T + 3, Q, "b")]),  # without a file
        (T + 4, [version(T + 4, LOST, "a"), block(LOST, 0, "x")]),
        (T + 5, [incidence(T + 4, LOST, "deletion")]),
    )
    found = [(r["handle"], r["position"], r["url"], r["tist"] - T) for r in done.rows("refipo")]
    assert found == [(P, 0, "z", 2)]


def test_bytes_that_are_stored_twice_are_told_of(folded: Any) -> None:
    done = folded(
        (T, [version(T, U, "%PDF", kind="fobi"), version(T, U + "x", "%PDF", kind="fobi")]),
        (T + 1, [version(T + 1, U, "%PDF 2", kind="fobi")]),
        (T + 2, [version(T + 2, U, "%PDF", kind="fobi")]),
    )
    found = sorted((r["key"], r["bytes"], r["copies"]) for r in done.rows("checksum"))
    assert found == sorted([(key.key(T, U), 4, 3), (key.key(T + 1, U), 6, 1)])


def test_what_is_of_no_object_is_kept_too(folded: Any) -> None:
    odd = 'a\n"é\u2028\ud83d\ude00'.encode("utf-16", "surrogatepass").decode("utf-16")
    fault = FaultRow(source="a.rdf", place=None, code="c", field=None, detail=odd, done="kept")
    done = folded(
        (
            T,
            [
                FailureRow(id=U, code="timeout"),
                Redirect(origin=U, target="http://b.org/", status=301),
            ],
        ),
        (T + 1, [fault]),
    )
    assert done.rows("failure") == [
        {"tist": T, "id": U, "code": "timeout", "status": None, "detail": ""}
    ]
    (redirect,) = done.rows("redirect")
    assert (redirect["origin"], redirect["key"]) == (U, None)
    (found,) = done.rows("fault")
    assert (found["tist"], found["detail"], found["place"]) == (T + 1, odd, None)
    assert [(r["tist"], json.loads(r["counts"])) for r in done.rows("run")] == [
        (T, {"failure": 1, "redirect": 1}),
        (T + 1, {"fault": 1}),
    ]


def test_the_tables_are_those_of_the_schema(folded: Any) -> None:
    done = folded()
    for table, columns in obi.TABLES.items():
        found = done.connection.execute(f"DESCRIBE {table}").fetchall()
        assert [row[:2] for row in found] == [(c.name, c.type) for c in columns], table
        assert done.connection.execute(f"SELECT * FROM {table} ORDER BY {replay.order(table)}")
        assert schema.TABLES[table] == columns


def test_the_order_of_runs_and_their_number_at_once_change_nothing(
    store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [
        logged(store, T + n, [version(T + n, f"RePEc:aaa:ssssss:{n % 7}", str(n))])
        for n in range(20)
    ]
    together = Folded(store, runs, tmp_path / "1")
    monkeypatch.setattr(replay, "_AT_ONCE", 3)
    apart = Folded(store, runs[::-1], tmp_path / "2")
    for table in obi.TABLES:
        assert together.rows(table) == apart.rows(table), table
    assert not list((tmp_path / "1").glob("*-log.parquet"))


@pytest.mark.parametrize("data", [b"", b"no log"])
def test_an_edited_log_and_one_that_is_no_log_are_named(
    store: FolderStore, tmp_path: Path, data: bytes
) -> None:
    run = logged(store, T, [version(T, P, "a")])
    place = key.run(T) + LOG
    store.remove(place)
    store.put(place, BytesIO(data))
    with pytest.raises(DamagedStore, match=place):
        Folded(store, [run], tmp_path / "scratch")
    said = replace(run, log=hashlib.sha256(data).hexdigest())
    with pytest.raises(DamagedStore, match=f"the log of run {T} is damaged"):
        Folded(store, [said], tmp_path / "again")


_HOMES = st.sampled_from([None, "aaa", "bbb"])
_OBJECTS = st.sampled_from([(P, "tobi"), (Q, "tobi"), (U, "fobi")])
_EVENT = st.one_of(
    st.tuples(st.just("version"), _OBJECTS, st.sampled_from("ab"), _HOMES),
    st.tuples(st.just("seen"), _OBJECTS, st.just(""), _HOMES),
    st.tuples(st.just("incidence"), _OBJECTS, st.sampled_from(["appearance", "deletion"]), _HOMES),
    st.tuples(st.just("archive"), _OBJECTS, st.sampled_from("01"), st.sampled_from(["aaa", "bbb"])),
)
Event = tuple[str, tuple[str, str], str, str | None]


def _row(tist: int, event: Event) -> Row:
    name, (id_, kind), text, home = event
    if name == "version":
        return version(tist, id_, text, kind, home=home)
    if name == "seen":
        return SeenRow(id=id_, kind=kind, home=home)
    if name == "incidence":
        return incidence(tist, id_, text, kind)
    return ArchiveRow(home=str(home), complete=True, files=1, templates=1, held=int(text))


def _expect(runs: dict[int, list[Event]], id_: str, kind: str) -> dict[str, Any] | None:
    """Return the row of an object as its definition says."""
    own = [(t, e) for t, some in runs.items() for e in some if e[1] == (id_, kind)]
    noted = [(t, e) for t, e in own if e[0] == "version"]
    if not noted:
        return None
    newest, (_, _, text, _) = max(noted)
    happened = [(t, e[2]) for t, e in own if e[0] == "incidence"]
    last = max((t for t, _ in happened), default=0)
    lost = last if (last, "deletion") in happened else None
    seen = max(t for t, e in own if e[0] != "archive" and e[2] != "deletion")
    placed = [(t, e[3]) for t, e in own if e[0] in ("version", "seen") and e[3]]
    home = max(placed)[1] if placed else None
    walks = [
        t
        for t, some in runs.items()
        for e in some
        if e[0] == "archive" and e[3] == home and e[2] == "0" and t < (lost or 10**12)
    ]
    made = version(newest, id_, text, kind)
    digest = made.text_sha256 if kind == "tobi" else made.sha256
    seen = max([seen, *walks]) if kind == "tobi" else seen
    names = [column.name for column in obi.OBI]
    first = min(t for t, _ in noted)
    values = (id_, kind, first, newest, lost, seen, len(noted), made.key, digest, home)
    return dict(zip(names, values, strict=True))


@settings(max_examples=examples(15), deadline=None)
@given(
    some=st.lists(st.lists(_EVENT, max_size=4, unique_by=lambda e: e[:2]), min_size=1, max_size=4),
    large=st.sampled_from([0, 10_000]),
)
def test_the_tables_are_as_their_definitions_say(some: list[list[Event]], large: int) -> None:
    runs = {T + 10 * n: events for n, events in enumerate(some)}
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "_LARGE", large)
        folder = Path(name)
        store = FolderStore(folder / "store")
        committed = [
            logged(store, t, [_row(t, event) for event in events]) for t, events in runs.items()
        ]
        done = Folded(store, committed, folder / "scratch")
        objects = [(P, "tobi"), (Q, "tobi"), (U, "fobi")]
        rows = sorted(filter(None, (_expect(runs, *one) for one in objects)), key=lambda r: r["id"])
        assert done.rows("obi") == rows
        versions = done.rows("version")
        for row in done.rows("checksum"):
            first, *_ = own = sorted(
                (v["tist"], v["key"]) for v in versions if v["sha256"] == row["digest"]
            )
            assert (row["key"], row["copies"]) == (first[1], len(own))
        assert {v["sha256"] for v in versions} == {r["digest"] for r in done.rows("checksum")}
        done.connection.close()
