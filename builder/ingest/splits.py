"""Stretches: what of the archive files is read in one go, so that many are read side by side.

A large file is cut into ranges; each gives the records that begin in it. Small files are read many
in one go, for what is read in one go is also what is written for good in one go.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder.errors import UsageError
from builder.sources import recognise, search

LEAST, MOST = 8 << 20, 256 << 20
"""Bytes of a range. A shorter one would cost more than it is of use: its first record has to be
found, and what it gave is synced to the disk. Of a longer one the reader would remember too many
captures, and as much would be read again where a process is killed in the midst of it."""
SHARES = 8
"""Ranges for each process: nobody waits longer than an eighth of all for the last one."""
TOGETHER = 500
"""Files at most that are read in one go."""

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
_RANGED = frozenset({"arc", "warc", "arc.gz", "warc.gz", "arc.zst", "warc.zst"})


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """An archive file as it was when it was found; `label` is how it is named to people.

    `address` is that of an object in a bucket, of which `path` is but the key.
    """

    path: Path
    label: str
    bytes: int
    modified: int
    """When it was last written, in nanoseconds since 1970; or another number that tells as much."""
    address: str = ""
    flaw: str = ""
    """Why it cannot be read, where that was known when it was found: nobody then opens it."""
    recorded: str = ""
    """How a snapshot names it, where that is not by its label."""
    named: bool = field(default=False, compare=False)
    """Whether the user named it, and not only a folder or a prefix that it lies in."""
    among: bool = field(default=False, compare=False)
    """Whether a file beside it is named as an archive is."""

    @property
    def is_expected(self) -> bool:
        """Tell whether it should be an archive: the user named it, or its name says so."""
        return self.named or search.names_archive(self.path.name)

    @property
    def is_likely(self) -> bool:
        """Tell whether it is searched for an archive behind its first bytes."""
        return self.is_expected or self.among

    def seen_from(self, folder: Path) -> "ArchiveFile":
        """Return the same, recorded as seen from `folder`, where its label is a relative path.

        There it is looked for when its bytes are asked for, whichever folder that is done in.
        """
        if self.address or Path(self.label).is_absolute():
            return self
        return replace(self, recorded=os.path.relpath(self.path, folder.absolute()))

    @staticmethod
    def of(path: Path, label: str = "") -> "ArchiveFile":
        """Return the file as it is now; one that is gone, or no regular file, has a flaw."""
        name = label or str(path)
        try:
            status = path.stat()
        except OSError as error:
            flaw = error.strerror or str(error)
            if error.errno in (errno.ENOENT, errno.ELOOP) and path.is_symlink():
                flaw = f"a link that leads nowhere: {flaw}"
            return ArchiveFile(path.absolute(), name, 0, 0, flaw=flaw)
        if not stat.S_ISREG(status.st_mode):
            flaw = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
            return ArchiveFile(path.absolute(), name, 0, status.st_mtime_ns, flaw=flaw)
        return ArchiveFile(path.absolute(), name, status.st_size, status.st_mtime_ns)

    def has_changed(self) -> bool:
        """Tell whether it is another one by now, or gone; an object's readers see to that."""
        if self.address or self.flaw:
            return False
        try:
            status = self.path.stat()
        except OSError:
            return True
        return (status.st_size, status.st_mtime_ns) != (self.bytes, self.modified)


