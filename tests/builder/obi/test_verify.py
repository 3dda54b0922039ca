"""Verify: each defect of an obi store has a code of its own."""

import gzip
import hashlib
import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builder.obi import key
from builder.obi.content import SOURCE, Incidence, Row, Version
from builder.obi.run import claim
from builder.store.findings import CODES
from builder.store.folder import FolderStore
from builder.verify.obi import ObiAudit, make_sample
from builder.verify.verify import Verified, VerifyRuntime, verify
from functions.snapshot.errors import DamagedStore
from tests.builder.obi.conftest import Time
from tests.builder.obi.holding import (
    GATHER,
    HANDLE,
    LONG,
    PACKED,
    URL,
    Committed,
    Store,
    filled,
    filled_in,
    ingested,
    logged_anew,
    one,
    replaced,
)
from tests.builder.obi.logs import put

pytestmark = pytest.mark.shared(2)

MEANS = VerifyRuntime(
    lambda: datetime(2026, 11, 22, tzinfo=UTC), lambda total: nullcontext(lambda n: None), 256, 1
)


def found(store: Store) -> set[tuple[str, str]]:
    """Return what is wrong with the runs; of a store without snapshots nothing else is."""
    return {(finding.code, finding.object) for finding in verify(store, MEANS).findings}


@pytest.mark.sampled(3)
def test_all_is_well(store: Store, time: Time, tmp_path: Path) -> None:
    filled(store, time, tmp_path)
    done: Verified = verify(store, MEANS)
    assert done.findings == ()
    assert (done.runs, done.objects, done.objects_read) == (2, 26, 26)
    newest = verify(store, MEANS, newest_only=True)
    assert (newest.runs, newest.objects) == (0, 0)


@pytest.mark.parametrize("percent", [0.1, 40, 100])
def test_a_sample_of_the_objects_is_read(tmp_path: Path, time: Time, percent: float) -> None:
    store = FolderStore(tmp_path / "store")
    texts = {f"{HANDLE}-{n}": f"Template {n}\n" for n in range(500)}
    ingested(store, time, texts)
    audit = ObiAudit.begin(store, make_sample(percent, 7))
    audit.finish(lambda size: None)
    assert audit.findings == []
    assert audit.objects == 501
    assert abs(audit.read - 5 * percent) < 40
    assert audit.read == 501 or audit.bytes < 150 + sum(map(len, texts.values()))


def missing(store: Store, runs: list[Committed]) -> str:
    where = key.key(runs[0].tist, f"{HANDLE}-3")
    store.remove(where)
    return where


def missing_redirect(store: Store, runs: list[Committed]) -> str:
    where = key.redirect(runs[1].tist, "http://x.org/old")
    store.remove(where)
    return where


def missing_pack(store: Store, runs: list[Committed]) -> str:
    where = one(store.keys(key.PACKS))
    store.remove(where)
    return where


def altered_pack(store: Store, runs: list[Committed]) -> str:
    where = one(store.keys(key.PACKS))
    replaced(store, where, store.read(where).replace(b"Title", b"title"))
    return where


def cut_pack(store: Store, runs: list[Committed]) -> str:
    where = one(store.keys(key.PACKS))
    replaced(store, where, store.read(where)[:50])
    return where


def wrong_range(store: Store, runs: list[Committed]) -> str:
    """A log, committed with it, names a range that has other bytes."""

    def change(row: Row) -> Row:
        return replace(row, start=7) if isinstance(row, Version) and row.kind == SOURCE else row

    where = logged_anew(store, runs[0], change)
    for prefix in (key.run(run.tist) for run in runs):
        told = json.loads(store.read(prefix + "commit.json"))
        if told["previous"]:
            first = store.read(key.run(runs[0].tist) + "commit.json")
            told["previous"]["sha256"] = hashlib.sha256(first).hexdigest()
        else:
            told["log"] = hashlib.sha256(store.read(where)).hexdigest()
        replaced(store, prefix + "commit.json", json.dumps(told).encode())
    return key.key(runs[0].tist, PACKED[0])


def orphan_pack(store: Store, runs: list[Committed]) -> str:
    """A run was interrupted before its log was written."""
    where = key.pack(hashlib.sha256(b"left").hexdigest())
    store.create(where, b"left")
    return where


