"""Detection of sources: ReDIF or web archives, by their content."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from builder.errors import UsageError
from builder.ingest import inputs, splits
from builder.ingest.cdx import reader
from builder.ingest.splits import ArchiveFile
from builder.redif import tarball, tree
from builder.redif.staging import FileOrigin
from builder.sources import recognise, search
from functions.snapshot.address import SCHEME
from functions.store.connection import BucketConnection

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Sources:
    """The content of the sources.

    `redif` has the trees and tarballs of ReDIF. `files` has each file to be read as a web archive
    once, without standard input. `archives` are the sources of these files, and standard input.
    """

    redif: tuple[FileOrigin, ...]
    files: tuple[ArchiveFile, ...]
    archives: tuple[str, ...]


def told_apart(
    sources: Iterable[str], connection: BucketConnection, environment: Mapping[str, str]
) -> Sources:
    """Return the content of the sources; a folder may hold both kinds.

    Raises UsageError if a source does not exist, and StoreError for a bucket out of reach.
    """
    origins: list[FileOrigin] = []
    files: list[ArchiveFile] = []
    archives: list[str] = []
    for source in dict.fromkeys(sources):
        if source == STDIN:
            archives.append(source)
            continue
        if source.startswith(SCHEME):
            found = inputs.find(source, connection, environment)
        elif origin := _origin(source):
            origins.append(origin)
            found = _beside(origin)
        else:
            is_named = not Path(source).is_dir()
            found = [replace(ArchiveFile.of(p), named=is_named) for p in splits.find([source])]
        if found:
            archives.append(source)
            files += found
    return Sources(tuple(origins), _distinct(files), tuple(archives))


def _distinct(files: Sequence[ArchiveFile]) -> tuple[ArchiveFile, ...]:
    """Return each file once, with the facts that all sources and its neighbours give about it."""
    named = {file for file in files if file.named}
    folders = {_folder(file) for file in files if search.names_archive(file.path.name)}
    return tuple(
        replace(file, named=file in named, among=_folder(file) in folders)
        for file in dict.fromkeys(files)
    )


def _folder(file: ArchiveFile) -> str:
    return file.address.rpartition("/")[0] or str(file.path.parent)


def tarballs(paths: Sequence[str], tist: int | None) -> list[tuple[FileOrigin, int]]:
    """Return tarballs with their times, ascending; `tist` is the time of a single tarball.

    Raises UsageError for a file that is no tarball of ReDIF, or that has no time.
    """
    found: list[tuple[FileOrigin, int]] = []
    for name in dict.fromkeys(paths):
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"{name}: no such file")
        own = tarball.tist_of(path.name) if tist is None else tist
        if own is None:
            raise UsageError(
                f"{name} has no date in its name, such as RePEc_2025-01-05.tar.gz: give --tist"
            )
        if not (tarball.is_tar(path) and tarball.holds_redif(path)):
            raise UsageError(f"{name} is not a tarball with .rdf or .redif files")
        found.append((FileOrigin(path, name, False), own))
    found.sort(key=lambda each: (each[1], each[0].label))
    for (one, at), (other, then) in pairwise(found):
        if at == then:
            raise UsageError(
                f"{one.label} and {other.label} have the same time: ingest one of them separately "
                "with --tist"
            )
    return found


def _origin(source: str) -> FileOrigin | None:
    path = Path(source)
    if path.is_dir():
        return FileOrigin(path, source, True) if tree.holds_redif(path) else None
    if path.is_file() and tarball.is_tar(path) and tarball.holds_redif(path):
        return FileOrigin(path, source, False)
    return None


def _beside(origin: FileOrigin) -> list[ArchiveFile]:
    """Return the other files of a ReDIF folder, if any of them is a web archive or an index.

    A file counts by its name alone too: its first bytes may be damaged.
    """
    if not origin.is_tree:
        return []
    others = sorted(tree.others(origin.path))
    return [ArchiveFile.of(path) for path in others] if any(map(_is_archive, others)) else []


def _is_archive(path: Path) -> bool:
    if search.names_archive(path.name):
        return True
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            head = recognise.read_head(stream)
    except OSError:
        return False
    found = recognise.recognise(head) or reader.find_form(head)
    return bool(found) or reader.is_secondary(head)
