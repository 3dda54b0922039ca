"""Members: the ReDIF files that a tree or a tarball holds, each to be read once."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO

LARGEST = 256 << 20
"""Bytes of a file that are taken, where nothing else is said."""
_SUFFIX = re.compile(r"(?:.*/)?[^/]+\.(?:rdf|redif)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class RedifFile:
    """A file: its path in the source, and how it is opened, for once."""

    path: str
    """With the folder's own name or as the tarball has it, with slashes."""
    bytes: int
    modified: int
    """In seconds since 1970."""
    opened: Callable[[], AbstractContextManager[BinaryIO]]
    """Raises OSError."""


def is_redif(path: str) -> bool:
    """Tell whether a path has one of ReDIF's suffixes, in any case."""
    return _SUFFIX.fullmatch(path) is not None


def is_hidden(path: str) -> bool:
    """Tell whether a part of the path begins with a dot."""
    return path.startswith(".") or "/." in path


def text_of(path: str) -> str:
    r"""Return a path as text: bytes of it that are no UTF-8 as `\xNN`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
