"""Sources: their detection as ReDIF or web archives, and the ReDIF files of a folder.

The ReDIF files of a folder come in the order of their paths. Links that lead out of the folder are
reported and not followed. Links to folders within it are skipped, since the files there are read
by their own names.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from builder.errors import UsageError
from builder.intake.paths import is_folder, list_files
from builder.sources.redif import tarball
from builder.sources.redif.listing import FoundFile
from builder.sources.redif.spool import FileOrigin, Flaw, RedifFile, is_redif, path_text
from builder.sources.webarchives import recognise, search
from builder.sources.webarchives.cdx.text import find_form, is_secondary
from builder.sources.webarchives.ingest.splits import ArchiveFile
from builder.sources.webarchives.remote import files as remote_files
from builder.sources.webarchives.remote.files import SourceAccess
from builder.threads import map_requests

STDIN = "-"
Compare = Callable[[str, Sequence[FoundFile], Sequence[str]], Collection[str]]


def tree_members(
    folder: Path, compare: Compare = lambda folder, files, others: ()
) -> Iterator[RedifFile | Flaw]:
    """Yield the files that are not hidden, with paths from the folder's parent on.

    A file or folder that cannot be read is yielded as a Flaw. `compare` takes the path of a folder,
    its regular files and the names of others; files with the names that it returns are left out.
    """
    root = folder.resolve()
    yield from _below(root, root.name, root, compare)


def open_member(folder: Path, path: str) -> Iterator[RedifFile | Flaw]:
    """Yield the file of a folder that `tree_members` yielded with this path, or its Flaw."""
    file = folder.resolve().parent / path
    try:
        file = file.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        yield Flaw(path, "unreadable", str(error), True)
        return
    yield _tree_file(str(file), path)


def other_files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that have no ReDIF suffix, in no order."""
    for below, folders, names in os.walk(folder.resolve()):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not (name.startswith(".") or is_redif(name)):
                yield Path(below) / name


def _below(
    folder: str | Path, name: str, root: Path, compare: Compare
) -> Iterator[RedifFile | Flaw]:
    try:
        with os.scandir(folder) as entries:
            inside = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        yield Flaw(path_text(name), "unreadable", error.strerror or str(error), True)
        return
    others: list[os.DirEntry[str]] = []
    files: dict[str, FoundFile] = {}
    for entry in inside:
        if not entry.is_file(follow_symlinks=False):
            others.append(entry)
        elif is_redif(entry.name):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                others.append(entry)  # it is reported below
            else:
                text = path_text(entry.name)
                files[entry.name] = FoundFile(text, status.st_size, int(status.st_mtime))
    unlisted = [path_text(entry.name) for entry in others if is_redif(entry.name)]
    unchanged = compare(path_text(name), list(files.values()), unlisted)
    names = (
        {entry_name for entry_name in files if files[entry_name].name not in unchanged}
        if unchanged
        else files
    )
    # The order of whole paths, in which the slash after a folder's name counts.
    folders = {e.name for e in others if e.is_dir(follow_symlinks=False)}
    by_name = {entry.name: entry for entry in others}
    for entry_name in sorted(
        [*names, *by_name], key=lambda entry_name: entry_name + "/" * (entry_name in folders)
    ):
        path, place = f"{name}/{entry_name}", f"{folder}/{entry_name}"
        if entry_name in folders:
            yield from _below(place, path, root, compare)
        elif entry_name in files:
            _, size, modified = files[entry_name]
            yield RedifFile(path_text(path), size, modified, partial(_open_file, place))
        elif by_name[entry_name].is_symlink():
            yield from _follow_link(Path(place), path, root)
        elif is_redif(entry_name):
            yield _tree_file(place, path)


def _follow_link(link: Path, path: str, root: Path) -> Iterator[RedifFile | Flaw]:
    try:
        target = link.resolve(strict=True)
        is_folder = target.is_dir()
    except (OSError, RuntimeError):  # RuntimeError: a loop of links
        if is_redif(path):
            yield Flaw(path_text(path), "link-outside", "it is broken", True)
        return
    if not target.is_relative_to(root):
        if is_folder or is_redif(path):
            yield Flaw(path_text(path), "link-outside", "it leads out of the folder", True)
    elif not is_folder and is_redif(path):
        yield _tree_file(str(target), path)


def _tree_file(file: str, path: str) -> RedifFile | Flaw:
    try:
        status = os.lstat(file)
    except OSError as error:
        return Flaw(path_text(path), "unreadable", error.strerror or str(error), True)
    if not stat.S_ISREG(status.st_mode):
        return Flaw(path_text(path), "not-a-file", "", True)
    return RedifFile(
        path_text(path), status.st_size, int(status.st_mtime), partial(_open_file, file)
    )


def _open_file(file: str) -> AbstractContextManager[BinaryIO]:
    # Do not follow a link, or wait for a pipe, that replaced the file meanwhile.
    number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    return os.fdopen(number, "rb")


