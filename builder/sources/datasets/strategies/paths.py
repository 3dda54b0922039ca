"""Paths of files: safe to store and to unpack on every system, and distinct in a dataset.

A safe path is relative, with `/` between its parts, and in Unicode's normal form C. A part that is
no valid name somewhere is escaped: what is wrong with it, and each `%`, becomes %XX of its UTF-8
bytes. A path that leads elsewhere is refused, whether from a platform's list or from a zip.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from builder.sources.datasets.item import LEFT_OUT, RAW, FilesetManifestFile
from builder.sources.datasets.protocols import FilesetError
from builder.text import is_device

LONGEST_PATH = 255
"""Bytes of a part in UTF-8, the limit of disks."""
UNSAFE = "unsafe-path"

_WHOLE, _DEPTH = 4096, 100
"""Bytes and parts of a path: more than any system accepts, few enough to check each folder."""
_DRIVE = re.compile(r"[A-Za-z]:")
_FORBIDDEN = frozenset('<>:"|?*\\')
"""Characters that Windows has in no name."""
_INVALID = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Categories of characters that no name should have: controls, half characters, separators."""
_DIGITS = 20  # hexadecimal digits of the digest that replaces the middle of a long name


def safe_path(raw: str) -> str:
    """Return the path in normal form C, with its invalid parts escaped; a safe path stays as it is.

    Raises FilesetError (unsafe-path) for a path that leads elsewhere or is too long as a whole.
    """
    path = unicodedata.normalize("NFC", raw)
    if fault := _fault(path):
        shown = repr(raw) if raw.isprintable() else ascii(raw)
        shown = shown if len(shown) <= 120 else f"{shown[:80]}...{shown[-30:]}"
        raise FilesetError(UNSAFE, f"{shown} {fault}")
    return "/".join(map(_safe_part, path.split("/")))


def _fault(path: str) -> str:
    """Return why a path cannot be kept, in words that follow it; empty if it can."""
    if not path:
        return "is empty"
    if path.startswith("/"):
        return "is absolute"
    if _DRIVE.match(path):
        return "begins with a drive"
    if "\0" in path:
        return "has a control character (U+0000)"
    if len(path.split("/")) > _DEPTH or len(_encode(path)) > _WHOLE:
        return f"has more than {_DEPTH} parts or {_WHOLE:,} bytes"
    for part in re.split(r"[/\\]", path):
        if part in ("", ".", ".."):
            return f"has a part that is {part or 'empty'}"
    return ""


def _safe_part(part: str, plain: bool = False) -> str:
    """Return a valid part; with `plain`, all that is not ASCII is escaped."""
    wrong = {c for c in part if c in _FORBIDDEN or unicodedata.category(c) in _INVALID}
    wrong |= {c for c in part if plain and not c.isascii()}
    device = is_device(part)
    last = len(part) - 1 if part[-1] in " ." else -1  # Windows drops it
    if wrong or device or last >= 0:
        escaped = "".join(
            _escape(c) if c == "%" or c in wrong or at == last else c for at, c in enumerate(part)
        )
        if not unicodedata.is_normalized("NFC", escaped):  # a mark would join the digit before it
            return _safe_part(part, plain=True)
        part = _escape(part[0]) + escaped[1:] if device else escaped
    return _shorten(part)


def _escape(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in _encode(character))


def _shorten(name: str, mark: str = "") -> str:
    """Return a name with `mark` before its ending; if it is too long, a digest ends its stem."""
    stem, dot, ending = name.rpartition(".")
    if not stem or len(_encode(ending)) > 20:
        stem, dot, ending = name, "", ""
    last = f"{mark}{dot}{ending}"
    if len(_encode(stem + last)) <= LONGEST_PATH:
        return stem + last
    last = f"~{hashlib.sha256(_encode(name)).hexdigest()[:_DIGITS]}{last}"
    return _encode(stem)[: LONGEST_PATH - len(_encode(last))].decode("utf-8", "ignore") + last


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def make_paths_safe(
    files: Iterable[FilesetManifestFile], *, partial: bool = False
) -> tuple[FilesetManifestFile, ...]:
    """Return the files with safe and distinct paths, in their order; `extra` records the changes.

    With `partial`, a file whose path cannot be kept has the status unsafe-path, if others can.
    Otherwise raises FilesetError (unsafe-path), with all files in its manifest.
    """
    manifest, faults = [], []
    for file in files:
        path, status, extra = file.path, file.status, {**file.extra, RAW: file.path}
        try:
            path = safe_path(file.path)
            extra = dict(file.extra) if path == file.path else extra
        except FilesetError as error:
            faults.append(error.detail)
            status = status if status in LEFT_OUT else UNSAFE
        manifest.append(replace(file, path=path, status=status, extra=extra))
    unkept = any(file.status == UNSAFE for file in manifest)
    if unkept and not (partial and any(file.status not in LEFT_OUT for file in manifest)):
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise FilesetError(UNSAFE, faults[0] + more, manifest=manifest)
    return _make_distinct(manifest)


def _make_distinct(files: Sequence[FilesetManifestFile]) -> tuple[FilesetManifestFile, ...]:
    """Return the files with paths that are all different, and that no other file is inside of.

    Which file keeps a path depends on the files, and not on their order.
    """
    distinct = list(files)
    used = {path[:at] for path in {f.path for f in files} for at, c in enumerate(path) if c == "/"}
    taken = used | {file.path for file in files}
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))
    for at in sorted(range(len(distinct)), key=lambda n: _precedence(distinct[n])):
        file = distinct[at]
        path = file.path
        if path in used:
            path = _find_free(file, taken, numbers)
            extra = {**file.extra, RAW: file.extra.get(RAW, file.path)}
            distinct[at] = replace(file, path=path, extra=extra)
        used.add(path)
        taken.add(path)
    return tuple(distinct)


def _precedence(file: FilesetManifestFile) -> tuple[object, ...]:
    """Return the sort key of files with one path: what is spelt so, and what is given, is first."""
    facts = (file.platform_url, file.md5, file.sha1, file.sha256, file.sha512)
    return (
        file.status in LEFT_OUT,
        RAW in file.extra,
        str(file.extra.get(RAW)),
        [fact or "" for fact in facts],
        file.size or 0,
    )


def _find_free(
    file: FilesetManifestFile, taken: Collection[str], numbers: Mapping[str, Iterator[int]]
) -> str:
    """Return a path that is not taken: the platform's spelling in %XX, or one with a number."""
    raw = str(file.extra.get(RAW, file.path))
    if unicodedata.normalize("NFC", raw) != raw and file.status != UNSAFE:
        path = "/".join(_safe_part(part, plain=True) for part in raw.split("/"))
        if path not in taken:
            return path
    folder, slash, name = file.path.rpartition("/")
    numbered = (f"{folder}{slash}{_shorten(name, f'~{number}')}" for number in numbers[file.path])
    return next(path for path in numbered if path not in taken)
