"""The spool: the bytes of all ReDIF files of an ingest, copied to this machine as segments.

A segment is one file with many small ones in it, or a large one alone; an index beside it says
which. So a source is read once, in whatever order it has, and parsed by many processes.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from builder.intake.intake import writing
from builder.redif.fault import Flaw
from builder.redif.member import LARGEST, RedifFile

SEGMENT = 32 << 20
"""Bytes of a segment of small files, about."""
ALONE = 8 << 20
"""Bytes from which on a file is a segment by itself."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Spooled:
    """A file in a segment: from which source, its path there, and where its bytes lie.

    `ordinal` counts the files of all sources.
    """

    ordinal: int
    source: int
    path: str
    modified: int
    start: int
    bytes: int
    md5: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment in the folder of a spool, numbered from 0; `bytes` are of all its files."""

    folder: Path
    number: int
    bytes: int

    @property
    def path(self) -> Path:
        """Where the bytes lie."""
        return self.folder / f"segment-{self.number:06}"

    @property
    def index(self) -> Path:
        """Where it is written down which files they are."""
        return self.folder / f"segment-{self.number:06}.jsonl"

    def files(self) -> Iterator[Spooled]:
        """Yield its files in order."""
        with self.index.open("rb") as index:
            for line in index:
                yield Spooled(**json.loads(line))


class Spool:
    """Takes files, one after the other, into segments below a folder."""

    def __init__(self, folder: Path, largest: int = LARGEST) -> None:
        self.segments: list[Segment] = []
        self.files = self.bytes = 0
        self._digest = hashlib.sha256()
        self._folder, self._largest = folder, largest
        self._open: ExitStack | None = None
        self._out: BinaryIO
        self._index: BinaryIO
        self._at = 0

    def take(self, source: int, member: RedifFile) -> Flaw | None:
        """Copy a file; return what is wrong with it, if it is left out for that."""
        if member.bytes > self._largest:
            return self._too_large(member.path)
        with writing(self._folder):
            if self._open is None or (member.bytes >= ALONE and self._at):
                self._begin()
        start = self._at
        md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
        flaw: Flaw | None = None
        try:
            with member.opened() as file:
                while chunk := file.read(_CHUNK):
                    md5.update(chunk)
                    sha256.update(chunk)
                    self._write(chunk)
                    if self._at - start > self._largest:
                        flaw = self._too_large(member.path)
                        break
        except OSError as error:
            flaw = Flaw(member.path, "unreadable", error.strerror or str(error), True)
        if flaw is not None:
            self._take_back(start)
            return flaw
        self._note(
            Spooled(
                self.files,
                source,
                member.path,
                member.modified,
                start,
                self._at - start,
                md5.hexdigest(),
                sha256.hexdigest(),
            )
        )
        return None

    def digest(self) -> str:
        """Return a digest of all that was taken: paths, times and bytes of the files, in order."""
        return self._digest.hexdigest()

    def close(self) -> None:
        """Finish the last segment."""
        if self._open is not None:
            with writing(self._folder):
                self._open.close()
            self._open = None
            self.segments.append(Segment(self._folder, len(self.segments), self._at))

    def _begin(self) -> None:
        self.close()
        segment = Segment(self._folder, len(self.segments), 0)
        with ExitStack() as stack:
            self._out = stack.enter_context(segment.path.open("wb"))
            self._index = stack.enter_context(segment.index.open("wb"))
            self._open = stack.pop_all()
        self._at = 0

    def _write(self, chunk: bytes) -> None:
        with writing(self._folder):
            self._out.write(chunk)
        self._at += len(chunk)

    def _note(self, file: Spooled) -> None:
        line = json.dumps(asdict(file)).encode() + b"\n"
        with writing(self._folder):
            self._index.write(line)
        self._digest.update(line)
        self.files += 1
        self.bytes += file.bytes
        if file.bytes >= ALONE or self._at >= SEGMENT:
            self.close()

    def _take_back(self, start: int) -> None:
        with writing(self._folder):
            self._out.seek(start)
            self._out.truncate()
        self._at = start

    def _too_large(self, path: str) -> Flaw:
        return Flaw(path, "file-too-large", f"more than {self._largest:,} bytes", True)
