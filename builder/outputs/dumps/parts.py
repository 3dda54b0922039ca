"""Parts of a dump: compressed files of bounded size.

A part ends before the record that would exceed a limit. The cut depends on the records alone, so
the same snapshot gives the same bytes.
"""

import gzip
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from builder.store.durable import digest_file
from functions.archive import zstd
from functions.reading.record_rows import Page
from functions.reading.repository import PublishedRecord
from functions.snapshot import oai_name
from functions.snapshot.dumps import DumpPart

RECORDS, BYTES = 100_000, 256 << 20
"""Default limits of a part."""
COMPRESSIONS = {"zstd": ".zst", "gzip": ".gz"}
"""The suffixes of compressed files, by compression."""


class DumpFormat(Protocol):
    """Turns records into the content of parts."""

    suffix: str
    fields: Collection[str] | None
    """The columns that it needs of a record (None: all)."""
    head: bytes
    tail: bytes
    """What each part begins and ends with."""

    def encode(self, records: Sequence[PublishedRecord], room: int) -> tuple[int, int, bytes]:
        """Return the first records that fit into `room` bytes: taken, written, and their bytes.

        At least one is taken. Those that the format cannot show are taken, but not written.
        """
        ...


@dataclass(frozen=True, slots=True)
class PartLimits:
    """The most records of a part, and the most bytes of its records before compression.

    A single larger record is a part of its own.
    """

    records: int = RECORDS
    bytes: int = BYTES


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A part in a local file, with the keys of the records read for it."""

    part: DumpPart
    path: Path
    keys: Sequence[int] = ()


class _OpenPart:
    """A part that is being written."""

    def __init__(self, path: Path, format_: DumpFormat, compression: str) -> None:
        self.path, self._format = path, format_
        self.records = self.deleted = self.size = self._first = self._last = 0
        self._keys: list[int] = []
        self._stack = ExitStack()
        file = self._stack.enter_context(path.open("wb"))
        self._out = self._stack.enter_context(open_compressor(file, compression))
        self._out.write(format_.head)

    def add(
        self, data: bytes, count: int, records: Sequence[PublishedRecord], *, keyed: bool
    ) -> None:
        """Add `count` records, written from these; `keyed`: note the keys of their identifiers."""
        self._out.write(data)
        self._first = self._first or records[0].position
        self._last = records[-1].position
        self.deleted += sum(_column(records, "deleted"))
        if keyed:
            self._keys += map(oai_name.lookup_key, _column(records, "identifier"))
        self.size += len(data)
        self.records += count

    def finish(self) -> WrittenPart:
        """Complete the file."""
        self._out.write(self._format.tail)
        self._stack.close()
        part = DumpPart(
            self.path.name,
            self.records,
            self.deleted,
            self.path.stat().st_size,
            digest_file(self.path),
            (self._first, self._last),
        )
        return WrittenPart(part, self.path, self._keys)


def _column(records: Sequence[PublishedRecord], name: str) -> Sequence[Any]:
    if isinstance(records, Page):
        return records.column(name)
    return [getattr(record, name) for record in records]


def open_compressor(target: BinaryIO, compression: str) -> BinaryIO:
    """Return a stream that compresses into `target`, always to the same bytes."""
    if compression == "gzip":
        return cast(BinaryIO, gzip.GzipFile("", "wb", 6, target, mtime=0))
    return zstd.open_compressor(target)


def write_parts(
    pages: Iterable[tuple[int, Sequence[PublishedRecord]]],
    format_: DumpFormat,
    folder: Path,
    compression: str,
    limits: PartLimits,
    advance: Callable[[int], object] = lambda count: None,
    *,
    keyed: bool = False,
) -> Iterator[WrittenPart]:
    """Write the records as parts in `folder`, and yield each once it is complete.

    `advance` is called with the number of records read. `keyed` notes the keys of identifiers.
    Raises OSError.
    """
    number, part = 0, None
    for read, records in pages:
        advance(read)
        while records:
            room = limits.bytes - (part.size if part else 0)
            most = limits.records - (part.records if part else 0)
            batch = records[:most]
            taken, count, data = format_.encode(batch, room)
            if part is not None and len(data) > room:
                yield part.finish()
                part = None
                continue
            written, records = records[:taken], records[taken:]
            if not count:
                continue
            if part is None:
                name = f"part-{number:05}{format_.suffix}{COMPRESSIONS[compression]}"
                part, number = _OpenPart(folder / name, format_, compression), number + 1
            part.add(data, count, written, keyed=keyed)
            if part.records >= limits.records or taken < len(batch):
                yield part.finish()
                part = None
    if part is not None:
        yield part.finish()
