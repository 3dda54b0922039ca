"""Verify: each defect of an obi store has a code of its own."""

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builder.obi import key
from builder.obi.content import Incidence, Row, Version
from builder.obi.run import claim
from builder.store.findings import CODES
from builder.store.folder import FolderStore
from builder.verify.choice import Sample
from builder.verify.verify import Verified, VerifyRuntime, verify
from functions.snapshot.errors import DamagedStore
from tests.builder.obi.conftest import Time
from tests.builder.obi.holding import (
    GATHER,
    HANDLE,
    LONG,
    URL,
    Committed,
    Store,
    filled,
    filled_in,
    ingested,
    logged_anew,
    one,
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
    assert [(k.count, k.objects, k.read) for k in done.kinds] == [(2, 26, 26), (0, 0, 0)]
    newest = verify(store, MEANS, newest_only=True)
    assert [(k.count, k.objects, k.read) for k in newest.kinds] == [(0, 0, 0)] * 2


@pytest.mark.parametrize("percent", [0.1, 40, 100])
def test_a_sample_of_the_objects_is_read(tmp_path: Path, time: Time, percent: float) -> None:
    store = FolderStore(tmp_path / "store")
    texts = {f"{HANDLE}-{n}": f"Template {n}\n" for n in range(500)}
    ingested(store, time, texts)
    audit = verify(store, MEANS, choice=Sample(percent, 7)).kinds[0]
    assert audit.findings == []
    assert audit.objects == 501
    assert abs(audit.read - 5 * percent) < 40
    assert audit.read == 501 or audit.bytes < 150 + sum(map(len, texts.values()))


Place = Callable[[Store, list[Committed]], str]
Change = bytes | Callable[[bytes], bytes] | None


def within(number: int, name: str) -> Place:
    """Return where a member of a run lies."""
    return lambda store, runs: key.run(runs[number].tist) + name


def stored(number: int, identifier: str) -> Place:
    """Return where an object of a run lies."""
    return lambda store, runs: key.key(runs[number].tist, identifier)


def redirect(store: Store, runs: list[Committed]) -> str:
    return key.redirect(runs[1].tist, "http://x.org/old")


def pack(store: Store, runs: list[Committed]) -> str:
    return one(store.keys(key.PACKS))


def exchange(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(old, new)


SPOILT: dict[str, tuple[str, Place, Change]] = {
    # the code, the object, and its bytes, or what becomes of them; None removes it
    "missing": ("obi-missing", stored(0, f"{HANDLE}-3"), None),
    "missing-redirect": ("obi-missing", redirect, None),
    "missing-pack": ("obi-missing", pack, None),
    "missing-log": ("obi-missing", within(0, "log.parquet"), None),
    "missing-documents": ("obi-missing", within(0, "documents.parquet"), None),
    "missing-beginning": ("obi-missing", within(1, "open.json"), None),
    "altered-pack": ("obi-altered", pack, exchange(b"Title", b"title")),
    "cut-pack": ("obi-altered", pack, lambda data: data[:50]),
    "altered-in-one-bit": (
        "obi-altered",
        stored(1, URL),
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    ),
    "altered-in-size": ("obi-altered", stored(1, LONG), b""),
    "altered-redirect": ("obi-altered", redirect, exchange(b"301", b"302")),
    # Where it led is as it was; when that was written down is not.
    "altered-redirect-of-a-time": (
        "obi-altered",
        redirect,
        lambda data: re.sub(rb'"tist": [0-9]+', b'"tist": 1352481230', data),
    ),
    "edited-beginning": (
        "obi-run-edited",
        within(0, "open.json"),
        exchange(b"ingest", b"gather"),
    ),
    "beginning-that-is-none": ("obi-run-edited", within(0, "open.json"), b""),
    "commit-that-is-none": ("obi-run-edited", within(1, "commit.json"), b'{"tist": '),
    "cut-log": ("obi-log-edited", within(0, "log.parquet"), lambda data: data[:-9]),
    "edited-documents": (
        "obi-documents-edited",
        within(0, "documents.parquet"),
        gzip.compress(b"{}\n"),
    ),
    "edited-publish": (
        "obi-publish-edited",
        lambda store, runs: "obi/;publishes/01795255300.json",
        b'{"kind": "publish"}',
    ),
    "stray-beside-a-run": ("obi-stray", stored(0, "http://x.org/never"), b"x"),
    "stray-among-runs": ("obi-stray", within(0, "notes.txt"), b"x"),
    "stray-of-no-run": ("obi-stray", lambda store, runs: "obi/12/notes.txt", b"x"),
    "stray-at-the-top": ("obi-stray", lambda store, runs: "obi/notes.txt", b"x"),
    # A run was interrupted before its log was written.
    "orphan-pack": (
        "obi-pack-orphan",
        lambda store, runs: key.pack(hashlib.sha256(b"left").hexdigest()),
        b"left",
    ),
}


def spoil(store: Store, place: str, change: Change) -> None:
    """Give an object other bytes, or remove it."""
    data = change(store.read(place)) if callable(change) else change
    store.remove(place)
    if data is not None:
        store.create(place, data)


def commit_anew(store: Store, run: Committed, **members: object) -> str:
    """Change members of a run's commit; return its key."""
    where = key.run(run.tist) + "commit.json"
    spoil(store, where, json.dumps({**json.loads(store.read(where)), **members}).encode())
    return where


def digest(store: Store, where: str) -> str:
    return hashlib.sha256(store.read(where)).hexdigest()


def edited_log(store: Store, runs: list[Committed]) -> str:
    def change(row: Row) -> Row:
        return replace(row, what="deletion") if isinstance(row, Incidence) else row

    return logged_anew(store, runs[0], change)


def removed_run(store: Store, runs: list[Committed]) -> str:
    where = key.run(runs[0].tist)
    store.remove(*store.keys(where))
    return where


def removed_last_run(store: Store, runs: list[Committed]) -> str:
    store.remove(*store.keys(key.run(runs[1].tist)))
    return "obi/" + key.folder(runs[1].tist)


def edited_commit(store: Store, runs: list[Committed]) -> str:
    """Log and commit were edited together: only the next run's commit tells."""
    where = edited_log(store, runs)
    return commit_anew(store, runs[0], log=digest(store, where), log_bytes=len(store.read(where)))


def commit_of_another_run(store: Store, runs: list[Committed]) -> str:
    return commit_anew(
        store, runs[1], **json.loads(store.read(key.run(runs[0].tist) + "commit.json"))
    )


def commit_made_void(store: Store, runs: list[Committed]) -> str:
    """Somebody says that a run was abandoned on which the next one follows."""
    where = key.run(runs[0].tist) + "commit.json"
    told = {"tist": runs[0].tist, "abandoned": "x", "at": "2026-11-21T10:00:00Z"}
    spoil(store, where, json.dumps(told).encode())
    return where


def wrong_key(store: Store, runs: list[Committed]) -> str:
    """A log, committed with it, says that an object lies in another run's place."""
    taken, right = key.key(runs[0].tist, f"{HANDLE}-3"), key.key(runs[1].tist, LONG)

    def change(row: Row) -> Row:
        is_it = isinstance(row, Version) and row.key == right
        return replace(row, key=taken) if is_it else row

    where = logged_anew(store, runs[1], change)
    commit_anew(store, runs[1], log=digest(store, where))
    return taken


EDITED: dict[Callable[[Store, list[Committed]], str], str] = {
    edited_log: "obi-log-edited",
    removed_run: "obi-run-removed",
    removed_last_run: "obi-run-removed",
    edited_commit: "obi-run-edited",
    commit_of_another_run: "obi-run-edited",
    commit_made_void: "obi-run-edited",
    wrong_key: "obi-missing",
}
BESIDE = {
    # what else follows of such a defect
    "removed_run": {"obi-run-removed", "obi-pack-orphan"},
    "edited-publish": {"snapshots-lost"},  # a publish of a store without a snapshot
    "commit_made_void": {"obi-pack-orphan"},
    "wrong_key": {"obi-stray"},
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("defect", [*SPOILT, *EDITED], ids=lambda d: getattr(d, "__name__", d))
def test_each_defect_has_its_code(
    tmp_path: Path, time: Time, defect: str | Callable[[Store, list[Committed]], str]
) -> None:
    store = FolderStore(tmp_path / "store")
    runs = filled_in(store.root, time)
    if isinstance(defect, str):
        name, (code, place, change) = defect, SPOILT[defect]
        where = place(store, runs)
        spoil(store, where, change)
    else:
        name, code, where = defect.__name__, EDITED[defect], defect(store, runs)
    told = found(store)
    assert (code, where) in told
    others = {problem for problem, there in told if (problem, there) != (code, where)}
    assert others <= BESIDE.get(name, set()), told


def test_an_open_run_is_noted(tmp_path: Path, time: Time) -> None:
    store = FolderStore(tmp_path / "store")
    filled_in(store.root, time)
    run = claim(store, GATHER, time.runtime)
    put(run, URL, b"x")
    assert found(store) == {("obi-run-unfinished", key.run(run.tist) + "open.json")}
    assert not verify(store, MEANS).damaged


def test_every_code_is_tried() -> None:
    """But `obi-tables`, which is of snapshots, and the chain of publishes (test_publishes)."""
    tried = {*EDITED.values(), *(row[0] for row in SPOILT.values()), "obi-run-unfinished"}
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
