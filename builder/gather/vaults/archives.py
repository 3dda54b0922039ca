"""Archives of an import: their files, and streams in which records are found by their offset.

An archive that has no such offsets is unpacked to a temporary file first: the archives in a WACZ,
and compressed files of which a member has several records.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from builder.gather.vaults.faults import FaultList
from builder.ingest.cdx.form import find_form, is_secondary
from builder.ingest.remote import files
from builder.ingest.remote.access import SourceAccess
from builder.ingest.splits import ArchiveFile, Split
from builder.intake.intake import writing
from builder.sources.recognise import is_zip, packing, read_head, recognise
from builder.sources.webarchive import open_archives
from functions.archive.record_reader import NoDocumentError, open_record
from functions.archive.stream import PIECE


@dataclass(slots=True)
class VaultArchive:
    """An archive: its name in faults, its file, and a temporary file with its content, if any."""

    number: int
    name: str
    file: ArchiveFile
    copy: Path | None = None


@dataclass(slots=True)
class VaultArchives:
    """The archives of an import. Temporary files lie in `scratch`, which the caller removes."""

    access: SourceAccess
    environment: Mapping[str, str]
    scratch: Path
    faults: FaultList
    failed: int = field(init=False, default=0)
    """The number of archives that could not be read."""
    _archives: list[VaultArchive] = field(init=False, default_factory=list)

    def find(self, file: ArchiveFile) -> Iterator[VaultArchive]:
        """Yield the archives of a file. A file that cannot be read is a fault.

        Indexes are passed over, and files that are none and need not be, such as notes.
        """
        try:
            with self._open_file(file, "whole") as stream:
                head = read_head(stream)
                if recognise(head) == "wacz" or (is_zip(head) and recognise(head) is None):
                    yield from self._find_within(file, stream)
                    return
        except OSError as error:
            self.fail(file.path.name, error)
            return
        if (
            find_form(head)
            or is_secondary(head)
            or not (file.is_likely or packing(head) is not None)
        ):
            return
        yield self._add(file.path.name, file)

    def fail(self, name: str, error: OSError) -> None:
        """Note that an archive cannot be read."""
        self.failed += 1
        self.faults.add(name, None, "unreadable", error.strerror or str(error), "passed over")

    @contextmanager
    def open(self, number: int, *, whole: bool = False) -> Iterator[BinaryIO]:
        """Give a seekable stream of an archive; `whole` suits reading it from end to end.

        Raises OSError if it is missing or was replaced, as does the stream, and StoreError.
        """
        archive = self._archives[number]
        if archive.copy is not None:
            with archive.copy.open("rb") as stream:
                yield stream
            return
        with self._open_file(archive.file, "whole" if whole else "range") as stream:
            yield stream

    def name(self, number: int) -> str:
        """Return the name of an archive."""
        return self._archives[number].name

    def names(self) -> list[str]:
        """Return the names of all archives, by number."""
        return [archive.name for archive in self._archives]

    def unpack(self, number: int) -> None:
        """Unpack an archive, so that each of its records has an offset. Raises OSError."""
        target = self.scratch / f"archive-{number}"
        with self.open(number, whole=True) as stream:
            _save(_unpack(stream), target)
        self._archives[number].copy = target

    def _find_within(self, file: ArchiveFile, stream: BinaryIO) -> Iterator[VaultArchive]:
        for found in open_archives(stream, file.path.name):
            if not isinstance(found, tuple):
                self.faults.add(found.source, found.place, found.code, found.detail, found.done)
                continue
            archive = self._add(f"{file.path.name}/{found[0]}", file)
            archive.copy = self.scratch / f"archive-{archive.number}"
            _save(iter(partial(found[1].read, PIECE), b""), archive.copy)
            yield archive

    def _add(self, name: str, file: ArchiveFile) -> VaultArchive:
        self._archives.append(VaultArchive(len(self._archives), name, file))
        return self._archives[-1]

    @contextmanager
    def _open_file(self, file: ArchiveFile, kind: str) -> Iterator[BinaryIO]:
        if file.flaw:
            raise OSError(file.flaw)
        if file.address:
            split = Split(file, kind)
            with files.open_file(split, self.access, self.environment, self.scratch) as stream:
                yield stream
            return
        if file.has_changed():
            raise OSError("it was changed or removed during the import")
        with file.path.open("rb") as stream:
            yield stream


def read_dictionary(stream: BinaryIO) -> bytes:
    """Return the first bytes of a zstd archive, which may hold its dictionary."""
    place = stream.tell()
    stream.seek(0)
    head = read_head(stream)
    stream.seek(place)
    return head


def _save(pieces: Iterator[bytes], target: Path) -> None:
    """Write pieces to a file. Only errors of that file become StoreError."""
    with writing(target.parent):
        out = target.open("wb")
    with out:
        for piece in pieces:
            with writing(target.parent):
                out.write(piece)


def _unpack(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the unpacked bytes of an archive from its first record on."""
    try:
        records, _ = open_record(stream, lambda: read_dictionary(stream))
    except NoDocumentError as error:
        raise OSError(str(error)) from error
    more = True
    while more:
        while piece := records.take(PIECE):
            yield piece
        more = records.next_section()
