"""Runs: what is written, in which order it counts, and what it is held against."""

import hashlib
import json
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from builder.obi import content, key, log, log_table
from builder.obi.content import FILE, TEMPLATE, Incidence, Row
from builder.obi.run import abandon, claim, history
from builder.store.folder import FolderStore
from functions.snapshot.errors import Conflict, DamagedStore, StoreError
from functions.store import engine
from tests.builder.obi.conftest import Time
from tests.builder.obi.holding import GATHER, HANDLE, INGEST, URL, Store
from tests.builder.obi.logs import commit, describe, documents, put
from tests.memory import at_most

pytestmark = pytest.mark.shared(2)


@pytest.mark.sampled(3)
def test_a_run_counts_once_it_is_committed(store: Store, time: Time, tmp_path: Path) -> None:
    run = claim(store, INGEST, time.runtime)
    assert run.tist == 1795255200
    assert run.turn() == ()
    template, body = b"Template-Type: x\n", b"%PDF" * 100_000
    (tmp_path / "body").write_bytes(body)
    where = put(run, HANDLE, template)
    assert where == key.key(run.tist, HANDLE)
    rows: list[Row] = [
        describe(where, template, HANDLE),
        Incidence(id=HANDLE, kind=TEMPLATE, what="appearance", key=where),
        describe(run.put_file(URL, tmp_path / "body"), body, URL, FILE),
    ]
    assert history(store) == ()
    done = commit(run, rows, [(HANDLE, ["RePEc:aaa"], {"title": "é"})])
    assert history(store) == (done,)
    assert (done.kind, done.source, done.previous) == ("ingest", "RePEc", None)
    assert done.counts == {"version": 2, "incidence": 1}
    assert sorted(log.read_rows(store, done), key=repr) == sorted(rows, key=repr)
    assert documents(store, done) == [
        {"id": HANDLE, "sets": ["RePEc:aaa"], "document": {"title": "é"}}
    ]
    assert content.read_version(store, rows[0]) == template  # type: ignore[arg-type]
    with closing(content.open_version(store, rows[2])) as stream:  # type: ignore[arg-type]
        assert stream.read() == body
    prefix = key.run(run.tist)
    assert sorted(store.keys("obi/")) == sorted(
        [prefix + n for n in ("open.json", "documents.parquet", "log.parquet", "commit.json")]
        + [key.key(run.tist, HANDLE), key.key(run.tist, URL)]
    )
    assert hashlib.sha256(store.read(prefix + "commit.json")).hexdigest() == done.digest


@pytest.mark.sampled(3)
def test_runs_are_chained(store: Store, time: Time) -> None:
    first = claim(store, INGEST, time.runtime).commit([])
    second = claim(store, INGEST, time.runtime).commit([])
    assert (second.tist, second.previous) == (first.tist + 1, first.digest)
    assert second.documents is None
    third = claim(store, INGEST, time.runtime)
    assert third.turn() == (first, second) == history(store)
    store.remove(key.run(first.tist) + "commit.json")
    with pytest.raises(DamagedStore, match="removed or edited"):
        history(store)


@pytest.mark.parametrize(("form", "remedy"), [(1, "make a new store"), (4, "a newer Sheaf")])
def test_a_run_of_another_format_is_refused(
    tmp_path: Path, time: Time, form: int, remedy: str
) -> None:
    store = FolderStore(tmp_path)
    run = claim(store, INGEST, time.runtime).commit([])
    place = tmp_path / key.run(run.tist) / "commit.json"
    place.write_text(place.read_text().replace('"format": 2', f'"format": {form}'))
    with pytest.raises(DamagedStore, match=f"is of format {form}: .*{remedy}"):
        history(store)


@pytest.mark.sampled(3)
def test_nothing_is_overwritten(store: Store, time: Time, tmp_path: Path) -> None:
    run = claim(store, INGEST, time.runtime)
    large, other = tmp_path / "large", tmp_path / "other"
    large.write_bytes(b"a" * (9 << 20))
    other.write_bytes(b"b" * (9 << 20))
    where = run.put_file(URL, large)
    assert run.put_file(URL, large) == where
    with pytest.raises(Conflict, match="--abandon 1795255200"):
        run.put_file(URL, other)
    put(run, HANDLE, b"x")
    with pytest.raises(Conflict):
        put(run, HANDLE, b"y")
    assert store.read(where) == large.read_bytes()
    at = run.redirect("http://x.org/a", "http://x.org/b", 302, None)
    assert run.redirect("http://x.org/a", "http://x.org/b", 302, None) == at
    with pytest.raises(Conflict):
        run.redirect("http://x.org/a", "http://x.org/c", 302, None)
    assert at.endswith("/http%3A%2F%2Fx.org%2Fa;redirect")
    assert json.loads(store.read(at)) == {
        "from": "http://x.org/a",
        "to": "http://x.org/b",
        "status": 302,
        "tist": run.tist,
        "to_key": None,
    }


def test_a_log_follows_from_its_rows(store: Store, time: Time, tmp_path: Path) -> None:
    run = claim(store, INGEST, time.runtime)
    rows = [describe("k", b"", HANDLE), describe("l", b"", HANDLE + "2")]
    done = run.commit(rows)
    packed = store.read(key.run(run.tist) + "log.parquet")
    assert (hashlib.sha256(packed).hexdigest(), len(packed)) == (done.log, done.log_bytes)
    again = log_table.write_log(tmp_path / "again", [rows[1], rows[0]])
    assert again.digest == done.log  # of any order


