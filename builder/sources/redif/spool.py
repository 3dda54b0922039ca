"""Spool: the bytes of all ReDIF files of an ingest, copied to this machine as segments.

A segment is one file that holds many small files, or a single large one. An index beside it lists
them. A source is therefore read once, in its own order, and parsed by many processes. A file that
is left out is a fault.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from builder.store.durable import writing
from functions.snapshot.errors import describe_failure
from functions.snapshot.seal import write_compact

FAULT_CODES: dict[str, str] = {
    "link": "a link in a tarball, which is not followed",
    "link-outside": "a link in a folder that leads out of it or is broken, which is not followed",
    "not-a-file": "a device, pipe or socket, or a sparse file of a tarball",
    "path-unsafe": "the name of a member of a tarball is absolute or has .. in it",
    "file-too-large": "a file is larger than redif.largest allows",
    "unreadable": "a file or folder cannot be opened, or cannot be read to its end",
    "tarball-damaged": "a tarball cannot be read to its end",
    "flaws-cut": "more files were skipped than can be listed, so nothing counts as missing",
    "repeated-member": "a tarball, or several sources together, have another file with this name",
    "duplicate-handle": "another template takes precedence: in the handle's own folder, or earlier",
    "bad-file-url": "a File-URL that is not a URL",
    "userinfo": "a File-URL with a user's name or a password in it",
    "unsupported-scheme": "a File-URL of another scheme than http, https and ftp",
    "no-handle": "a template without a handle; only its file is stored",
    "other-archive": "the archive in a handle is not that of the folder",
    "series-absent": "the series of a template has no template",
    "series-type": "the type of a template contradicts that of its series",
    "loss-held": "so many templates disappeared that they are not deleted (see --accept-loss)",
    "file-incomplete": "a file is broken, so templates that are not in it are not deleted",
    "archive-incomplete": "an archive has no readable aaaarch.rdf, or could not be read completely",
}
"""Each code with its meaning; builder.sources.redif.form.specification has the other codes."""

KEPT, LEFT_OUT = "kept", "left out"
"""What is done with the faulty file or template."""
LARGEST = 256 << 20
"""Default of the largest file that is read, in bytes."""
_SUFFIX = re.compile(r"(?:.*/)?[^/]+\.(?:rdf|redif)", re.IGNORECASE | re.DOTALL)
SEGMENT = 32 << 20
"""Approximate bytes of a segment of small files."""
ALONE = 8 << 20
"""Bytes from which a file has a segment of its own."""


class Flaw(NamedTuple):
    """A fault for which a file of a source is left out."""

    path: str
    code: str
    detail: str
    hides: bool
    """True if templates may be missing because of it."""


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """A source: a folder or a tarball; `label` is its name in messages."""

    path: Path
    label: str
    is_tree: bool


@dataclass(frozen=True, slots=True)
class RedifFile:
    """A ReDIF file in a source; `opened` can be called once."""

    path: str
    """The path with slashes: from the folder's own name on, or as the tarball has it."""
    bytes: int
    modified: int
    """Seconds since 1970."""
    opened: Callable[[], AbstractContextManager[BinaryIO]]
    """Raises OSError."""


def is_redif(path: str) -> bool:
    """Return whether a path has one of ReDIF's suffixes, in upper or lower case."""
    return _SUFFIX.fullmatch(path) is not None


def hides(code: str, path: str) -> bool:
    """Return whether templates may be missing because of a fault of a path."""
    if code == "link":  # one without a suffix may stand for a folder
        return is_redif(path) or "." not in path.rpartition("/")[2]
    return code != "path-unsafe" or is_redif(path)