def missing_log(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[0].tist) + "log.parquet"
    store.remove(where)
    return where


def missing_documents(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[0].tist) + "documents.parquet"
    store.remove(where)
    return where


def edited_publish(store: Store, runs: list[Committed]) -> str:
    where = "obi/;publishes/01795255300.json"
    store.create(where, b'{"kind": "publish"}')
    return where


def missing_beginning(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[1].tist) + "open.json"
    store.remove(where)
    return where


def altered_in_one_bit(store: Store, runs: list[Committed]) -> str:
    where = key.key(runs[1].tist, URL)
    data = bytearray(store.read(where))
    data[-1] ^= 1
    replaced(store, where, bytes(data))
    return where


def altered_in_size(store: Store, runs: list[Committed]) -> str:
    where = key.key(runs[1].tist, LONG)
    replaced(store, where, b"")
    return where


def altered_redirect(store: Store, runs: list[Committed]) -> str:
    where = key.redirect(runs[1].tist, "http://x.org/old")
    replaced(store, where, store.read(where).replace(b"301", b"302"))
    return where


def altered_redirect_of_a_time(store: Store, runs: list[Committed]) -> str:
    """Where it led is as it was; when that was written down is not."""
    where = key.redirect(runs[1].tist, "http://x.org/old")
    tist = str(runs[1].tist).encode()
    replaced(store, where, store.read(where).replace(b'"tist": ' + tist, b'"tist": 1352481230'))
    return where


def edited_beginning(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[0].tist) + "open.json"
    replaced(store, where, store.read(where).replace(b"ingest", b"gather"))
    return where


def beginning_that_is_none(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[0].tist) + "open.json"
    replaced(store, where, b"")
    return where


def stray_beside_a_run(store: Store, runs: list[Committed]) -> str:
    where = key.key(runs[0].tist, "http://x.org/never")
    store.create(where, b"x")
    return where


def stray_among_runs(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[0].tist) + "notes.txt"
    store.create(where, b"x")
    return where


def stray_of_no_run(store: Store, runs: list[Committed]) -> str:
    where = "obi/12/notes.txt"
    store.create(where, b"x")
    return where


def stray_at_the_top(store: Store, runs: list[Committed]) -> str:
    where = "obi/notes.txt"
    store.create(where, b"x")
    return where


def edited_log(store: Store, runs: list[Committed]) -> str:
    def change(row: Row) -> Row:
        return replace(row, what="deletion") if isinstance(row, Incidence) else row

    return logged_anew(store, runs[0], change)


def cut_log(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[0].tist) + "log.parquet"
    replaced(store, where, store.read(where)[:-9])
    return where


def edited_documents(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[0].tist) + "documents.parquet"
    replaced(store, where, gzip.compress(b"{}\n"))
    return where


def removed_run(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[0].tist)
    store.remove(*store.keys(where))
    return where


def removed_last_run(store: Store, runs: list[Committed]) -> str:
    store.remove(*store.keys(key.run(runs[1].tist)))
    return "obi/" + key.folder(runs[1].tist)


def edited_commit(store: Store, runs: list[Committed]) -> str:
    """Log and commit were edited together: only the next run's commit tells."""
    edited_log(store, runs)
    prefix = key.run(runs[0].tist)
    told = json.loads(store.read(prefix + "commit.json"))
    log = store.read(prefix + "log.parquet")
    told["log"], told["log_bytes"] = hashlib.sha256(log).hexdigest(), len(log)
    replaced(store, prefix + "commit.json", json.dumps(told).encode())
    return prefix + "commit.json"


def commit_of_another_run(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[1].tist) + "commit.json"
    replaced(store, where, store.read(key.run(runs[0].tist) + "commit.json"))
    return where


def commit_that_is_none(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[1].tist) + "commit.json"
    replaced(store, where, b'{"tist": ')
    return where


def commit_made_void(store: Store, runs: list[Committed]) -> str:
    """Somebody says that a run was abandoned on which the next one follows."""
    where = key.run(runs[0].tist) + "commit.json"
    told = {"tist": runs[0].tist, "abandoned": "x", "at": "2026-11-21T10:00:00Z"}
    replaced(store, where, json.dumps(told).encode())
    return where


