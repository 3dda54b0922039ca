"""What keeps hostile content harmless in the browser of whoever opens its address.

An archive holds whatever the web held, scripts that attack their readers included, and gives it
under its own name. So nothing of it runs here, and nothing of it is shown that could: only what a
browser shows as text, picture or sound is `inline`, all else is to be saved. Every answer bears
HEADERS, whatever it is.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit

UNKNOWN = "application/octet-stream"

HEADERS: Mapping[str, str] = {
    # An origin of its own, no scripts, no forms, no plug-ins (CSP 3, sandbox); of this server a
    # picture or a film may load itself, and nothing else from anywhere.
    "Content-Security-Policy": "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Other sites may read it by fetch (CORS), but not have it as their script, style or picture.
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
"""Media types that are shown. HTML, SVG and XML may hold scripts, and PDF too: no browser shows
one in a sandbox. They are to be saved, as is whatever is not named here."""

_TYPE = re.compile(r"[ \t]*([A-Za-z0-9!#$&^_.+\-]{1,127})/([A-Za-z0-9!#$&^_.+\-]{1,127})[ \t]*")
_CHARSET = re.compile(r"""charset[ \t]*=[ \t]*["']?([A-Za-z0-9_.:\-]{1,40})["']?[ \t]*""", re.I)
_FRAMED = "multipart"
"""Of such an answer the parts would be taken for ranges, or for one page after the other."""

_BARRED = re.compile(r'[\x00-\x1f\x7f-\x9f"*/:<>?\\|\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]')
"""What no file can be called by somewhere, and characters that hide what a name ends with."""
_LONGEST_NAME = 120
"""Characters of a name, four bytes each at most in UTF-8 and less than what a disk can bear."""
_NAMELESS = "content"


def media_type(archived: str) -> str:
    """Return the Content-Type of what was archived with that one: of its parameters the charset.

    What is none is a stream of bytes.
    """
    essence, *parameters = archived.split(";")
    match = _TYPE.fullmatch(essence)
    if match is None or match[1].lower() == _FRAMED:
        return UNKNOWN
    found = f"{match[1]}/{match[2]}".lower()
    charset = next(filter(None, (_CHARSET.fullmatch(p.strip()) for p in parameters)), None)
    return f"{found}; charset={charset[1]}" if charset else found


def is_inline(content_type: str) -> bool:
    """Tell whether a browser may show what has that Content-Type, as `media_type` returns it."""
    return content_type.partition(";")[0] in INLINE


def name(url: str) -> str:
    """Return what to call a file that was had from a URL, or has that path: never "" or a path."""
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
    """Return the Content-Disposition (RFC 6266) of a content and a name of `name`."""
    kind = "inline" if is_inline(content_type) else "attachment"
    plain = filename.encode("ascii", "replace").decode("ascii").replace("?", "_").replace("%", "_")
    found = f'{kind}; filename="{plain}"'
    if plain != filename:  # RFC 8187
        found += f"; filename*=UTF-8''{quote(filename, safe='', errors='replace')}"
    return found
