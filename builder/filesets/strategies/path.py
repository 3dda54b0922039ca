"""Rule for safe file paths, for platforms' lists and for zips.

A safe path can be stored and unpacked anywhere. It is relative, with `/` between its parts, and in
Unicode's normal form C. Each part is a valid name on every system.
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
"""Bytes of a part in UTF-8, the limit of disks."""
_WHOLE, _DEPTH = 4096, 100
"""Bytes and parts of a path: more than any system accepts, few enough to check each folder."""
_TOLD = 10
"""Number of twins listed, because some names have very many variants."""
RAW, TWINS = "raw_path", "twins"
"""Keys in `extra` of a file: the platform's spelling of its path, if it differs, and its twins.
These are the first paths that differ from it only by case or by compatible characters."""

_DRIVE = re.compile(r"[A-Za-z]:")
_UNSEEN = {"Cc": "a control character", "Cs": "half a character", "Zl": "a line separator",
           "Zp": "a line separator"}  # fmt: skip


def safe(raw: str) -> str:
    """Return the path in normal form C. Raises FilesetError (unsafe-path) if it is unsafe.

    An unsafe path is rejected, never repaired by leaving parts out. Most paths are safe.
    """
    path = unicodedata.normalize("NFC", raw)
    if found := _fault(path):
        raise FilesetError("unsafe-path", f"{_show(raw)} {found}")
    return path


def make_safe(files: Iterable[FilesetManifestFile]) -> tuple[FilesetManifestFile, ...]:
    """Return the files with safe paths, in their order; `extra` records the changes.

    Raises FilesetError, unsafe-path or duplicate-path, with all files in its manifest: the faulty
    files have its status.
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
    """Return the fault of a path, in words that follow the path; empty if it is safe."""
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
            return f"has a part that is a device name on Windows ({part})"
    return ""


def _find_duplicates(paths: Sequence[str]) -> dict[int, str]:
    """Return the indexes of paths that occurred before."""
    seen: set[str] = set()
    found = {}
    for at, path in enumerate(paths):
        if path in seen:
            found[at] = f"{_show(path)} is listed twice"
        seen.add(path)
    return found


def _in_files(paths: Sequence[str]) -> dict[int, str]:
    """Return the indexes of paths that use a file as a folder."""
    files = set(paths)
    found = {}
    for at, path in enumerate(paths):
        parts = path.split("/")
        for length in range(1, len(parts)):
            if (above := "/".join(parts[:length])) in files:
                found[at] = f"{_show(path)} is inside {_show(above)}, which is a file"
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
    """Return a path that is safe to print in a line."""
    text = ascii(path) if not path.isprintable() else repr(path)
    return text if len(text) <= 120 else f"{text[:80]}...{text[-30:]}"
