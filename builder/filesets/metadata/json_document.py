"""Documents: JSON of a platform, read with nothing taken for granted.

A value that is missing, null or of another type is None or empty; where nothing can be made of an
answer without it, the answer is refused (platform-bad-response).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any
from urllib.parse import urljoin, urlsplit

from builder.filesets.item import FilesetManifestFile
from builder.filesets.protocols import FilesetError

_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?![\d-])")
_DOI = re.compile(r"\s*(?:(?:https?://)?(?:dx\.)?doi\.org/|doi:)?(10\.\d{4,9}/\S+?)\s*", re.I)
_HEX = re.compile(r"[0-9a-f]+")
_DIGITS = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128, "crc32": 8}
_NO_HOST = re.compile(r"[\s%<>\"'\\^`{|}]")
_SIZE = re.compile(r"[0-9]{1,18}")


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """Return an object. Raises FilesetError (platform-bad-response) for anything else."""
    if not isinstance(value, Mapping):
        raise FilesetError("platform-bad-response", f"{what} is no JSON object")
    return value


def inner(value: object, *names: str) -> Mapping[str, Any]:
    """Return the object that is found by names, one in the other; empty where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def entries(value: object) -> tuple[Mapping[str, Any], ...]:
    """Return the objects of a list, or the one object that stands for a list of one."""
    if isinstance(value, Mapping):
        return (value,)
    if not isinstance(value, list):
        return ()
    return tuple(entry for entry in value if isinstance(entry, Mapping))


def objects_of(value: object, what: str) -> tuple[Mapping[str, Any], ...]:
    """Return a list's objects. Raises FilesetError (platform-bad-response) if it is no such list.

    For lists of files: one that could be read in part alone would pass for a whole one.
    """
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise FilesetError("platform-bad-response", f"{what} is no list of JSON objects")
    return tuple(value)


def text(value: object) -> str | None:
    """Return a text without space around it, or a number as one; None if it is empty or neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        return None
    # Lone surrogates are legal in JSON and in no encoding.
    return value.encode("utf-8", "replace").decode().strip() or None


def texts(value: object, apart: str = "") -> tuple[str, ...]:
    """Return the texts of a list, or of one text, cut `apart` where that is given; each once."""
    given = value if isinstance(value, list) else [value]
    found = [one for one in map(text, given) if one]
    if apart:
        found = [part for one in found for part in map(str.strip, one.split(apart)) if part]
    return tuple(dict.fromkeys(found))


def name(value: object, what: str) -> str:
    """Return a file's name as it is given. Raises FilesetError (platform-bad-response) if empty.

    It is not made better here: builder.filesets.strategies.path tells whether it can be kept.
    """
    if not isinstance(value, str) or not value:
        raise FilesetError("platform-bad-response", f"{what} has no name")
    return value.encode("utf-8", "replace").decode()


def size(value: object) -> int | None:
    """Return a number of bytes, given as a number or in digits; None if it is neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer() and 0 <= value < 1e18:
        return int(value)
    if isinstance(value, int):
        return value if 0 <= value < 10**18 else None
    return int(value) if isinstance(value, str) and _SIZE.fullmatch(value) else None


def digest(value: object, name: str) -> str | None:
    """Return a digest in lower case; None if it is none of that name (md5, sha1 and so on)."""
    found = value.strip().lower() if isinstance(value, str) else ""
    return found if len(found) == _DIGITS[name] and _HEX.fullmatch(found) else None


def day(value: object) -> str | None:
    """Return the day (W3CDTF) at which a date or time begins; None if there is no such day."""
    found = _DAY.match(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    year, month, of_month = found.groups()
    try:
        date(int(year), int(month or 1), int(of_month or 1))
    except ValueError:
        return None
    return found[0]


def doi(value: object) -> str | None:
    """Return a DOI in lower case and without a resolver before it; None if it is none."""
    found = _DOI.fullmatch(value) if isinstance(value, str) else None
    return found[1].lower() if found else None


def web(value: object) -> str | None:
    """Return a URL of the Web with a host, spaces in its path escaped; None if it is none."""
    found = text(value)
    if found is None or not found.isprintable():
        return None
    try:
        parts = urlsplit(found)
    except ValueError:
        return None
    named = parts.hostname and not _NO_HOST.search(parts.netloc)
    return found.replace(" ", "%20") if named and parts.scheme in ("http", "https") else None


def join_url(root: str, value: object) -> str | None:
    """Return the URL that a link means in a document below `root`; None if it is none."""
    link = text(value)
    try:
        return web(urljoin(root, link)) if link else None
    except ValueError:
        return None


def host(url: str) -> str:
    """Return a URL's host in lower case; empty if it has none that can be read."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def path(url: str) -> str:
    """Return a URL's path; empty if it cannot be read."""
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def apart(
    files: Sequence[FilesetManifestFile], names: Sequence[str]
) -> tuple[FilesetManifestFile, ...]:
    """Put files whose path another has as well into folders named by `names`, one a file.

    For platforms where a name need not be the only one of its kind, and an id is.
    """
    paths = [file.path for file in files]
    return tuple(
        replace(file, path=f"{name}/{file.path}") if paths.count(file.path) > 1 else file
        for file, name in zip(files, names, strict=True)
    )