def path_text(path: str) -> str:
    r"""Return a path as text; bytes that are not UTF-8 become `\xNN`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Spooled:
    """A file in a segment: its source, its path there, and where its bytes lie.

    `ordinal` numbers the files of all sources.
    """

    ordinal: int
    source: int
    path: str
    modified: int
    start: int
    bytes: int
    md5: str
    sha256: str
    encoding: str | None = None
    """The encoding of lines that declare none and are not UTF-8, if the operator named it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment in the folder of a spool, numbered from 0; `bytes` counts all its files."""

    folder: Path
    number: int
    bytes: int

    @property
    def path(self) -> Path:
        """The file with the bytes."""
        return self.folder / f"segment-{self.number:06}"

    @property
    def index(self) -> Path:
        """The index of the files."""
        return self.folder / f"segment-{self.number:06}.jsonl"

    def files(self) -> Iterator[Spooled]:
        """Yield the files in order."""
        with self.index.open("rb") as index:
            for line in index:
                yield Spooled(*json.loads(line))


@dataclass(slots=True)
class Spool:
    """Copies files of up to `largest` bytes, one after the other, into segments in a folder.

    Segments are numbered from `first`, and files get ordinals from `ordinal` on. `encodings` has
    the encoding of files by their archive's folder.
    """

    folder: Path
    largest: int = LARGEST
    encodings: Mapping[str, str] = field(default_factory=dict)
    first: int = 0
    ordinal: int = 0
    segments: list[Segment] = field(default_factory=list)
    bytes: int = 0
    _digest: Any = field(default_factory=hashlib.sha256)
    _open: ExitStack | None = None
    _out: BinaryIO = field(init=False)
    _index: BinaryIO = field(init=False)
    _at: int = 0

    def add_known(self, digest: str) -> None:
        """Add to the digest files that are known and therefore not copied."""
        self._hash("known", digest)

    def take(self, source: int, member: RedifFile) -> Flaw | None:
        """Copy a file. Return the fault if the file is left out, else None."""
        if member.bytes > self.largest:
            return self._too_large(member.path)
        with writing(self.folder):
            if self._open is None or (member.bytes >= ALONE and self._at):
                self.close()
                segment = Segment(self.folder, self._number, 0)
                with ExitStack() as stack:
                    self._out = stack.enter_context(segment.path.open("wb"))
                    self._index = stack.enter_context(segment.index.open("wb"))
                    self._open = stack.pop_all()
                self._at = 0
        start = self._at
        md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
        flaw: Flaw | None = None
        try:
            with member.opened() as file:
                while chunk := file.read(1 << 20):
                    md5.update(chunk)
                    sha256.update(chunk)
                    with writing(self.folder):
                        self._out.write(chunk)
                    self._at += len(chunk)
                    if self._at - start > self.largest:
                        flaw = self._too_large(member.path)
                        break
        except OSError as error:
            flaw = Flaw(member.path, "unreadable", describe_failure(error), True)
        if flaw is None and self._at - start != member.bytes:
            flaw = Flaw(member.path, "unreadable", "it changed while it was read", True)
        if flaw is not None:
            with writing(self.folder):
                self._out.seek(start)
                self._out.truncate()
            self._at = start
            return flaw
        folders = member.path.lower().split("/")[:-1] if self.encodings else []
        size, digest = self._at - start, sha256.hexdigest()
        spooled = (
            *(self.ordinal, source, member.path, member.modified),
            *(start, size, md5.hexdigest(), digest),
            next((self.encodings[name] for name in folders if name in self.encodings), None),
        )
        with writing(self.folder):
            self._index.write(write_compact(spooled) + b"\n")
        self._hash(source, member.path, member.modified, size, digest)
        self.ordinal += 1
        self.bytes += size
        if size >= ALONE or self._at >= SEGMENT:
            self.close()
        return None

    def digest(self) -> str:
        """Return a digest of the paths, times and bytes of all files."""
        return str(self._digest.hexdigest())

    def close(self) -> None:
        """Finish the last segment."""
        if self._open is not None:
            with writing(self.folder):
                self._open.close()
            self._open = None
            self.segments.append(Segment(self.folder, self._number, self._at))

    @property
    def _number(self) -> int:
        return self.first + len(self.segments)

    def _hash(self, *facts: str | int) -> None:
        self._digest.update(write_compact(facts))

    def _too_large(self, path: str) -> Flaw:
        return Flaw(path, "file-too-large", f"more than {self.largest:,} bytes", True)
