"""Splits of archive files, so that several processes can read them in parallel.

A large file is split into ranges; each yields the records that begin in it. Small files are read
together, because each task syncs its results to the disk once. A file that cannot be split is
counted and hashed while it is read.
"""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from builder import distribution
from builder.sources.webarchives import recognise, search
from builder.sources.webarchives.rules import DocumentRules
from builder.store.suffix_list import suffix_list_version
from functions.snapshot.errors import describe_failure

LEAST, MOST = 8 << 20, 256 << 20
"""Bytes of a range. In a shorter range, finding the first record and syncing the results cost too
much. With a longer one the reader would remember too many captures, and an interrupted process
would lose more work.
"""
SHARES = 8
"""Ranges for each process: the last range then delays the end by an eighth at most."""
TOGETHER = 500
"""Maximum number of files that are read together."""
RANGED_FROM = 2 << 30
"""Bytes from which a file with an address may be split: its digest then fetches it a second time.

Crawlers end their files at about 1 GB. These stay whole: their heads need no look, and their bytes
are fetched once. Hashing a larger file takes a tenth of the time of reading it, or less. A smaller
one takes 5 minutes at 8 MB/s, a low speed for one processor; AWS Lambda allows 15 minutes.
"""

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
REPLACED = "it was removed or replaced during the ingest"
"""Why a file with an address cannot be read to its end."""
_RANGED = frozenset({"arc", "warc", "arc.gz", "warc.gz", "arc.zst", "warc.zst"})


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """An archive file as it was when it was found; `label` is its name for users.

    `address` is that of an object in a bucket or of a file on a server; `path` is then only its key
    or its name. The label has no secrets, such as the signature of a URL.
    """

    path: Path
    label: str
    bytes: int
    modified: int
    """Modification time in nanoseconds since 1970, or another number that changes with the file."""
    address: str = field(default="", compare=False)
    flaw: str = ""
    """Why the file cannot be read, if that was known when it was found: it is then not opened."""
    recorded: str = ""
    """The name of the file in a snapshot, if it is not the label."""
    named: bool = field(default=False, compare=False)
    """Whether the user named it, rather than a folder or a prefix that contains it."""
    among: bool = field(default=False, compare=False)
    """Whether a file beside it has the name of an archive."""
    ranged: bool = field(default=False, compare=False)
    """Whether a file with an address may be split."""

    @property
    def is_expected(self) -> bool:
        """Whether it should be an archive: the user named it, or its name says so."""
        return self.named or search.names_archive(self.path.name)

    @property
    def is_likely(self) -> bool:
        """Whether the file is searched for an archive beyond its first bytes."""
        return self.is_expected or self.among

    def relative_to(self, folder: Path) -> "ArchiveFile":
        """Return the file with a relative label recorded relative to `folder`.

        So its bytes are found later from any working folder.
        """
        if self.address or Path(self.label).is_absolute():
            return self
        return replace(self, recorded=os.path.relpath(self.path, folder.absolute()))

    @staticmethod
    def of(path: Path, label: str = "") -> "ArchiveFile":
        """Return the file as it is now; if it is missing or not a regular file, it has a flaw."""
        name = label or str(path)
        try:
            status = path.stat()
        except OSError as error:
            flaw = describe_failure(error)
            if error.errno in (errno.ENOENT, errno.ELOOP) and path.is_symlink():
                flaw = f"a broken link: {flaw}"
            return ArchiveFile(path.absolute(), name, 0, 0, flaw=flaw)
        if stat.S_ISREG(status.st_mode):
            return ArchiveFile(path.absolute(), name, status.st_size, status.st_mtime_ns)
        flaw = _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
        return ArchiveFile(path.absolute(), name, 0, status.st_mtime_ns, flaw=flaw)

    def has_changed(self) -> bool:
        """Return whether the file was changed or removed.

        The streams of objects check this themselves.
        """
        if self.address or self.flaw:
            return False
        try:
            status = self.path.stat()
        except OSError:
            return True
        return (status.st_size, status.st_mtime_ns) != (self.bytes, self.modified)


