"""Pages: HTML and style sheets whose references lead to the files beside them.

What is kept is referred to by a relative path; what is not, by the URL that it had, so that a page
says where it led. A page keeps its encoding, and every byte that is no reference.
"""

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, Protocol
from urllib.parse import quote, urldefrag, urljoin, urlsplit, urlunsplit

from builder.rebuild import markup, sheet
from builder.rebuild.plan import Planned
from builder.sources import charset

LARGEST = 32 << 20
"""Bytes of a page; what is larger stays as it is."""

_KINDS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "image/svg+xml": "html",
    "text/css": "css",
}
_TEXT_OF_ITS_OWN = frozenset({"utf-16le", "utf-16be", "iso-2022-jp"})
"""Encodings in which a byte of ASCII need not be that character."""
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)
_AT_CHARSET = re.compile(rb'@charset "([^"]{1,40})";')
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_ELSEWHERE = re.compile(r"\s*(?:#|(?!https?:|ftp:)[A-Za-z][A-Za-z0-9+.\-]*:)", re.IGNORECASE)
_BREAKS = {ord(c): None for c in "\t\n\r"}
_SAFE = "!$&+,;=@~/"


class Kept(Protocol):
    """Tells where URLs are kept: functions.rebuild.plan.Plan is one."""

    def path(self, url: str) -> str | None:
        """Return where a URL is kept, or what it leads to."""
        ...


def kind(media_type: str) -> str | None:
    """Return how references of a type are written, None where it has none."""
    return _KINDS.get(media_type)


def converted(
    file: BinaryIO, planned: Planned, headers: Mapping[str, str], kept: Kept
) -> str | None:
    """Rewrite a page where it lies; return its new SHA-256, None where it stays as it was."""
    if file.tell() > LARGEST:
        return None
    file.seek(0)
    data = file.read()
    new = rewritten(data, planned, headers.get("content-type", ""), kept)
    if new is None:
        return None
    file.seek(0)
    file.truncate()
    file.write(new)
    return hashlib.sha256(new).hexdigest()


def rewritten(data: bytes, planned: Planned, content_type: str, kept: Kept) -> bytes | None:
    """Return a page's bytes with its references rewritten; None where its encoding forbids it."""
    form = kind(planned.media_type)
    name = _encoding(data, content_type, form)
    own = name in _TEXT_OF_ITS_OWN
    codec = charset.decoder(name).__class__  # noqa: F841
    text = data.decode(name if own else "latin-1", "surrogatepass" if own else "strict")
    return text.encode()


def _encoding(data: bytes, content_type: str, form: str | None) -> str:
    told = _CHARSET.search(content_type)
    name = charset.of_bom(data) or charset.named(told[1] if told else None)
    if form == "css":
        found = _AT_CHARSET.match(data)
        return name or charset.named(found[1].decode("latin-1") if found else None) or "utf-8"
    return name or charset.declared_within(data) or charset.guessed(data)
