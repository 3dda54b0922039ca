"""Logs of runs: written to files of this machine, and read from the store."""

import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.obi import content, key
from builder.obi.history import DOCUMENTS, LOG, Committed
from builder.obi.row import ROWS, Redirect, Row, Version, line
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Reader

_LEVEL = 6
_INFLATED = 1 << 20  # bytes of an unpacked log in memory at a time


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """A gzipped file of lines: its SHA-256 and size in that form, and its lines counted by name."""

    digest: str
    bytes: int
    counts: Mapping[str, int]


def write_rows(path: Path, rows: Iterable[Row]) -> WrittenLog:
    """Write rows in the given order; equal rows give equal bytes. Raises OSError."""
    return _write(path, ((row.row, line(row)) for row in rows))


def write_documents(
    path: Path, documents: Iterable[tuple[str, Sequence[str], Mapping[str, Any]]]
) -> WrittenLog:
    """Write documents (handle, sets, document) in the given order. Raises OSError."""
    return _write(path, (("document", _document(*one)) for one in documents))


def _write(path: Path, lines: Iterable[tuple[str, bytes]]) -> WrittenLog:
    counts: Counter[str] = Counter()
    with (
        path.open("wb") as out,
        gzip.GzipFile("", "wb", _LEVEL, out, mtime=0) as packed,
    ):
        for name, data in lines:
            packed.write(data)
            counts[name] += 1
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    return WrittenLog(found, path.stat().st_size, counts)


def _document(identifier: str, sets: Sequence[str], document: Mapping[str, Any]) -> bytes:
    told = {"id": identifier, "sets": list(sets), "document": document}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def rows(store: Reader, run: Committed) -> Iterator[Row]:
    """Yield the rows of a run's log.

    Raises DamagedStore where the log cannot be read, and at the end if it is not the committed log.
    """
    where = key.run(run.tist) + LOG
    for data in lines(store, where, run.log):
        yield row(data, where)


def documents(store: Reader, run: Committed) -> Iterator[dict[str, Any]]:
    """Yield the documents of a run with their ids and sets. Raises as `rows` does."""
    if run.documents is not None:
        where = key.run(run.tist) + DOCUMENTS
        for data in lines(store, where, run.documents):
            yield json.loads(data)


def lines(store: Reader, where: str, digest: str | None) -> Iterator[bytes]:
    """Yield the lines of a file. Raises DamagedStore if its SHA-256 is not `digest` (None: any)."""
    found, inflate, rest = hashlib.sha256(), zlib.decompressobj(31), b""
    try:
        for chunk in content.parts(store, where):
            found.update(chunk)
            while chunk:  # a chunk may unpack to a hundred times its size
                *whole, rest = (rest + inflate.decompress(chunk, _INFLATED)).split(b"\n")
                yield from whole
                chunk = inflate.unconsumed_tail
    except zlib.error as error:
        raise DamagedStore(f"{where} is damaged: {error}") from error
    if rest or not inflate.eof or inflate.unused_data:
        raise DamagedStore(f"{where} is damaged: it is cut off, or has bytes after its end")
    if digest is not None and found.hexdigest() != digest:
        raise DamagedStore(f"{where} was edited: it differs from the committed one")


def row(data: bytes, where: str) -> Row:
    """Parse a line of a log; members that a later Sheaf added are ignored. Raises DamagedStore."""
    try:
        told = json.loads(data)
        kind = ROWS[told.pop("row")]
        if "flags" in told:
            told["flags"] = tuple(told["flags"])
        found: Row = kind(**{k: v for k, v in told.items() if k in kind.__dataclass_fields__})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedStore(f"{where} is damaged: {error!r}") from error
    return found


def identify(store: Reader, run: Committed, name: str) -> tuple[int, str] | None:
    """Return the tist and the id of the content or redirect at a key of `run`.

    The id comes from the key, or from the log if the key has it shortened. None for any other key.
    """
    found = key.parse(name.removesuffix(key.REDIRECT))
    if found is None or found[0] != run.tist:
        return None
    if found[1] is not None:
        return found[0], found[1]
    for one in rows(store, run):
        if isinstance(one, Version) and one.key == name:
            return run.tist, one.id
        if isinstance(one, Redirect) and one.key == name:
            return run.tist, one.origin
    return None
