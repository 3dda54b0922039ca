"""Names of a dataset in the store: keys of objects, paths of files, archive.org items.

The same manifest always has the same prefix, and another manifest has another. So no key is reused
for other bytes. The keys contain only characters that are safe everywhere.

A safe path can be stored and unpacked anywhere, whether from a platform's list or from a zip. It is
relative, with `/` between its parts, and in Unicode's normal form C. Each part is a valid name on
every system.
"""

import hashlib
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from builder.filesets.item import FilesetManifestFile, FilesetPlatformItem
from builder.filesets.protocols import FilesetError
from builder.text import is_device

FILESETS = "filesets/"
WARCS = "warcs/"
FILES = "files/"
BUNDLE = "bundle.zip"
RECORD = "fileset.json"

_PLAIN = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-~+=@"
)  # fmt: skip
_PART = 200  # bytes in a part of a key
_PATH = 320  # bytes in the path part of a key: S3 takes 1,024 in all, with the store's prefix
_DIGITS = 12
_CUT = 20  # hexadecimal digits of the digest that replaces a cut end
_NOT_EMPTY = {"": "%00", ".": "%2E", "..": "%2E%2E"}
_NUMBER = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")
LONGEST_PATH = 255
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
_OTHER = re.compile(r"[^A-Za-z0-9.-]+")
_LONGEST = 80
_ITEM_DIGITS = 12


def place(item: FilesetPlatformItem) -> str:
    """Return the key prefix for a dataset with exactly this manifest; it ends with `/`."""
    parts = (item.platform_name, item.platform_domain or "", item.platform_id or "")
    last = f"{part(item.version or '0', _PART - _DIGITS - 1)}.{manifest_digest(item)}"
    return FILESETS + "".join(part(text) + "/" for text in parts) + last + "/"


def manifest_digest(item: FilesetPlatformItem) -> str:
    """Return a digest of the files that the platform gives, in 12 hexadecimal digits."""
    rows = sorted(
        json.dumps([f.path, f.size, f.md5, f.sha1, f.sha256, f.sha512]) for f in item.files
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:_DIGITS]


def file_keys(base: str, paths: Iterable[str]) -> dict[str, str]:
    """Return the key of each file below a prefix.

    Some disks ignore case in names, and a name cannot be both a file and a folder. A path with such
    a conflict is named by its digest, and so is a path that is too long.
    """
    escaped = {path: "/".join(map(part, path.split("/"))) for path in paths}
    folded = Counter(text.lower() for text in escaped.values())
    folders = {
        folder
        for parts in (text.split("/") for text in folded)
        for length in range(1, len(parts))
        if (folder := "/".join(parts[:length])) in folded
    }
    found = {}
    for path, text in escaped.items():
        alone = folded[text.lower()] == 1 and text.lower() not in folders and len(text) <= _PATH
        found[path] = base + FILES + (text if alone else _by_digest(path))
    return found


def warc_key(item: FilesetPlatformItem, at: str) -> str:
    """Return the key of the WARC of a request that started `at` (14 digits, UTC)."""
    names = (item.platform_name, item.platform_domain or "", item.platform_id or "")
    head = _short("-".join(part(text) for text in names), _PART)
    return f"{WARCS}{head}-{manifest_digest(item)}-{at}.warc.gz"


def prefix_of(key: str) -> str | None:
    """Return the prefix that a key belongs to, None if `place` cannot have created it."""
    parts = key.split("/")
    if len(parts) < 6 or parts[0] + "/" != FILESETS:
        return None
    _, _, number = parts[4].rpartition(".")
    return "/".join(parts[:5]) + "/" if _NUMBER.fullmatch(number) else None


def part(text: str, longest: int = _PART) -> str:
    """Return a text as one part of a key: percent-encoded, at most `longest` bytes."""
    if text in _NOT_EMPTY:
        return _NOT_EMPTY[text]
    escaped = "".join(
        chr(byte) if byte in _PLAIN else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogatepass")
    )
    return _short(escaped, longest)


def _short(escaped: str, longest: int) -> str:
    """Return an escaped text; if it is too long, a digest replaces its end."""
    if len(escaped) <= longest:
        return escaped
    head = re.sub(r"%[0-9A-F]?$", "", escaped[: longest - _CUT - 3])
    return f"{head}%7E{hashlib.sha256(escaped.encode()).hexdigest()[:_CUT]}"


def _by_digest(path: str) -> str:
    # No path is escaped to %7E, because ~ is plain: such a key belongs to no other file.
    return f"%7E{hashlib.sha256(path.encode()).hexdigest()[:32]}/{part(path.rpartition('/')[2])}"


def safe_path(raw: str) -> str:
    """Return the path in normal form C. Raises FilesetError (unsafe-path) if it is unsafe.

    An unsafe path is rejected, never repaired by leaving parts out. Most paths are safe.
    """
    path = unicodedata.normalize("NFC", raw)
    if found := _fault(path):
        raise FilesetError("unsafe-path", f"{_show(raw)} {found}")
    return path


def make_paths_safe(files: Iterable[FilesetManifestFile]) -> tuple[FilesetManifestFile, ...]:
    """Return the files with safe paths, in their order; `extra` records the changes.

    Raises FilesetError, unsafe-path or duplicate-path, with all files in its manifest: the faulty
    files have its status.
    """
    given = tuple(files)
    found, faults, status = [], {}, ""
    for at, file in enumerate(given):
        try:
            path = safe_path(file.path)
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
        if len(part.encode()) > LONGEST_PATH:
            return f"has a part of more than {LONGEST_PATH} bytes"
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


def item_name(item: FilesetPlatformItem) -> str:
    """Return the name of the item: the existing one, or a name derived from the manifest.

    It has only letters that archive.org accepts, and starts with the platform's host. Another
    manifest of the same dataset has another name.
    """
    if item.archiveorg_item_name:
        return item.archiveorg_item_name
    number = hashlib.sha256(place(item).encode()).hexdigest()[:_ITEM_DIGITS]
    parts = (item.platform_domain or item.platform_name, item.platform_id or "", item.version or "")
    head = "-".join(_OTHER.sub("-", part).strip("-.") for part in parts)
    return f"{head[: _LONGEST - _ITEM_DIGITS - 1].strip('-.')}-{number}"


def item_metadata(item: FilesetPlatformItem) -> dict[str, Any]:
    """Return the metadata for creating the item; archiveorg_item_meta overrides the rest."""
    told = item.description
    found = {
        "mediatype": "data",
        "title": told.title or item.platform_id,
        "creator": [person.name for person in told.creators],
        "publisher": told.publisher,
        "date": told.published,
        "description": told.abstract,
        "subject": list(told.subjects),
        "language": told.language,
        "licenseurl": next((one.url for one in told.licences if one.url), None),
        "external-identifier": f"urn:doi:{told.doi}" if told.doi else None,
        "originalurl": item.web_base_url,
        "version": told.version or item.version,
    }
    given = found | dict(item.archiveorg_item_meta or {})
    return {key: value for key, value in given.items() if value not in (None, "", [])}
