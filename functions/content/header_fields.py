"""Headers: Range, Memento, archived headers without effect, and browser protection.

Memento: RFC 7089, section 2. Digests: RFC 9530. Range: RFC 9110, section 14. A single range is
answered with one part. Several ranges, or an invalid header, are answered with the whole.

An archive contains anything that the web contained, including scripts that attack readers, and
serves it under its own name. Therefore no script runs here, and nothing is shown that could
contain one. Only text, images and sound that a browser displays itself are `inline`; all else is
saved as a file. Every answer has SANDBOX.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import quote, unquote, urlsplit

ARCHIVED = "X-Archive-Orig-"
STATUS = "X-Archive-Status"
OMITTED = "X-Archive-Omitted"
DIGEST = "X-Archive-Payload-Digest"

MOST = 50
"""Maximum number of archived headers: clients accept 100 lines, and some are Sheaf's own."""
LONGEST, ALL = 2000, 6000
"""Maximum bytes of a value and of all values: gateways accept 10 KB of headers."""

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_URL_SAFE = "!#$%&'()*+,-./:;=?@[]_~"
"""Characters that stay unescaped in a URL, besides letters and digits; escapes stay as they are."""
_DIGESTS = {"sha1": ("sha", 20), "sha256": ("sha-256", 32), "sha512": ("sha-512", 64)}
"""Labels used by archives, without hyphens: name in RFC 9530's registry, and length in bytes."""
UNKNOWN_TYPE = "application/octet-stream"

SANDBOX: Mapping[str, str] = {
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
    "X-Dns-Prefetch-Control": "off",
    "X-Robots-Tag": "noindex",
}

_GUARD: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    # A page in the sandbox has no origin, so that to it its own images are another site's.
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Referrer-Policy": "no-referrer",
    "X-Dns-Prefetch-Control": "off",
    "X-Robots-Tag": "noindex",
}


def replay_guard(archived: str, parent: str = "") -> Mapping[str, str]:
    """Return the headers of archived pages that load what lies below the address `archived`.

    No script runs, no form is sent, and the origin is none (CSP 3, sandbox). A reader's click may
    lead the whole window on. With `parent`, an origin, only its pages may have it in a frame.
    """
    policy = (
        "sandbox allow-top-navigation-by-user-activation allow-popups "
        "allow-popups-to-escape-sandbox; default-src 'none'; "
        f"img-src {archived} data:; media-src {archived} data:; font-src {archived} data:; "
        f"style-src {archived} 'unsafe-inline'; frame-src {archived}; object-src {archived}; "
        "form-action 'none'; base-uri 'none'"
    )
    ancestors = f"; frame-ancestors 'self' {parent}" if parent else ""
    return {**_GUARD, "Content-Security-Policy": policy + ancestors}


INLINE = frozenset(
    (
        *("text/html", "text/plain", "image/png", "image/jpeg", "image/gif", "image/webp"),
        *("image/avif", "image/bmp", "image/x-icon", "image/vnd.microsoft.icon", "image/apng"),
        *("audio/mpeg", "audio/ogg", "audio/wav", "audio/x-wav", "audio/flac", "audio/mp4"),
        *("audio/aac", "audio/webm", "video/mp4", "video/webm", "video/ogg"),
    )
)
"""Media types that are shown. The sandbox lets HTML run nothing and load only images from here.

Browsers show no PDF in a sandbox. It, SVG, XML and all types not listed here are saved.
"""

_TYPE = re.compile(r"[ \t]*([A-Za-z0-9!#$&^_.+\-]{1,127})/([A-Za-z0-9!#$&^_.+\-]{1,127})[ \t]*")
_CHARSET = re.compile(r"""charset[ \t]*=[ \t]*["']?([A-Za-z0-9_.:\-]{1,40})["']?[ \t]*""", re.I)
_FRAMED = "multipart"
"""Clients would read its parts as ranges, or as a sequence of pages."""

_BARRED = re.compile(r'[\x00-\x1f\x7f-\x9f"*/:<>?\\|\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]')
"""Characters that some system forbids in file names, or that hide the end of a name."""
_LONGEST_NAME = 120
"""Characters of a name. Each takes up to four bytes in UTF-8, and file systems limit the length."""
_RANGE = re.compile(
    r"[ \t]*bytes[ \t]*=[ \t]*(?:([0-9]{1,40})-([0-9]{1,40})?|-([0-9]{1,40}))[ \t]*", re.IGNORECASE
)


