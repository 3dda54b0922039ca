"""Trees: the ReDIF files below a folder, in the order of their paths.

Links that lead out of the folder are reported and not followed. Links to folders within it are
skipped, since the files there are read by their own names.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from builder.redif.fault import Flaw
from builder.redif.member import RedifFile, is_redif, text_of


def members(folder: Path) -> Iterator[RedifFile | Flaw]:
    """Yield the files that are not hidden, with paths from the folder's parent on.

    A file or folder that cannot be read is yielded as a Flaw.
    """
    root = folder.resolve()
    yield from _below(root, root.name, root)


def holds_redif(folder: Path) -> bool:
    """Return whether there is a ReDIF file below the folder."""
    return any(isinstance(found, RedifFile) for found in members(folder))


def others(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that have no ReDIF suffix, in no order."""
    for below, folders, names in os.walk(folder.resolve()):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not (name.startswith(".") or is_redif(name)):
                yield Path(below) / name


def _below(folder: Path, name: str, root: Path) -> Iterator[RedifFile | Flaw]:
    try:
        with os.scandir(folder) as entries:
            inside = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        yield Flaw(text_of(name), "unreadable", error.strerror or str(error), True)
        return
    # The order of whole paths, in which the slash after a folder's name counts.
    for entry in sorted(inside, key=lambda e: e.name + "/" * e.is_dir(follow_symlinks=False)):
        path = f"{name}/{entry.name}"
        if entry.is_symlink():
            yield from _follow_link(Path(entry.path), path, root)
        elif entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path), path, root)
        elif is_redif(entry.name):
            yield from _file(Path(entry.path), path)


def _follow_link(link: Path, path: str, root: Path) -> Iterator[RedifFile | Flaw]:
    try:
        target = link.resolve(strict=True)
        is_folder = target.is_dir()
    except (OSError, RuntimeError):  # RuntimeError: a loop of links
        if is_redif(path):
            yield Flaw(text_of(path), "link-outside", "it is broken", True)
        return
    if not target.is_relative_to(root):
        if is_folder or is_redif(path):
            yield Flaw(text_of(path), "link-outside", "it leads out of the folder", True)
    elif not is_folder and is_redif(path):
        yield from _file(target, path)


def _file(file: Path, path: str) -> Iterator[RedifFile | Flaw]:
    try:
        status = file.lstat()
    except OSError as error:
        yield Flaw(text_of(path), "unreadable", error.strerror or str(error), True)
        return
    if not stat.S_ISREG(status.st_mode):
        yield Flaw(text_of(path), "not-a-file", "", True)
        return
    yield RedifFile(text_of(path), status.st_size, int(status.st_mtime), partial(_open, file))


def _open(file: Path) -> AbstractContextManager[BinaryIO]:
    # Do not follow a link, or wait for a pipe, that replaced the file meanwhile.
    number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    return os.fdopen(number, "rb")
