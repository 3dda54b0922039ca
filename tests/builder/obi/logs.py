"""Logs made by hand: runs put into a store with no claim, as their rows say."""

import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from builder.obi import key, log_table
from builder.obi.content import TEMPLATE, Incidence, Row, Version
from builder.obi.history import DOCUMENTS, LOG, Committed
from builder.obi.run import ObiRun
from functions.snapshot.store import Reader, Writer


def logged(store: Writer, tist: int, rows: Sequence[Row], kind: str = "ingest") -> Committed:
    """Put a log into the store and return the run that it is of."""
    with TemporaryDirectory() as folder:
        said = log_table.write_log(path := Path(folder) / LOG, rows)
        with path.open("rb") as file:
            store.put(key.run(tist) + LOG, file)
    moment = datetime.fromtimestamp(tist, UTC)
    given = (said.digest, said.bytes, None, None, "d", said.counts)
    return Committed(tist, kind, "by hand", moment, moment, *given)


def put(run: ObiRun, identifier: str, data: bytes) -> str:
    """Write the bytes of an object, and return their key."""
    with TemporaryDirectory() as folder:
        (path := Path(folder) / "object").write_bytes(data)
        return run.put_file(identifier, path)


def commit(
    run: ObiRun, rows: Iterable[Row], documents: Iterable[tuple[str, list[str], dict[str, Any]]]
) -> Committed:
    """Commit a run that has documents: (handle, sets, document)."""
    run.turn()
    columns = [("id", pa.string()), ("sets", pa.list_(pa.string())), ("document", pa.string())]
    listed = [
        {"id": identifier, "sets": sets, "document": json.dumps(document, ensure_ascii=False)}
        for identifier, sets, document in sorted(documents)
    ]
    with TemporaryDirectory() as name:
        path = Path(name) / DOCUMENTS
        pq.write_table(pa.Table.from_pylist(listed, pa.schema(columns)), path)
        written = log_table.WrittenLog.of(path, {"document": len(listed)})
        return run.commit_files(Path(name), log_table.write_log(Path(name) / LOG, rows), written)


def documents(store: Reader, run: Committed) -> list[dict[str, Any]]:
    """Return the documents of a run with their ids and sets."""
    if run.documents is None:
        return []
    rows = pq.read_table(io.BytesIO(store.read(run.documents_key))).to_pylist()
    return [{**row, "document": json.loads(row["document"])} for row in rows]


def describe(
    where: str, data: bytes, identifier: str, kind: str = TEMPLATE, **more: Any
) -> Version:
    """Return the row of an object that was stored."""
    md5, sha256 = hashlib.md5(data).hexdigest(), hashlib.sha256(data).hexdigest()
    given = {"id": identifier, "kind": kind, "key": where, "bytes": len(data)}
    return Version(**given, md5=md5, sha256=sha256, **more)


def version(tist: int, id_: str, text: str, kind: str = "tobi", **more: Any) -> Version:
    """Return the row of a text that a run noted, whose own digest is another one."""
    row = describe(key.key(tist, id_), text.encode(), id_, kind, **more)
    return replace(row, text_sha256=row.sha256[::-1] if kind == "tobi" else None)


def incidence(tist: int, id_: str, what: str, kind: str = "tobi", *, again: bool = False) -> Row:
    return Incidence(id=id_, kind=kind, what=what, key=key.key(tist, id_), again=again)