def rename_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return archived headers under their new names.

    In values, control characters become blanks, and non-ASCII characters become %XX of their bytes,
    so no value can break a line. Values of the same name are joined by commas, without empty ones.
    OMITTED counts the headers that are invalid, too long or too many.
    """
    renamed: dict[str, str] = {}
    omitted, room = 0, ALL
    for name, value in headers:
        key = ARCHIVED + "-".join(part.capitalize() for part in name.split("-"))
        text = plain_value(value)
        size = len(text) + (2 if key in renamed else len(key) + 4)
        full = len(renamed) == MOST and key not in renamed
        if not _NAME.fullmatch(name) or len(text) > LONGEST or size > room or full:
            omitted += 1
            continue
        room -= size
        renamed[key] = ", ".join(filter(None, (renamed.get(key), text)))
    if omitted:
        renamed[OMITTED] = str(omitted)
    return renamed


def plain_value(value: str) -> str:
    """Return a value in printable ASCII."""
    text = CONTROL.sub(" ", value).strip()
    return (
        text
        if text.isascii()
        else "".join(c if c.isascii() else _percent_encode(c, "") for c in text)
    )


def uri(url: str) -> str:
    """Return a URL in a form that a header can hold between < and >."""
    return _percent_encode(url, _URL_SAFE)


def uri_in_path(url: str) -> str:
    """Return a URL as the end of a path; its query becomes that of the whole."""
    return uri(url).replace("#", "%23")


def _percent_encode(text: str, safe: str) -> str:
    """Return a text with %XX for its bytes; surrogates stand for raw bytes."""
    try:
        return quote(text.encode("utf-8", "surrogateescape"), safe=safe)
    except UnicodeEncodeError:
        return quote(text.encode("utf-8", "replace"), safe=safe)


def memento_headers(base: str, url: str, instant: datetime | None) -> dict[str, str]:
    """Return the Memento headers for a URL; `base` is the base URL of the paths here.

    A URL that is too long for a header gets no links.
    """
    original = uri(url)
    headers = {}
    if instant is not None:  # one without a zone is UTC
        aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        headers["Memento-Datetime"] = format_datetime(aware.astimezone(UTC), usegmt=True)
    if not 0 < len(original) <= LONGEST:
        return headers
    links = [
        f'<{original}>; rel="original"',
        f'<{base}/timemap/link/{original}>; rel="timemap"; type="application/link-format"',
        f'<{base}/timegate/{original}>; rel="timegate"',
    ]
    return {**headers, "Link": ", ".join(links)}


def repr_digest(digest: str) -> Mapping[str, str]:
    """Return the Repr-Digest header for the digest `label:value`, or {} if it is unknown.

    The value is base32 or hexadecimal.
    """
    label, _, value = digest.partition(":")
    name, size = _DIGESTS.get(label.lower().replace("-", ""), ("", 0))
    try:
        raw = bytes.fromhex(value) if len(value) == 2 * size else base64.b32decode(value.upper())
    except ValueError:
        return {}
    if not name or len(raw) != size:
        return {}
    return {"Repr-Digest": f"{name}=:{base64.b64encode(raw).decode()}:"}


def media_type(archived: str) -> str:
    """Return the Content-Type for an archived media type; the only parameter kept is charset.

    An invalid media type becomes application/octet-stream.
    """
    essence, *parameters = archived.split(";")
    match = _TYPE.fullmatch(essence)
    if match is None or match[1].lower() == _FRAMED:
        return UNKNOWN_TYPE
    essence_type = f"{match[1]}/{match[2]}".lower()
    charset = next(filter(None, (_CHARSET.fullmatch(p.strip()) for p in parameters)), None)
    return f"{essence_type}; charset={charset[1]}" if charset else essence_type


def file_name(url: str) -> str:
    """Return a file name for a URL or a path; it is never empty and contains no folder."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = url
    return clean_name(unquote(path.rstrip("/").rpartition("/")[2], errors="replace"))


def clean_name(name: str) -> str:
    """Return a file name without characters that are dangerous in one; it is never empty."""
    cleaned = _BARRED.sub("_", name).strip().strip(". ")
    if len(cleaned) > _LONGEST_NAME:
        stem, dot, ending = cleaned.rpartition(".")
        ending = dot + ending if stem and len(ending) <= 10 else ""
        cleaned = cleaned[: _LONGEST_NAME - len(ending)] + ending
    return cleaned or "content"


def disposition(content_type: str, filename: str) -> str:
    """Return the Content-Disposition (RFC 6266) for a Content-Type and a name from `name`."""
    kind = "inline" if content_type.partition(";")[0] in INLINE else "attachment"
    plain = filename.encode("ascii", "replace").decode("ascii").replace("?", "_").replace("%", "_")
    header = f'{kind}; filename="{plain}"'
    if plain != filename:  # RFC 8187
        header += f"; filename*=UTF-8''{quote(filename, safe='', errors='replace')}"
    return header


class Unsatisfiable(Exception):
    """The range contains no byte of the content."""


@dataclass(frozen=True, slots=True)
class RangePart:
    """The bytes from `first` to `last`, both included, of a content of `size` bytes."""

    first: int
    last: int
    size: int

    @property
    def length(self) -> int:
        """Number of bytes."""
        return self.last - self.first + 1

    @property
    def header(self) -> str:
        """The value of Content-Range."""
        return f"bytes {self.first}-{self.last}/{self.size}"


@dataclass(frozen=True, slots=True)
class RequestedRange:
    """A requested range: from `first` to `last` (None: the end), or the `tail` last bytes."""

    first: int = 0
    last: int | None = None
    tail: int | None = None

    def part(self, size: int, largest: int | None = None) -> RangePart | None:
        """Return the part of `size` bytes, cut to the first `largest` bytes (None: uncut).

        Empty content has no part (None) and is answered whole. A part may be smaller than
        requested; its Content-Range states its size (section 15.3.7). Raises Unsatisfiable.
        """
        if not size:
            return None
        if self.tail is not None:
            first, last = max(0, size - self.tail), size - 1
        else:
            first, last = self.first, size - 1 if self.last is None else min(self.last, size - 1)
        if first > last:
            raise Unsatisfiable
        if largest is not None:
            last = min(last, first + largest - 1)
        return RangePart(first, last, size)


def read_range(header: str) -> RequestedRange | None:
    """Return the requested range, or None if the whole is the answer."""
    match = _RANGE.fullmatch(header)
    if match is None:
        return None
    first, last, tail = match.groups()
    if tail is not None:
        return RequestedRange(tail=int(tail))
    if last is not None and int(last) < int(first):
        return None  # an invalid range (section 14.1.1)
    return RequestedRange(int(first), None if last is None else int(last))


def content_range(size: int) -> str:
    """Return the Content-Range that states the size alone."""
    return f"bytes */{size}"
