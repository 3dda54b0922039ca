"""Logs of runs: written to local files, read from the store, searched for one object."""

import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.obi import content, key, replay
from builder.obi.content import (
    DELETION,
    ROWS,
    TEMPLATE,
    Incidence,
    Redirect,
    Refipo,
    Row,
    SeenRow,
    Version,
    row_line,
)
from builder.obi.history import DOCUMENTS, LOG, Committed
from builder.store import documents
from functions.database import engine
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Reader

_LEVEL = 6
_INFLATED = 1 << 20  # bytes of an unpacked log in memory at a time
_ABOUT = "id = $id OR handle = $id OR origin = $id OR target = $id"
_RANK = {Version: 0, Incidence: 1}


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """A gzipped file of lines: its SHA-256 and size in that form, and its lines counted by name."""

    digest: str
    bytes: int
    counts: Mapping[str, int]


def write_rows(path: Path, rows: Iterable[Row]) -> WrittenLog:
    """Write rows in the given order; equal rows give equal bytes. Raises OSError."""
    return _write(path, ((row.row, row_line(row)) for row in rows))


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


def read_rows(store: Reader, run: Committed) -> Iterator[Row]:
    """Yield the rows of a run's log.

    Raises DamagedStore where the log cannot be read, and at the end if it is not the committed log.
    """
    where = key.run(run.tist) + LOG
    for data in read_lines(store, where, run.log):
        yield parse_row(data, where)


def read_documents(store: Reader, run: Committed) -> Iterator[dict[str, Any]]:
    """Yield the documents of a run with their ids and sets. Raises as `rows` does."""
    if run.documents is not None:
        where = key.run(run.tist) + DOCUMENTS
        for data in read_lines(store, where, run.documents):
            yield json.loads(data)


def read_lines(store: Reader, where: str, digest: str | None) -> Iterator[bytes]:
    """Yield the lines of a file. Raises DamagedStore if its SHA-256 is not `digest` (None: any)."""
    found, inflate, rest = hashlib.sha256(), zlib.decompressobj(31), b""
    try:
        for chunk in content.read_parts(store, where):
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


def parse_row(data: bytes, where: str) -> Row:
    """Parse a line of a log; members that a later Sheaf added are ignored. Raises DamagedStore."""
    try:
        told = json.loads(data)
        found: Row = documents.build(ROWS[told["row"]], told)
    except (ValueError, KeyError, TypeError) as error:
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
    for one in read_rows(store, run):
        if isinstance(one, Version) and one.key == name:
            return run.tist, one.id
        if isinstance(one, Redirect) and one.key == name:
            return run.tist, one.origin
    return None


@dataclass(frozen=True, slots=True)
class ItemHistory:
    """All log rows that name an object, each with the tist of its run, in order."""

    id: str
    rows: tuple[tuple[int, Row], ...]

    @property
    def known(self) -> bool:
        """True if any run has found the object, or tried to."""
        return bool(self.rows)

    def versions(self) -> list[tuple[int, Version]]:
        """Return its versions, oldest first."""
        return [(t, r) for t, r in self.rows if isinstance(r, Version) and r.id == self.id]

    def events(self) -> list[tuple[int, Row]]:
        """Return the events of the object: all rows but sightings and file blocks."""
        own = [(t, r) for t, r in self.rows if not isinstance(r, SeenRow | Refipo)]
        return [(t, r) for t, r in own if not isinstance(r, Version) or r.id == self.id]

    def blocks(self) -> list[tuple[int, Refipo]]:
        """Return the file blocks that name the object; of a template, its own of its last run."""
        found = [(t, r) for t, r in self.rows if isinstance(r, Refipo)]
        own = [(t, r) for t, r in found if r.handle == self.id]
        if own:
            last = max(t for t, _ in own)
            newest = max((t for t, v in self.versions() if v.kind == TEMPLATE), default=0)
            return [(t, r) for t, r in own if t == last >= newest]
        return found

    def at(self, tist: int) -> tuple[int, Version] | None:
        """Return the version of the object at a time, and the tist that recorded it.

        None before the first version, and while the object was lost.
        """
        before = [one for one in self.versions() if one[0] <= tist]
        happened = [r for t, r in self.rows if isinstance(r, Incidence) and t <= tist]
        if not before or (happened and happened[-1].what == DELETION):
            return None
        return before[-1]


def read_history(
    connection: engine.Connection,
    store: Reader,
    runs: Sequence[Committed],
    scratch: Path,
    identifier: str,
) -> ItemHistory:
    """Return the history of an object from the logs of `runs`. Raises DamagedStore, StoreError."""
    connection.execute("DROP TABLE IF EXISTS logged")
    replay.read(connection, store, runs, scratch, _ABOUT, {"id": identifier})
    found = connection.execute("SELECT * FROM logged ORDER BY tist")
    names = [column[0] for column in found.description]
    rows = [_history_row(dict(zip(names, row, strict=True))) for row in found.fetchall()]
    rows.sort(key=lambda one: (one[0], _RANK.get(type(one[1]), 2), repr(one[1])))
    return ItemHistory(identifier, tuple(rows))


def _history_row(found: dict[str, object]) -> tuple[int, Row]:
    kind = ROWS[str(found["row"])]
    held = {name: value for name, value in found.items() if value is not None}
    return int(str(found["tist"])), documents.build(kind, held)
