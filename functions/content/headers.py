"""Headers of an answer: archived headers under names without effect, and Memento headers.

Memento: RFC 7089, section 2. Digests: RFC 9530.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import quote

ARCHIVED = "X-Archive-Orig-"
STATUS = "X-Archive-Status"
OMITTED = "X-Archive-Omitted"
DIGEST = "X-Archive-Payload-Digest"

MOST = 50
"""Maximum number of archived headers: clients accept 100 lines, and some are Sheaf's own."""
LONGEST, ALL = 2000, 6000
"""Maximum bytes of a value and of all values: gateways accept 10 KB of headers."""

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_URL_SAFE = "!#$%&'()*+,-./:;=?@[]_~"
"""Characters that stay unescaped in a URL, besides letters and digits; escapes stay as they are."""
_DIGESTS = {"sha1": ("sha", 20), "sha256": ("sha-256", 32), "sha512": ("sha-512", 64)}
"""Labels used by archives, without hyphens: name in RFC 9530's registry, and length in bytes."""


def rename_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return archived headers under their new names.

    In values, control characters become blanks, and non-ASCII characters become %XX of their bytes,
    so no value can break a line. Values of the same name are joined by commas. OMITTED counts the
    headers that are invalid, too long or too many.
    """
    found: dict[str, str] = {}
    omitted, room = 0, ALL
    for name, value in headers:
        key = ARCHIVED + "-".join(part.capitalize() for part in name.split("-"))
        text = plain(value)
        size = len(text) + (2 if key in found else len(key) + 4)
        full = len(found) == MOST and key not in found
        if not _NAME.fullmatch(name) or len(text) > LONGEST or size > room or full:
            omitted += 1
            continue
        room -= size
        found[key] = f"{found[key]}, {text}" if key in found else text
    if omitted:
        found[OMITTED] = str(omitted)
    return found


def plain(value: str) -> str:
    """Return a value in printable ASCII."""
    text = _CONTROL.sub(" ", value).strip()
    return (
        text
        if text.isascii()
        else "".join(c if c.isascii() else _percent_encode(c, "") for c in text)
    )


def uri(url: str) -> str:
    """Return a URL in a form that a header can hold between < and >."""
    return _percent_encode(url, _URL_SAFE)


def _percent_encode(text: str, safe: str) -> str:
    """Return a text with %XX for its bytes; surrogates stand for raw bytes."""
    try:
        return quote(text.encode("utf-8", "surrogateescape"), safe=safe)
    except UnicodeEncodeError:
        return quote(text.encode("utf-8", "replace"), safe=safe)


def date(instant: datetime) -> str:
    """Return an instant in HTTP's format; one without a zone is UTC."""
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return format_datetime(aware.astimezone(UTC), usegmt=True)


def memento(base: str, url: str, instant: datetime | None) -> dict[str, str]:
    """Return the Memento headers for a URL; `base` is the base URL of the paths here.

    A URL that is too long for a header gets no links.
    """
    original = uri(url)
    told = {} if instant is None else {"Memento-Datetime": date(instant)}
    if not 0 < len(original) <= LONGEST:
        return told
    links = [
        f'<{original}>; rel="original"',
        f'<{base}/timemap/link/{original}>; rel="timemap"; type="application/link-format"',
        f'<{base}/timegate/{original}>; rel="timegate"',
    ]
    return {**told, "Link": ", ".join(links)}


def repr_digest(digest: str) -> Mapping[str, str]:
    """Return the Repr-Digest header for the digest `label:value`, or {} if it is unknown.

    The value is base32 or hexadecimal.
    """
    label, _, value = digest.partition(":")
    known = _DIGESTS.get(label.lower().replace("-", ""))
    raw = None if known is None else _decode_base64(value, known[1])
    if known is None or raw is None:
        return {}
    return {"Repr-Digest": f"{known[0]}=:{base64.b64encode(raw).decode()}:"}


def _decode_base64(value: str, size: int) -> bytes | None:
    try:
        found = bytes.fromhex(value) if len(value) == 2 * size else base64.b32decode(value.upper())
    except (ValueError, binascii.Error):
        return None
    return found if len(found) == size else None
