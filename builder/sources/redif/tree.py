"""Trees: the ReDIF files of a folder.

They come in the order of their paths. Links that lead out of the folder are
reported and not followed. Links to folders within it are skipped, since the files there are read
by their own names.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from builder.sources.redif.listing import FoundFile
from builder.sources.redif.spool import Flaw, RedifFile, is_redif, path_text
from functions.snapshot.errors import describe_failure

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
        yield Flaw(path, "unreadable", describe_failure(error), True)
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
        yield Flaw(path_text(name), "unreadable", describe_failure(error), True)
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
    folders = {entry.name for entry in others if entry.is_dir(follow_symlinks=False)}
    changed = {entry for entry, file in files.items() if file.name not in unchanged}
    by_name = {entry.name: entry for entry in others}
    # The order of whole paths, in which the slash after a folder's name counts.
    for entry_name in sorted({*changed, *by_name}, key=lambda n: n + "/" * (n in folders)):
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
        return Flaw(path_text(path), "unreadable", describe_failure(error), True)
    if not stat.S_ISREG(status.st_mode):
        return Flaw(path_text(path), "not-a-file", "", True)
    return RedifFile(
        path_text(path), status.st_size, int(status.st_mtime), partial(_open_file, file)
    )


def _open_file(file: str) -> AbstractContextManager[BinaryIO]:
    # Do not follow a link, or wait for a pipe, that replaced the file meanwhile.
    number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    return os.fdopen(number, "rb")
