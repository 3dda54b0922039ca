"""Names of the files of a site (builder.outputs.site), which routers make in the same way."""

import hashlib

LETTERS = {"ListRecords": "r", "ListIdentifiers": "i"}
"""The verbs of lists, and the end of their folders."""
_LONGEST = 200
"""Characters of a set that is named by itself, because file names have limits."""

REPLAYED = "/web/in/"
"""Below it are archived pages, and what they load."""
TIMEMAPS = "/web/timemap/link/"
TYPES = {
    **{"xml": "text/xml", "xsd": "text/xml", "json": "application/json", "txt": "text/plain"},
    "csv": "text/csv",
    **{"atom": "application/atom+xml", "jsonld": "application/ld+json", "html": "text/html"},
    **{"css": "text/css", "js": "text/javascript", "link": "application/link-format"},
    **{"svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg", "gif": "image/gif"},
    **{"webp": "image/webp", "avif": "image/avif", "ico": "image/vnd.microsoft.icon"},
    **{"bmp": "image/bmp", "xhtml": "application/xhtml+xml", "pdf": "application/pdf"},
    **{"woff": "font/woff", "woff2": "font/woff2", "ttf": "font/ttf", "otf": "font/otf"},
    **{"mp3": "audio/mpeg", "ogg": "audio/ogg", "mp4": "video/mp4", "webm": "video/webm"},
    "bin": "application/octet-stream",
}
"""Media types by the extensions of files of a site."""


def digest_name(name: str) -> str:
    """Return the SHA-1 of an identifier or a set in hexadecimal."""
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()


def chain_key(folder: str, spec: str | None) -> str:
    """Return the name of a chain in the folder of a list; `spec` is None for all records."""
    return f"{_stem(folder, spec)}.json"


def page_key(folder: str, spec: str | None, first: int) -> str:
    """Return the name of a page."""
    return f"{_stem(folder, spec)}/{first}.xml"


def _stem(folder: str, spec: str | None) -> str:
    if spec is None:
        return f"{folder}/all"
    if len(spec) > _LONGEST or spec in (".", ".."):
        spec = f"sha1-{digest_name(spec)}"
    return f"{folder}/set/{spec}"
