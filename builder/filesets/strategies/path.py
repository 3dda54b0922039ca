"""Paths of files: the one rule for what platforms list and for what zips hold.

A path that passes can be kept and unpacked anywhere: it is relative, with `/` between its parts,
in Unicode's normal form C, and every part of it is a name that every system takes.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from builder.filename import is_device
from builder.filesets.item import FilesetManifestFile
from builder.filesets.protocols import FilesetError

LONGEST = 255
"""Bytes of a part in UTF-8, which is what disks take."""
_WHOLE, _DEPTH = 4096, 100
"""Bytes of a path, and parts: more than any system takes, and few enough to look at each folder."""
_TOLD = 10
"""Twins of a path that are told: many letters have very many forms."""
RAW, TWINS = "raw_path", "twins"
"""What `extra` of a file has: its path as the platform wrote it, where that is another, and the
first of those that differ from its own by case or by compatible characters alone."""

_DRIVE = re.compile(r"[A-Za-z]:")
_UNSEEN = {"Cc": "a control character", "Cs": "half a character", "Zl": "a line separator",
           "Zp": "a line separator"}  # fmt: skip


def safe(raw: str) -> str:
    """Return the path in normal form C. Raises FilesetError (unsafe-path) for one that is unsafe.

    Most paths are safe as they are; nothing is left out of one to make it so.
    """
    path = unicodedata.normalize("NFC", raw)
    if found := _fault(path):
        raise FilesetError("unsafe-path", f"{_show(raw)} {found}")
    return path


def make_safe(files: Iterable[FilesetManifestFile]) -> tuple[FilesetManifestFile, ...]:
    """Return the files with safe paths, in their order; `extra` tells what was made of them.

    Raises FilesetError, unsafe-path or duplicate-path, with all files in its manifest: those at
    fault have its status.
    """
    given = tuple(files)
    found, faults, status = [], {}, ""
    for at, file in enumerate(given):
        try:
            path = safe(file.path)
        except FilesetError as error:
            faults[at], status = error.detail, error.status
            continue
        extra = file.extra if path == file.path else {**file.extra, RAW: file.path}
        found.append(replace(file, path=path, extra=extra))
    if not faults:
        faults, status = _find_duplicates([file.path for file in found]), "duplicate-path"
    if not faults:
        faults, status = _in_files([file.path for file in found]), "unsafe-path"
    if faults:
        marked = [replace(f, status=status) if at in faults else f for at, f in enumerate(given)]
        first = faults[min(faults)]
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise FilesetError(status, first + more, manifest=marked)
    twins = _twins([file.path for file in found])
    return tuple(
        replace(f, extra={**f.extra, TWINS: twins[f.path]}) if f.path in twins else f for f in found
    )


def _fault(path: str) -> str:
    """Return what is wrong with a path, in words that follow it; nothing where it is safe."""
    if not path:
        return "is empty"
    if path.startswith("/"):
        return "is absolute"
    if _DRIVE.match(path):
        return "begins with a drive"
    if "\\" in path:
        return "has a backslash"
    for character in path:
        if (kind := unicodedata.category(character)) in _UNSEEN:
            return f"has {_UNSEEN[kind]} (U+{ord(character):04X})"
    parts = path.split("/")
    if len(parts) > _DEPTH or len(path.encode()) > _WHOLE:
        return f"has more than {_DEPTH} parts or {_WHOLE:,} bytes"
    for part in parts:
        if part in ("", ".", ".."):
            return f"has a part that is {part or 'empty'}"
        if len(part.encode()) > LONGEST:
            return f"has a part of more than {LONGEST} bytes"
        if is_device(part):
            return f"has a part that Windows takes for a device ({part})"
    return ""


def _find_duplicates(paths: Sequence[str]) -> dict[int, str]:
    """Return which paths were there before, by their place in the sequence."""
    seen: set[str] = set()
    found = {}
    for at, path in enumerate(paths):
        if path in seen:
            found[at] = f"{_show(path)} is listed twice"
        seen.add(path)
    return found


def _in_files(paths: Sequence[str]) -> dict[int, str]:
    """Return which paths lead through a file as if it were a folder."""
    files = set(paths)
    found = {}
    for at, path in enumerate(paths):
        parts = path.split("/")
        for length in range(1, len(parts)):
            if (above := "/".join(parts[:length])) in files:
                found[at] = f"{_show(path)} lies in {_show(above)}, which is a file"
    return found


def _twins(paths: Sequence[str]) -> dict[str, list[str]]:
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        folded = unicodedata.normalize("NFKC", path).casefold()
        alike[unicodedata.normalize("NFKC", folded)].append(path)
    return {
        path: list(islice((other for other in some if other != path), _TOLD))
        for some in alike.values()
        if len(some) > 1
        for path in some
    }


def _show(path: str) -> str:
    """Return a path as a line of text can bear it."""
    text = ascii(path) if not path.isprintable() else repr(path)
    return text if len(text) <= 120 else f"{text[:80]}...{text[-30:]}"
