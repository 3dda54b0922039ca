"""Paths of a dataset's files outside the store: on disk, and in a package.

Archived files have paths that are valid on every system
(builder.sources.datasets.strategies.paths), and the record has the platform's own. Pure.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from builder.exports.restore.folder import WORK
from builder.exports.restore.names import LONGEST, above

_WHOLE = 4000
"""Bytes of a path in UTF-8: Linux takes 4,096, with those of the folder."""


@dataclass(slots=True)
class PathSet:
    """Paths of files, none of which is the path of another file or of its folder."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)

    def add(self, paths: Iterable[str]) -> None:
        """Add paths, which are free."""
        for path in paths:
            self.files.add(path)
            self.folders.update(above(path))

    def is_free(self, path: str) -> bool:
        """Return whether a file can have a path beside the others."""
        taken = path in self.files or path in self.folders
        return not taken and self.files.isdisjoint(above(path))


def name_files(files: Sequence[Mapping[str, Any]], *, safe: bool = False) -> dict[str, str]:
    """Return the path on disk of each file by its path in the store; all are distinct.

    It is the platform's, unless `safe` is set, the disk cannot hold it, or another file has it.
    """
    names = {str(file["path"]): str(file["path"]) for file in files}
    taken = PathSet()
    taken.add(names)
    for file in sorted(files, key=lambda row: str(row["path"])):
        wanted = file.get("original")
        if not safe and isinstance(wanted, str) and _is_possible(wanted) and taken.is_free(wanted):
            names[str(file["path"])] = wanted
            taken.add([wanted])
    return names


def package_paths(paths: Sequence[str]) -> dict[str, str]:
    """Return the path of each file in a package; all are distinct.

    It has `=` for `%`: tools for bags differ in how they read escapes, and in an RO-Crate they are
    escaped again. If another file has that path, the file is named by a digest.
    """
    names = {path: path for path in paths if "%" not in path}
    taken = PathSet()
    taken.add(names)
    for path in sorted(path for path in paths if "%" in path):
        wanted = path.replace("%", "=")
        if not taken.is_free(wanted):
            digest = hashlib.sha256(path.encode()).hexdigest()[:20]
            wanted = f"={digest}/{wanted.rpartition('/')[2]}"
        names[path] = wanted
        taken.add([wanted])
    return names


def _is_possible(path: str) -> bool:
    """Return whether a disk can hold a path, below the folder that it is relative to."""
    try:
        parts = path.encode().split(b"/")
    except UnicodeEncodeError:
        return False
    if {b"", b".", b".."} & {*parts} or "\0" in path or parts[0] == WORK.encode():
        return False
    return len(path.encode()) <= _WHOLE and max(map(len, parts)) <= LONGEST
