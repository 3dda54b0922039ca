"""Paths that users name: files, and the files in folders."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from builder.errors import UsageError, explaining
from functions.snapshot.errors import describe_failure

STDIN = "-"
"""The name of standard input."""


def is_folder(source: str) -> bool:
    """Return whether a source is a folder. Raises UsageError if that cannot be known."""
    with explaining(source, "read"):  # no permission, or a name that is too long
        return Path(source).is_dir()


def list_files(sources: Sequence[str]) -> list[Path]:
    """Return the files that the sources name: files themselves, and all files in folders.

    Raises UsageError for a missing source, and for a folder without files.
    """
    paths: list[Path] = []
    for source in sources:
        path = Path(source)
        if "://" in source:
            raise UsageError(f"{source}: expected a file, a folder, s3://bucket/prefix or a URL")
        if source and is_folder(source):
            inside = _inside(path)
            if not inside:
                raise UsageError(f"{source} is an empty folder: expected archive files in it")
            paths += inside
        elif source and path.is_file():
            paths.append(path)
        elif source and path.exists():
            raise UsageError(
                f"{source} is not a regular file: pipe it in, and name - as the source"
            )
        else:
            raise UsageError(f"{source or repr(source)}: no such file or folder")
    return list(dict.fromkeys(paths))


def _inside(folder: Path) -> list[Path]:
    """Return all files below a folder, in order, except those with a hidden part in the path.

    Links to folders are followed last, in order. Each folder is read once, by its own name if it
    has one here, so that loops end.
    """

    def fail(error: OSError) -> None:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}") from error

    paths: list[Path] = []
    seen: set[tuple[int, int]] = set()
    roots = [folder]
    while roots:
        links: list[Path] = []
        for root in roots:
            for below, folders, names in os.walk(root, onerror=fail):
                with explaining(below, "read"):
                    status = Path(below).stat()
                if (place := (status.st_dev, status.st_ino)) in seen:
                    folders.clear()
                    continue
                seen.add(place)
                inside = [Path(below) / name for name in folders if not name.startswith(".")]
                links += (path for path in inside if path.is_symlink())
                folders[:] = [path.name for path in inside if not path.is_symlink()]
                paths += (Path(below) / name for name in names if not name.startswith("."))
        roots = sorted(links)
    return sorted(paths)


def read_list(name: str) -> list[str]:
    """Return the names in a file, one a line, or in standard input; empty lines are skipped.

    Raises UsageError if the file cannot be read.
    """
    try:
        lines = sys.stdin if name == STDIN else Path(name).read_text("utf-8").splitlines()
        return [line.rstrip("\r\n") for line in lines if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--files-from {name}: {describe_failure(error)}") from error
