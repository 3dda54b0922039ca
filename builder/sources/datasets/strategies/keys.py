"""Names of a dataset in the store: keys of objects, archive.org items.

The same manifest always has the same prefix, and another manifest has another. So no key is reused
for other bytes. The keys contain only characters that are safe everywhere.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from builder.sources.datasets.item import FilesetPlatformItem

FILESETS = "filesets/"
WARCS = "warcs/"
FILES = "files/"
BUNDLE = "bundle.zip"
RECORD = "fileset.json"
LEASES = "filesets/leases/"

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-~+=@")
_PART = 200  # bytes in a part of a key
_PATH = 320  # bytes in the path part of a key: S3 takes 1,024 in all, with the store's prefix
_DIGITS = 12
_CUT = 20  # hexadecimal digits of the digest that replaces a cut end
_NOT_EMPTY = {"": "%00", ".": "%2E", "..": "%2E%2E"}
_NUMBER = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")
_OTHER = re.compile(r"[^A-Za-z0-9.-]+")
_NAMING = {"item_prefix": "", "item_names": "digest"}
_RECORDS = frozenset({"zenodo"})
"""Platforms whose versions sandcrawler names by the record alone."""


def place(item: FilesetPlatformItem) -> str:
    """Return the key prefix for a dataset with exactly this manifest; it ends with `/`."""
    names = (item.platform_name, item.platform_domain, item.platform_id, item.version)
    rows = sorted(
        json.dumps([f.path, f.size, f.md5, f.sha1, f.sha256, f.sha512]) for f in item.files
    )
    digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()[:_DIGITS]
    return f"{version_prefix(*names)}{digest}/"


def version_prefix(platform: str, domain: str | None, id_: str | None, version: str | None) -> str:
    """Return how the key prefixes of all manifests of a version begin."""
    above = "".join(part(text) + "/" for text in (platform, domain or "", id_ or ""))
    return f"{FILESETS}{above}{part(version or '0', _PART - _DIGITS - 1)}."


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
    keys = {}
    for path, text in escaped.items():
        alone = folded[text.lower()] == 1 and text.lower() not in folders and len(text) <= _PATH
        # No path is escaped to %7E, because ~ is plain: such a key belongs to no other file.
        digest = hashlib.sha256(path.encode()).hexdigest()[:32]
        apart = f"%7E{digest}/{part(path.rpartition('/')[2])}"
        keys[path] = base + FILES + (text if alone else apart)
    return keys


def warc_key(item: FilesetPlatformItem, at: str, earlier: Iterable[str] = ()) -> str:
    """Return the key of the WARC of a request that started `at` (14 digits, UTC).

    `earlier` are the keys of the dataset's other WARCs; no two datasets and requests have one key.
    """
    number = hashlib.sha256("\n".join([place(item), *sorted(earlier)]).encode()).hexdigest()
    names = (item.platform_name, item.platform_domain or "", item.platform_id or "")
    head = _short("-".join(part(text) for text in names), _PART)
    return f"{WARCS}{head}-{number[:_DIGITS]}-{at}.warc.gz"


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


def item_name(item: FilesetPlatformItem, naming: Mapping[str, Any] = _NAMING) -> str:
    """Return the name of the item: the existing one, or a name by `fileset.strategy`.

    It has only letters that archive.org accepts, and starts with the platform's host, behind the
    configured prefix. By default it ends in a digest, so that another manifest of the same dataset
    has another name. sandcrawler's names have none.
    """
    if item.archiveorg_item_name:
        return item.archiveorg_item_name
    host = item.platform_domain or item.platform_name
    if naming["item_names"] == "sandcrawler":
        leaf, version = (item.platform_id or "").rpartition("/")[2], item.version
        if item.platform_name in _RECORDS:  # a version that is a record is the id itself
            leaf, version = version or leaf, None
        words, tail = [w for w in (host, leaf, f"v{version}" if version else "") if w], ""
    else:
        words = [host, item.platform_id or "", item.version or ""]
        tail = f"-{hashlib.sha256(place(item).encode()).hexdigest()[:_DIGITS]}"
    head = "-".join(_OTHER.sub("-", word).strip("-.") for word in words)
    return f"{naming['item_prefix']}{head}"[: 80 - len(tail)].strip("-.") + tail


def item_metadata(item: FilesetPlatformItem, collection: str = "") -> dict[str, Any]:
    """Return the metadata for creating the item; archiveorg_item_meta overrides the rest."""
    about = item.description
    metadata = {
        "mediatype": "data",
        "collection": collection,
        "title": about.title or item.platform_id,
        "creator": [person.name for person in about.creators],
        "publisher": about.publisher,
        "date": about.published,
        "description": about.abstract,
        "subject": list(about.subjects),
        "language": about.language,
        "licenseurl": next((licence.url for licence in about.licences if licence.url), None),
        "external-identifier": f"urn:doi:{about.doi}" if about.doi else None,
        "originalurl": item.web_base_url,
        "version": about.version or item.version,
        **(item.archiveorg_item_meta or {}),
    }
    return {key: value for key, value in metadata.items() if value not in (None, "", [])}