def number_validator(validator: str) -> int:
    """Return a number that changes with an ETag or a date, in place of a modification time."""
    return int.from_bytes(hashlib.sha256(validator.encode()).digest()[:6], "big")


def reader_version() -> tuple[str, ...]:
    """Return the versions of the program and of its suffix list."""
    return distribution.version(), suffix_list_version()


def reading_of(file: ArchiveFile, sets: Sequence[str], rules: DocumentRules) -> str | None:
    """Return a text that is the same for the same file, read again in the same way.

    The text has the file's name, size and modification time or ETag; it is None without these. It
    also has the sets of all captures, the rules for documents and the versions of the reader.
    """
    if file.flaw or not file.modified:
        return None
    parts = [file.path.name, file.bytes, file.modified, sets, repr(rules), reader_version()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Split:
    """A whole file ("whole"), a range of it ("range"), or the digest of all its bytes ("digest").

    A range yields the records that begin in it; `end` is None for the last range. The digest is a
    split of its own, because no range can yield it.
    """

    file: ArchiveFile
    kind: str = "whole"
    start: int = 0
    end: int | None = None

    def document(self) -> dict[str, Any]:
        """Return the split, with the facts about its file, as a JSON document.

        It has the label in place of an address, since the document is stored.
        """
        file = {**asdict(self.file), "path": os.fspath(self.file.path)}
        if self.file.address:
            file["address"] = self.file.label
        return {"file": file, "kind": self.kind, "start": self.start, "end": self.end}

    @property
    def bytes(self) -> int:
        """Number of archive bytes: 0 for a digest, because its file is read otherwise too."""
        if self.kind == "digest":
            return 0
        return (self.file.bytes if self.end is None else self.end) - self.start


def size(total: int, jobs: int) -> int:
    """Return the length of a range, given that `jobs` processes read `total` bytes."""
    return min(max(total // (jobs * SHARES), LEAST), MOST)


def split_file(file: ArchiveFile, most: int) -> tuple[Split, ...]:
    """Return the splits of a file: the whole, or its digest and ranges of at most `most` bytes.

    The digest comes first, so that the ranges are then cached. A remote file is split only if it is
    large, because its digest fetches it a second time.
    """
    count = -(-file.bytes // most)
    if count < 2 or not (file.ranged if file.address else _is_file_ranged(file)):
        return (Split(file),)
    places = [number * file.bytes // count for number in range(count)]
    ends = [*places[1:], None]
    ranges = (Split(file, "range", start, end) for start, end in zip(places, ends, strict=True))
    return (Split(file, "digest"), *ranges)


def together(splits: Sequence[Split], most: int) -> Iterator[tuple[Split, ...]]:
    """Yield the splits in groups to read together: whole files up to `most` bytes."""
    group: list[Split] = []
    for split in splits:
        is_border = any(each.kind != "whole" for each in (split, *group[-1:]))
        full = sum(s.bytes for s in group) + split.bytes > most or len(group) == TOGETHER
        if group and (is_border or full):
            yield tuple(group)
            group = []
        group.append(split)
    if group:
        yield tuple(group)


def is_ranged(stream: BinaryIO, likely: bool) -> bool:
    """Return whether records can be found from any offset of an archive. Raises OSError."""
    head = recognise.read_head(stream)
    start = search.find_start(head, stream, likely, search.PLAN_BYTES)
    return start is not None and recognise.recognise(start.head) in _RANGED


def _is_file_ranged(file: ArchiveFile) -> bool:
    """Return the same for a file of this machine; False if it is unreadable.

    Reading it as a whole then reports the error.
    """
    try:
        with file.path.open("rb") as stream:
            return is_ranged(stream, file.is_likely)
    except OSError:
        return False