@dataclass(frozen=True, slots=True)
class Sources:
    """The content of the sources.

    `redif` has the trees and tarballs of ReDIF. `dated` are tarballs that lie in a folder together,
    each a state of the templates at its own time. `files` has each file to be read as a web archive
    once, without standard input. `archives` are the sources of these files, and standard input.
    """

    redif: tuple[FileOrigin, ...]
    files: tuple[ArchiveFile, ...]
    archives: tuple[str, ...]
    dated: tuple[str, ...] = ()


def sort_sources(
    sources: Iterable[str], access: SourceAccess, environment: Mapping[str, str]
) -> Sources:
    """Return the content of the sources; a folder may hold both kinds.

    Sources in buckets and on servers are looked up side by side. Raises UsageError if a source does
    not exist, and StoreError for a bucket out of reach.
    """
    origins: list[FileOrigin] = []
    files: list[ArchiveFile] = []
    archives: list[str] = []
    dated: list[str] = []
    names = list(dict.fromkeys(sources))
    remote = [source for source in names if remote_files.is_remote(source)]

    def look_up(source: str) -> list[ArchiveFile]:
        return remote_files.find(source, access, environment)

    looked_up = dict(zip(remote, map_requests(look_up, remote), strict=True))
    for source in names:
        if source == STDIN:
            archives.append(source)
            continue
        if source in looked_up:
            source_files = looked_up[source]
        elif origin := _origin(source):
            origins.append(origin)
            # A file counts by its name alone too: its first bytes may be damaged.
            others = sorted(other_files(origin.path)) if origin.is_tree else []
            has_archive = any(map(_is_archive, others))
            source_files = [ArchiveFile.of(path) for path in others] if has_archive else []
        else:
            is_named = not is_folder(source)
            paths = list_files([source])
            named = [] if is_named else [p for p in paths if tarball.names_tarball(p.name)]
            states = [path for path in named if tarball.holds_redif(path)]
            dated += map(str, states)
            source_files = [
                replace(ArchiveFile.of(p), named=is_named) for p in paths if p not in states
            ]
        if source_files:
            archives.append(remote_files.name_source(source))
            files += source_files
    named_files = {file for file in files if file.named}
    folders = {_folder(file) for file in files if search.names_archive(file.path.name)}
    # Each file once, with the facts that all sources and its neighbours give about it.
    distinct = (
        replace(file, named=file in named_files, among=_folder(file) in folders)
        for file in dict.fromkeys(files)
    )
    return Sources(tuple(origins), tuple(distinct), tuple(archives), tuple(dated))


def read_list(name: str, stdin: Iterable[str]) -> list[str]:
    """Return the sources that a file names, one a line; `-` is standard input.

    Empty lines are skipped. Raises UsageError if the file cannot be read.
    """
    try:
        lines = stdin if name == STDIN else Path(name).read_text("utf-8").splitlines()
        return [line.rstrip("\r\n") for line in lines if line.strip()]
    except OSError as error:
        raise UsageError(f"--files-from {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--files-from {name}: expected UTF-8") from error


def _folder(file: ArchiveFile) -> str:
    return file.address.rpartition("/")[0] or str(file.path.parent)


def tarballs(paths: Sequence[str], tist: int | None) -> list[tuple[FileOrigin, int]]:
    """Return tarballs with their times, ascending; `tist` is the time of a single tarball.

    Raises UsageError for a file that is no tarball of ReDIF, or that has no time.
    """
    origins: list[tuple[FileOrigin, int]] = []
    for name in dict.fromkeys(paths):
        path = Path(name)
        if is_folder(name) or not path.is_file():
            raise UsageError(f"{name}: no such file")
        own = tarball.tist_of(path.name) if tist is None else tist
        if own is None:
            raise UsageError(
                f"{name} has no date in its name, such as RePEc_2025-01-05.tar.gz: give --tist"
            )
        if not tarball.holds_redif(path):
            raise UsageError(f"{name} is not a tarball with .rdf or .redif files")
        origins.append((FileOrigin(path, name, False), own))
    origins.sort(key=lambda each: (each[1], each[0].label))
    for (first, at), (other, then) in pairwise(origins):
        if at == then:
            raise UsageError(
                f"{first.label} and {other.label} have the same time: ingest one of them "
                "separately with --tist"
            )
    return origins


def _origin(source: str) -> FileOrigin | None:
    path = Path(source)
    if is_folder(source):
        is_redif_tree = any(isinstance(member, RedifFile) for member in tree_members(path))
        return FileOrigin(path, source, True) if is_redif_tree else None
    if path.is_file() and tarball.holds_redif(path):
        return FileOrigin(path, source, False)
    return None


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
    form = recognise.recognise(head) or find_form(head)
    return bool(form) or is_secondary(head)
