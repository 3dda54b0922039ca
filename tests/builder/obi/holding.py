"""A small obi store: two runs that count, one that was abandoned, objects of every sort."""

import hashlib
import io
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import pairwise
from pathlib import Path

from builder.obi import key, log, log_table
from builder.obi.content import FILE, SOURCE, TEMPLATE, Incidence, Redirect, Row
from builder.obi.pack import pad_text
from builder.obi.run import Committed, ObiRun, Purpose, claim
from builder.publish.copied_objects import PLACES, RunList
from builder.publish.store_copy import ObjectCopier
from builder.store.copier import TargetListing
from builder.store.folder import FolderStore
from builder.store.s3 import S3Store
from tests.builder.conftest import Clock
from tests.builder.obi.conftest import Time
from tests.builder.obi.logs import commit, describe, put

Store = FolderStore | S3Store
INGEST = Purpose("ingest", "RePEc", "RePEc of today")
GATHER = Purpose("gather", "all", "all")
URL = "http://x.org/a.pdf"
HANDLE = "RePEc:aaa:wpaper:98-01"
LONG = "http://x.org/" + "é/" * 100 + "q" * 3787  # 4,000 characters, and more bytes
OTHER = LONG + "/"
_FOLDER = tempfile.TemporaryDirectory(prefix="sheaf-filled-")
"""It goes when the process ends."""


def ingested(store: Store, time: Time, texts: dict[str, str]) -> Committed:
    """Store templates in a run of their own."""
    run = claim(store, INGEST, time.runtime)
    data = {handle: text.encode() for handle, text in sorted(texts.items())}
    rows: list[Row] = []
    for handle, body in data.items():
        where = put(run, handle, body)
        rows.append(describe(where, body, handle))
        rows.append(Incidence(id=handle, kind=TEMPLATE, what="appearance", key=where))
    rows += packed(run)
    return commit(run, rows, ((h, ["RePEc:aaa"], {"handle": h}) for h in data))


RAW = "Template-Type: ReDIF-Paper 1.0\r\nTitle: Caf\xe9\r\n".encode("cp1252")
PACKED = (SOURCE_ID := "RePEc-file:aaa/1.rdf", f"{HANDLE}-packed", f"{HANDLE}-text")
TEXTS = (RAW, "Template-Type: ReDIF-Paper 1.0\nTitle: Café\n".encode(), b"Another text\n")


def packed(run: ObiRun) -> list[Row]:
    """Store a pack: a file, a template that is a range of it, and the text of another one."""
    data = b"before" + RAW + pad_text(TEXTS[2], 99)
    digest = hashlib.sha256(data).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "pack").write_bytes(data)
        run.put_pack(digest, path)
    made = [describe(key.key(run.tist, n), t, n) for n, t in zip(PACKED, TEXTS, strict=True)]
    source, ranged, text = (replace(one, pack=digest) for one in made)
    raw = {"length": len(RAW) - 2, "encoding": "windows-1252"}
    return [
        replace(source, kind=SOURCE, start=6),
        replace(ranged, start=6, **raw),
        replace(text, start=6 + len(RAW), length=99, encoding="ascii"),
    ]


def gathered(store: Store, time: Time, folder: Path) -> Committed:
    """Store files: one of a long URL, one that is large, and one that was redirected."""
    run = claim(store, GATHER, time.runtime)
    large = folder / "large"
    large.write_bytes(bytes(range(256)) * (5 << 10))  # copies are not made of it in memory
    rows: list[Row] = [
        describe(put(run, LONG, b"%PDF long"), b"%PDF long", LONG, FILE),
        describe(put(run, OTHER, b"%PDF other"), b"%PDF other", OTHER, FILE),
        describe(where := run.put_file(URL, large), large.read_bytes(), URL, FILE),
    ]
    for origin in ("http://x.org/old", LONG + "?old"):
        told = run.redirect(origin, URL, 301, where)
        rows.append(Redirect(origin=origin, target=URL, status=301, key=told, target_key=where))
    return run.commit(rows)


def filled(store: Store, time: Time, folder: Path) -> list[Committed]:
    """Fill an empty store."""
    first = ingested(store, time, {f"{HANDLE}-{n}": f"Template {n}\n" for n in range(20)})
    time.clock.sleep(60)
    given_up: ObiRun = claim(store, Purpose("gather", "x", "x"), time.runtime)
    put(given_up, URL, b"half")
    given_up.abandon("of no use")
    time.clock.sleep(60)
    return [first, gathered(store, time, folder)]


@cache
def _made(start: datetime) -> tuple[list[Committed], datetime, Path]:
    """Fill a store that is only copied: the runs, the time then, and where it lies."""
    folder = Path(_FOLDER.name) / str(start.timestamp())
    folder.mkdir()
    time = Time(Clock(start))
    return filled(FolderStore(folder / "store"), time, folder), time.clock.now, folder / "store"


def filled_in(root: Path, time: Time) -> list[Committed]:
    """Fill an empty folder as `filled` does, out of a store that each process makes once."""
    runs, now, store = _made(time.clock.now)
    shutil.copytree(store, root)
    time.clock.now = now
    return list(runs)


def objects(store: Store, prefix: str = "obi/") -> dict[str, bytes]:
    """Return all that lies there."""
    return {key: store.read(key) for key in store.keys(prefix)}


def copy_runs(source: Store, target: Store) -> None:
    """Copy the runs of a store in which nothing is published."""
    there = TargetListing(target, PLACES)
    runs = RunList(source, target, there)
    ObjectCopier(source, target, there, lambda size: None).copy(runs.stages())


def replaced(store: Store, key: str, data: bytes) -> None:
    """Do what Sheaf never does: give an object other bytes."""
    store.remove(key)
    store.put(key, io.BytesIO(data))


def logged_anew(store: Store, run: Committed, change: Callable[[Row], Row]) -> str:
    """Give a run another log, which its commit does not name; return its key."""
    rows = [change(row) for row in log.read_rows(store, run)]
    with tempfile.TemporaryDirectory() as folder:
        log_table.write_log(path := Path(folder) / "log", rows)
        replaced(store, run.log_key, path.read_bytes())
    return run.log_key


def one(keys: Iterable[str]) -> str:
    """Return the one that there is."""
    (found,) = keys
    return found


def redirected(run: ObiRun, urls: Sequence[str], data: bytes) -> list[Row]:
    """Store a file at the last of the URLs, each of which leads to the next; return the rows."""
    where = put(run, urls[-1], data)
    rows: list[Row] = [
        describe(where, data, urls[-1], FILE),
        Incidence(id=urls[-1], kind=FILE, what="appearance", key=where),
    ]
    for origin, target in pairwise(urls):
        slash = {origin, target} == {origin.rstrip("/"), origin.rstrip("/") + "/"}
        told = None if slash else run.redirect(origin, target, 302, where)
        rows.append(Redirect(origin=origin, target=target, status=302, key=told, target_key=where))
    return rows
