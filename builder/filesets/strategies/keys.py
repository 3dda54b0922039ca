"""Places: the keys below which the store keeps a dataset.

The same manifest has the same place, and another manifest has another: so no key is ever used
again for other bytes. The keys hold no character that needs care anywhere.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable

from builder.filesets.item import FilesetPlatformItem

FILESETS = "filesets/"
WARCS = "warcs/"
FILES = "files/"
BUNDLE = "bundle.zip"
RECORD = "fileset.json"

_PLAIN = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-~+=@"
)  # fmt: skip
_PART = 200  # bytes of a part of a key
_PATH = 320  # bytes of a path in a key: S3 takes 1,024 in all, with the store's prefix
_DIGITS = 12
_CUT = 20  # hexadecimal digits that stand for what was cut off
_NOT_EMPTY = {"": "%00", ".": "%2E", "..": "%2E%2E"}
_NUMBER = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")


def place(item: FilesetPlatformItem) -> str:
    """Return the prefix of all keys of a dataset with that very manifest; it ends with `/`."""
    parts = (item.platform_name, item.platform_domain or "", item.platform_id or "")
    last = f"{part(item.version or '0', _PART - _DIGITS - 1)}.{digest(item)}"
    return FILESETS + "".join(part(text) + "/" for text in parts) + last + "/"


def digest(item: FilesetPlatformItem) -> str:
    """Return 12 hexadecimal digits that are of the files that the platform gives."""
    rows = sorted(
        json.dumps([f.path, f.size, f.md5, f.sha1, f.sha256, f.sha512]) for f in item.files
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:_DIGITS]


def files(base: str, paths: Iterable[str]) -> dict[str, str]:
    """Return the key of each file below a place.

    A disk may take names for one that differ by case alone, and no name is both a file and a
    folder there. So such a path is named by its digest, as is one that is too long.
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


def warc(item: FilesetPlatformItem, at: str) -> str:
    """Return the key of the WARC that a request makes which began `at` (14 digits, UTC)."""
    names = (item.platform_name, item.platform_domain or "", item.platform_id or "")
    head = _short("-".join(part(text) for text in names), _PART)
    return f"{WARCS}{head}-{digest(item)}-{at}.warc.gz"


def of(key: str) -> str | None:
    """Return the place that a key lies in, None where that is none that `place` gives."""
    parts = key.split("/")
    if len(parts) < 6 or parts[0] + "/" != FILESETS:
        return None
    _, _, number = parts[4].rpartition(".")
    return "/".join(parts[:5]) + "/" if _NUMBER.fullmatch(number) else None


def part(text: str, longest: int = _PART) -> str:
    """Return a text as one part of a key: percent-encoded, of `longest` bytes at the most."""
    if text in _NOT_EMPTY:
        return _NOT_EMPTY[text]
    escaped = "".join(
        chr(byte) if byte in _PLAIN else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogatepass")
    )
    return _short(escaped, longest)


def _short(escaped: str, longest: int) -> str:
    """Return an escaped text, the end of it replaced by a digest of it where it is too long."""
    if len(escaped) <= longest:
        return escaped
    head = re.sub(r"%[0-9A-F]?$", "", escaped[: longest - _CUT - 3])
    return f"{head}%7E{hashlib.sha256(escaped.encode()).hexdigest()[:_CUT]}"


def _by_digest(path: str) -> str:
    # No path is escaped to %7E, for ~ is plain: such a key is no other file's.
    return f"%7E{hashlib.sha256(path.encode()).hexdigest()[:32]}/{part(path.rpartition('/')[2])}"