def wrong_key(store: Store, runs: list[Committed]) -> str:
    """A log, committed with it, says that an object lies in another run's place."""
    prefix = key.run(runs[1].tist)
    taken, right = key.key(runs[0].tist, f"{HANDLE}-3"), key.key(runs[1].tist, LONG)

    def change(row: Row) -> Row:
        is_it = isinstance(row, Version) and row.key == right
        return replace(row, key=taken) if is_it else row

    logged_anew(store, runs[1], change)
    told = json.loads(store.read(prefix + "commit.json"))
    told["log"] = hashlib.sha256(store.read(prefix + "log.parquet")).hexdigest()
    replaced(store, prefix + "commit.json", json.dumps(told).encode())
    return prefix + "log.parquet"


DEFECTS: dict[Callable[[Store, list[Committed]], str], str] = {
    missing: "obi-missing",
    missing_redirect: "obi-missing",
    missing_log: "obi-missing",
    missing_documents: "obi-missing",
    missing_beginning: "obi-missing",
    edited_publish: "obi-publish-edited",
    altered_in_one_bit: "obi-altered",
    altered_in_size: "obi-altered",
    altered_redirect: "obi-altered",
    altered_redirect_of_a_time: "obi-altered",
    edited_beginning: "obi-run-edited",
    beginning_that_is_none: "obi-run-edited",
    stray_beside_a_run: "obi-stray",
    stray_among_runs: "obi-stray",
    stray_of_no_run: "obi-stray",
    stray_at_the_top: "obi-stray",
    edited_log: "obi-log-edited",
    cut_log: "obi-log-edited",
    edited_documents: "obi-documents-edited",
    removed_run: "obi-run-removed",
    removed_last_run: "obi-run-removed",
    edited_commit: "obi-run-edited",
    commit_of_another_run: "obi-run-edited",
    commit_made_void: "obi-run-edited",
    commit_that_is_none: "obi-run-edited",
    wrong_key: "obi-key",
    missing_pack: "obi-missing",
    altered_pack: "obi-altered",
    cut_pack: "obi-altered",
    wrong_range: "obi-altered",
    orphan_pack: "obi-pack-orphan",
}
BESIDE = {
    # what else follows of such a defect
    removed_run: {"obi-run-removed", "obi-pack-orphan"},
    edited_publish: {"snapshots-lost"},  # a publish of a store without a snapshot
    commit_made_void: {"obi-pack-orphan"},
    wrong_key: {"obi-stray"},
    altered_pack: {"obi-altered"},  # the versions in it
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: d.__name__)
def test_each_defect_has_its_code(
    tmp_path: Path, time: Time, defect: Callable[[Store, list[Committed]], str]
) -> None:
    store = FolderStore(tmp_path / "store")
    runs = filled_in(store.root, time)
    where = defect(store, runs)
    told = found(store)
    assert (DEFECTS[defect], where) in told
    others = {code for code, place in told if (code, place) != (DEFECTS[defect], where)}
    assert others <= BESIDE.get(defect, set()), told


def test_an_open_run_is_noted(tmp_path: Path, time: Time) -> None:
    store = FolderStore(tmp_path / "store")
    filled_in(store.root, time)
    run = claim(store, GATHER, time.runtime)
    put(run, URL, b"x")
    assert found(store) == {("obi-run-unfinished", key.run(run.tist) + "open.json")}
    assert not verify(store, MEANS).damaged


def test_every_code_is_tried() -> None:
    """But `obi-tables`, which is of snapshots, and the chain of publishes (test_publishes)."""
    tried = {*DEFECTS.values(), "obi-run-unfinished"}
    assert tried | {"obi-tables", "obi-publish-missing"} == {
        code for code in CODES if code.startswith("obi-")
    }
    noted = {"obi-run-unfinished", "obi-pack-orphan"}
    assert {CODES[code][0] for code in tried - noted} == {"damage"}
    assert one({CODES[code][0] for code in noted}) == "note"


def test_a_store_of_a_broken_chain_is_not_gone_on_with(tmp_path: Path, time: Time) -> None:
    store = FolderStore(tmp_path / "store")
    edited_commit(store, filled_in(store.root, time))
    with pytest.raises(DamagedStore, match="removed or edited"):
        claim(store, GATHER, time.runtime).turn()