@dataclass(frozen=True, slots=True)
class Split:
    """A file as a whole (kind "whole"), records that begin in a range of it ("range"; `end` is
    None for the last one), or the digest of all its bytes ("digest"), which no range can tell.
    """

    file: ArchiveFile
    kind: str = "whole"
    start: int = 0
    end: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes of archive that it stands for: none for a digest, whose file is read besides."""
        if self.kind == "digest":
            return 0
        return (self.file.bytes if self.end is None else self.end) - self.start


def find(sources: Sequence[str]) -> list[Path]:
    """Return the files that the sources name: files themselves, and all that folders hold.

    Raises UsageError for a source that is not there, and for a folder without files.
    """
    found: list[Path] = []
    for source in sources:
        path = Path(source)
        if "://" in source:
            raise UsageError(f"{source}: expected a file, a folder or s3://bucket/prefix")
        if source and path.is_dir():
            inside = _inside(path)
            if not inside:
                raise UsageError(f"{source} is an empty folder: expected archive files in it")
            found += inside
        elif source and path.is_file():
            found.append(path)
        elif source and path.exists():
            raise UsageError(f"{source} is no regular file: pipe it in, and name - as the source")
        else:
            raise UsageError(f"{source or repr(source)}: no such file or folder")
    return list(dict.fromkeys(found))


def _inside(folder: Path) -> list[Path]:
    """Return all below a folder that is no folder, in order, but what has a hidden part.

    Links to folders are followed, after all else, in order. Each folder is read once, by its own
    name where it has one here, so that loops end.
    """

    def fail(error: OSError) -> None:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}") from error

    found: list[Path] = []
    seen: set[tuple[int, int]] = set()
    roots = [folder]
    while roots:
        links: list[Path] = []
        for root in roots:
            for below, folders, names in os.walk(root, onerror=fail):
                if not _is_new(below, seen):
                    folders.clear()
                    continue
                inside = [Path(below) / name for name in folders if not name.startswith(".")]
                links += (path for path in inside if path.is_symlink())
                folders[:] = [path.name for path in inside if not path.is_symlink()]
                found += (Path(below) / name for name in names if not name.startswith("."))
        roots = sorted(links)
    return sorted(found)


def _is_new(folder: str, seen: set[tuple[int, int]]) -> bool:
    """Tell whether a folder is not among those seen, and remember it."""
    try:
        status = Path(folder).stat()
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror}") from error
    place = (status.st_dev, status.st_ino)
    if place in seen:
        return False
    seen.add(place)
    return True


def size(total: int, jobs: int) -> int:
    """Return how long a range is to be where `jobs` processes read `total` bytes."""
    return min(max(total // (jobs * SHARES), LEAST), MOST)


def ranges(file: ArchiveFile, most: int) -> tuple[Split, ...]:
    """Return ranges of at most `most` bytes that are the file together, in order.

    None for a file that is not larger, or of which only a whole can be read. An object is read as
    a whole, for else it would be fetched twice: for its digest as well.
    """
    count = -(-file.bytes // most)
    if count < 2 or file.address or not _is_ranged(file):
        return ()
    places = [number * file.bytes // count for number in range(count)]
    ends = [*places[1:], None]
    return tuple(Split(file, "range", start, end) for start, end in zip(places, ends, strict=True))


def digest(file: ArchiveFile) -> Split:
    """Return what gives the digest of a file that is read in ranges."""
    return Split(file, "digest")


def together(stretches: Sequence[Split], most: int) -> Iterator[tuple[Split, ...]]:
    """Yield the stretches by what is to be read in one go: whole files up to `most` bytes."""
    held: list[Split] = []
    for stretch in stretches:
        alone = stretch.kind != "whole"
        full = sum(s.bytes for s in held) + stretch.bytes > most or len(held) == TOGETHER
        if held and (alone or full):
            yield tuple(held)
            held = []
        held.append(stretch)
        if alone:
            yield tuple(held)
            held = []
    if held:
        yield tuple(held)


def _is_ranged(file: ArchiveFile) -> bool:
    """Tell whether records can be found from anywhere within the file; False if it is unreadable.

    What cannot be read is told of by whoever reads it as a whole.
    """
    try:
        with file.path.open("rb") as stream:
            head = recognise.read_head(stream)
            found = search.find_start(head, stream, file.is_likely, search.PLAN_BYTES)
    except OSError:
        return False
    return found is not None and recognise.recognise(found.head) in _RANGED
