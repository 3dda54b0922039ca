"""Members: the ReDIF files of a tree or a tarball, each to be read once."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO

LARGEST = 256 << 20
"""Default of the largest file that is read, in bytes."""
_SUFFIX = re.compile(r"(?:.*/)?[^/]+\.(?:rdf|redif)", re.IGNORECASE | re.DOTALL)


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


def is_hidden(path: str) -> bool:
    """Return whether a component of the path begins with a dot."""
    return path.startswith(".") or "/." in path


def text_of(path: str) -> str:
    r"""Return a path as text; bytes that are not UTF-8 become `\xNN`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