def test_a_log_is_cut_into_parts_of_about_one_size() -> None:
    most = 500
    rows = "FROM log"
    with closing(engine.connect()) as connection:
        connection.execute(
            "CREATE TABLE log AS SELECT if(range % 5 = 0, 'version', 'refipo') AS row, "
            "if(range = 7, NULL, md5(range::VARCHAR)) AS id, id AS handle FROM range(15_000)"
        )
        counts = [
            connection.execute(f"SELECT count(*) {rows} WHERE {part}").fetchall()[0][0]
            for part in log_table.cut_log(connection, rows, most)
        ]
    assert sum(counts) == 15_000
    assert max(counts) < 3 * most


@pytest.mark.sampled(3)
def test_a_run_goes_on_where_the_same_is_asked(store: Store, time: Time) -> None:
    run = claim(store, INGEST, time.runtime)
    put(run, HANDLE, b"x")
    time.clock.sleep(86_400)
    again = claim(store, INGEST, time.runtime)
    assert again.tist == run.tist
    put(again, HANDLE, b"x")
    done = again.commit([])
    assert run.commit([]) == done  # whoever comes second finds it done
    assert claim(store, INGEST, time.runtime).tist == run.tist + 86_400


def test_an_abandoned_run_counts_no_more(store: Store, time: Time) -> None:
    run = claim(store, INGEST, time.runtime)
    put(run, HANDLE, b"x")
    abandon(store, run.tist, "not wanted", time.runtime)
    abandon(store, run.tist, "not wanted", time.runtime)  # as it is
    with pytest.raises(StoreError, match="another process abandoned"):
        run.commit([])
    assert history(store) == ()
    with pytest.raises(StoreError, match="has no run 1795255201"):
        abandon(store, run.tist + 1, "", time.runtime)
    other = claim(store, INGEST, time.runtime)
    assert other.tist == run.tist + 1
    done = other.commit([])
    assert done.previous is None
    with pytest.raises(StoreError, match="is committed and cannot be abandoned"):
        other.abandon("too late")


@pytest.mark.sampled(3)
def test_a_run_waits_for_those_before_it(store: Store, time: Time) -> None:
    first = claim(store, INGEST, time.runtime)
    second = claim(store, GATHER, time.runtime, wait=30)
    assert second.tist == first.tist + 1
    with pytest.raises(StoreError, match=r"ingest of RePEc.*sheaf obi --abandon 1795255200"):
        second.turn()
    assert time.clock.now.timestamp() == 1795255200 + 30
    assert len(time.said) == 1
    assert "`sheaf obi --abandon 1795255200` ends it now" in time.said[0]
    done = first.commit([])
    assert second.turn() == (done,)
    assert second.commit([]).previous == done.digest


@pytest.mark.sampled(3)
def test_the_run_of_a_process_that_ended_blocks_no_other(store: Store, time: Time) -> None:
    """Neither does one that was killed: its lease is renewed no more."""
    first = claim(store, INGEST, time.runtime)
    alive = key.run(first.tist) + "alive.json"
    lease = store.read(alive)
    del first
    assert not list(store.keys(alive))
    store.create(alive, lease)  # as a killed process leaves it
    later = claim(store, GATHER, time.runtime)
    assert later.turn() == ()
    assert 60 <= time.clock.now.timestamp() - 1795255200 < 70
    assert "its process has ended" in time.said[-1]
    later.commit([])
    assert [run.tist for run in history(store)] == [later.tist]


def test_a_run_that_goes_on_is_waited_for(tmp_path: Path, time: Time) -> None:
    store = FolderStore(tmp_path)
    first = claim(store, INGEST, time.runtime)
    time.clock.sleep(3600)
    again = claim(store, INGEST, time.runtime)  # announces itself anew
    second = claim(store, GATHER, time.runtime, wait=30)
    with pytest.raises(StoreError, match="still open"):
        second.turn()
    assert again.commit([]).tist == first.tist
    assert len(second.turn()) == 1


def test_a_run_that_lacks_its_commit_alone_is_completed_by_the_next(
    store: Store, time: Time
) -> None:
    class Cut(Exception):
        pass

    run = claim(store, INGEST, time.runtime)
    create = store.create

    def cut(name: str, data: bytes) -> None:
        if name.endswith("commit.json"):
            raise Cut
        create(name, data)

    store.create = cut  # type: ignore[method-assign]
    with pytest.raises(Cut):
        commit(run, [describe("k", b"", HANDLE)], [(HANDLE, [], {})])
    store.create = create  # type: ignore[method-assign]
    time.clock.sleep(5)
    later = claim(store, GATHER, time.runtime)
    assert [r.tist for r in later.turn()] == [run.tist]
    (found,) = history(store)
    assert found.counts == {"version": 1}
    assert found.committed - found.begun == timedelta(seconds=5)
    assert documents(store, found) == [{"id": HANDLE, "sets": [], "document": {}}]


def test_a_log_is_read_a_little_at_a_time(tmp_path: Path, time: Time) -> None:
    """Rows pack well: a log of some 100 KB holds 30 MB of them."""
    store = FolderStore(tmp_path)
    run = claim(store, INGEST, time.runtime)
    done = run.commit(describe("k" * 3000, b"", f"{HANDLE}-{n}") for n in range(9_000))
    assert done.log_bytes < 1 << 20
    with at_most(12 << 20):
        assert sum(1 for _ in log.read_rows(store, done)) == 9_000
