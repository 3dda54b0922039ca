"""Protects browsers from hostile archived content.

An archive contains anything that the web contained, including scripts that attack readers, and
serves it under its own name. Therefore no script runs here, and nothing is shown that could contain
one. Only text, images and sound that a browser displays itself are `inline`; all else is saved as a
file. Every answer has HEADERS.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit

UNKNOWN = "application/octet-stream"

HEADERS: Mapping[str, str] = {
    # A separate origin, no scripts, no forms, no plug-ins (CSP 3, sandbox). An image or a video may
    # load itself from this server; nothing else is loaded.
    "Content-Security-Policy": "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Other sites may read it by fetch (CORS), but not embed it as script, style or image.
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex",
}

INLINE = frozenset(
    (
        *("text/plain", "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"),
        *("image/bmp", "image/x-icon", "image/vnd.microsoft.icon", "image/apng"),
        *("audio/mpeg", "audio/ogg", "audio/wav", "audio/x-wav", "audio/flac", "audio/mp4"),
        *("audio/aac", "audio/webm", "video/mp4", "video/webm", "video/ogg"),
    )
)
"""Media types that are shown. HTML, SVG, XML and PDF may contain scripts.

Browsers show no PDF in a sandbox. These and all types not listed here are saved.
"""

_TYPE = re.compile(r"[ \t]*([A-Za-z0-9!#$&^_.+\-]{1,127})/([A-Za-z0-9!#$&^_.+\-]{1,127})[ \t]*")
_CHARSET = re.compile(r"""charset[ \t]*=[ \t]*["']?([A-Za-z0-9_.:\-]{1,40})["']?[ \t]*""", re.I)
_FRAMED = "multipart"
"""Its parts would be taken for ranges, or for one page after the other."""

_BARRED = re.compile(r'[\x00-\x1f\x7f-\x9f"*/:<>?\\|\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]')
"""Characters that some system forbids in file names, or that hide the end of a name."""
_LONGEST_NAME = 120
"""Characters of a name. Each takes up to four bytes in UTF-8, and file systems limit the length."""
_NAMELESS = "content"


def media_type(archived: str) -> str:
    """Return the Content-Type for an archived media type; the only parameter kept is charset.

    An invalid media type becomes application/octet-stream.
    """
    essence, *parameters = archived.split(";")
    match = _TYPE.fullmatch(essence)
    if match is None or match[1].lower() == _FRAMED:
        return UNKNOWN
    found = f"{match[1]}/{match[2]}".lower()
    charset = next(filter(None, (_CHARSET.fullmatch(p.strip()) for p in parameters)), None)
    return f"{found}; charset={charset[1]}" if charset else found


def is_inline(content_type: str) -> bool:
    """Return whether a browser may show this Content-Type, as returned by `media_type`."""
    return content_type.partition(";")[0] in INLINE


def name(url: str) -> str:
    """Return a file name for a URL or a path; it is never empty and contains no folder."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = url
    last = unquote(path.rstrip("/").rpartition("/")[2], errors="replace")
    found = _BARRED.sub("_", last).strip().strip(". ")
    if len(found) > _LONGEST_NAME:
        stem, dot, ending = found.rpartition(".")
        ending = dot + ending if stem and len(ending) <= 10 else ""
        found = found[: _LONGEST_NAME - len(ending)] + ending
    return found or _NAMELESS


def disposition(content_type: str, filename: str) -> str:
    """Return the Content-Disposition (RFC 6266) for a Content-Type and a name from `name`."""
    kind = "inline" if is_inline(content_type) else "attachment"
    plain = filename.encode("ascii", "replace").decode("ascii").replace("?", "_").replace("%", "_")
    found = f'{kind}; filename="{plain}"'
    if plain != filename:  # RFC 8187
        found += f"; filename*=UTF-8''{quote(filename, safe='', errors='replace')}"
    return found
