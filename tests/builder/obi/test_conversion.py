"""Conversion: runs of format 1 become packs and Parquet, and stay what they were."""

import gzip
import hashlib
import io
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from builder.obi import content, key, log, replay
from builder.obi.claim import commit_run
from builder.obi.content import FILE, SOURCE, TEMPLATE, Incidence, Row, Version, row_line
from builder.obi.conversion import convert_run, find_unpacked
from builder.obi.history import DOCUMENT_FILES, LOGS, Committed, OpenedRun, history
from builder.obi.log_table import WrittenLog
from builder.obi.run import claim
from builder.store.folder import FolderStore
from builder.verify.obi import ObiAudit
from functions.database import engine
from functions.snapshot import obi
from tests.builder.obi.conftest import Time
from tests.builder.obi.holding import HANDLE, INGEST, PACKED, RAW, TEXTS, URL, version

MADE = {PACKED[0]: TEXTS[0], PACKED[1]: TEXTS[1], PACKED[2]: TEXTS[2], URL: b"%PDF"}


def ingested_before(store: FolderStore, time: Time, **other: bytes) -> Committed:
    """Write a run as Sheaf did before there were packs."""
    run = claim(store, INGEST, time.runtime)
    run.turn()
    texts = {**MADE, **{f"{HANDLE}-{name}": text for name, text in other.items()}}
    kinds = {PACKED[0]: SOURCE, URL: FILE}
    raw = {"source": "aaa/1.rdf", "place": 0, "length": len(RAW) - 2, "encoding": "windows-1252"}
    rows: list[Row] = []
    for name, data in texts.items():
        kind = kinds.get(name, TEMPLATE)
        made = version(run.put(name, data), data, name, kind)
        said = raw if name == PACKED[1] else {}
        rows.append(Version(**{**{f: getattr(made, f) for f in made.__slots__}, **said}))
        rows.append(Incidence(id=name, kind=kind, what="appearance", key=made.key))
    lines = b"".join(map(row_line, rows))
    told = {"id": PACKED[1], "sets": ["a"], "document": {"title": "é"}}
    digests = {}
    for name, data in ((LOGS[1], lines), (DOCUMENT_FILES[1], json.dumps(told).encode() + b"\n")):
        packed = gzip.compress(data, mtime=0)
        store.put(key.run(run.tist) + name, io.BytesIO(packed))
        digests[name] = hashlib.sha256(packed).hexdigest()
    said_ = WrittenLog(
        digests[LOGS[1]], 1, {"version": len(rows) // 2, "incidence": len(rows) // 2}
    )
    opened, before = OpenedRun.read(store, run.tist), history(store)
    now = time.runtime.clock()
    return commit_run(store, opened, said_, digests[DOCUMENT_FILES[1]], before, now, 1)


def tables(store: FolderStore, scratch: Path) -> dict[str, list[Any]]:
    """Return the tables of the replay, without the places in packs."""
    scratch.mkdir()
    with closing(engine.connect(scratch=scratch)) as connection:
        replay.fold(connection, store, history(store), scratch)
        names = {
            table: ", ".join(c.name for c in columns if c.name not in ("pack", "start"))
            for table, columns in obi.TABLES.items()
        }
        return {
            table: connection.execute(f"SELECT {some} FROM {table} ORDER BY ALL").fetchall()
            for table, some in names.items()
        }


class Interrupted(Exception):
    """The conversion was killed."""


def test_a_run_is_converted_and_the_chain_stays(
    tmp_path: Path, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path / "store")
    runs = [ingested_before(store, time), ingested_before(store, time, more=b"More\n")]
    before, objects = tables(store, tmp_path / "1"), dict.fromkeys(store.keys("obi/"))
    documents = [list(log.read_documents(store, run)) for run in runs]
    create, create_file = FolderStore.create, FolderStore.create_file

    def cut(at: int) -> None:
        left = iter(range(at))

        def write(write_: Any) -> Any:
            def call(self: FolderStore, *given: Any) -> None:
                if next(left, None) is None:
                    raise Interrupted
                write_(self, *given)

            return call

        monkeypatch.setattr(FolderStore, "create", write(create))
        monkeypatch.setattr(FolderStore, "create_file", write(create_file))

    for at in range(12):  # killed before each write of the first run and of the second one
        cut(at)
        try:
            for run in find_unpacked(history(store)):
                convert_run(store, run, lambda size: None)
        except Interrupted:
            assert tables(store, tmp_path / f"cut-{at}") == before
    found = history(store)
    assert [run.format for run in found] == [2, 2]
    assert [run.digest for run in found] == [run.digest for run in runs]
    assert tables(store, tmp_path / "2") == before
    assert [list(log.read_documents(store, run)) for run in found] == documents
    assert objects.keys() <= set(store.keys("obi/"))  # nothing was removed
    for run in found:
        rows = [row for row in log.read_rows(store, run) if isinstance(row, Version)]
        assert {row.id for row in rows if row.pack is None} == {URL}
        for row in rows:
            assert hashlib.sha256(content.read_version(store, row)).hexdigest() == row.sha256
    audit = ObiAudit.begin(store)
    audit.finish(lambda size: None)
    assert audit.findings == []
