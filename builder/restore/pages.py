"""Conversion of pages: references in HTML and style sheets are rewritten to the restored files.

References to restored files become relative paths. Other references become the original URL, so
that the page still shows its targets. The encoding of a page, and all other bytes, are unchanged.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO, Protocol
from urllib.parse import quote, urldefrag, urljoin, urlsplit

import webencodings

from builder.restore.plan import Planned
from builder.restore.references import html_base, rewrite_css, rewrite_html
from builder.sources import charset

LARGEST = 32 << 20
"""Maximum bytes of a page; larger pages are not converted."""

_KINDS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "image/svg+xml": "html",
    "text/css": "css",
}
_TEXT_OF_ITS_OWN = frozenset({"utf-16le", "utf-16be", "iso-2022-jp"})
"""Encodings in which an ASCII byte need not be that character."""
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)
_PLAIN = re.compile("[!-~]*")
_AT_CHARSET = re.compile(rb'@charset "([^"]{1,40})";')
_ELSEWHERE = re.compile(r"\s*(?:#|(?!https?:|ftp:)[A-Za-z][A-Za-z0-9+.\-]*:)", re.IGNORECASE)
_BREAKS = {ord(c): None for c in "\t\n\r"}
_SAFE = "!$&+,;=@~/"


class ConvertedPages(Protocol):
    """Provider of the paths of URLs; Plan implements it."""

    def path(self, url: str) -> str | None:
        """Return the path of a URL, or of the target of its redirect."""
        ...


def kind(media_type: str) -> str | None:
    """Return the kind of references of a media type, or None."""
    return _KINDS.get(media_type)


def convert(
    file: BinaryIO, planned: Planned, headers: Mapping[str, str], kept: ConvertedPages
) -> str | None:
    """Rewrite a page in place; return its new SHA-256, or None if it is unchanged."""
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


def rewritten(
    data: bytes, planned: Planned, content_type: str, kept: ConvertedPages
) -> bytes | None:
    """Return a page with its references rewritten; None if its encoding forbids it."""
    form = kind(planned.media_type)
    name = _encoding(data, content_type, form, planned.url)
    found = webencodings.lookup(name) or webencodings.UTF8
    codec = found.codec_info.name
    if name in _TEXT_OF_ITS_OWN:
        text = data.decode(codec, "replace")
        if text.encode(codec, "replace") != data:
            return None
        references = _References(planned, kept, codec, bytewise=False)
        return references.rewrite(form, text).encode(codec, "replace")
    # In this encoding every byte is one character, so all other bytes stay, even invalid ones.
    references = _References(planned, kept, codec, bytewise=True)
    return references.rewrite(form, data.decode("latin-1")).encode("latin-1")


class _References:
    """Replaces the references of one page."""

    def __init__(
        self, planned: Planned, kept: ConvertedPages, codec: str, *, bytewise: bool
    ) -> None:
        self._planned = planned
        self._kept = kept
        self._codec = codec
        self._bytewise = bytewise
        self._base = planned.url

    def rewrite(self, form: str | None, text: str) -> str:
        """Return the text with its references rewritten; they are ASCII."""
        if form == "css":
            return rewrite_css(text, lambda written: self._reference(self._text(written)))
        base = html_base(text, self._text)
        if base is not None:
            with suppress(ValueError):
                self._base = urljoin(self._planned.url, base)
        return rewrite_html(text, self._reference, self._text)

    def _reference(self, written: str) -> str | None:
        """Return the relative path of a restored file, else the full URL; None if it is no URL."""
        text = written.translate(_BREAKS).strip()
        if not text or _ELSEWHERE.match(text):
            return None
        try:
            url, fragment = urldefrag(urljoin(self._base, text))
        except ValueError:
            return None
        mark = f"#{_quote(fragment)}" if fragment else ""
        for form in self._forms(url):
            path = self._kept.path(form)
            if path is not None:
                if path == self._planned.path and mark:
                    return mark
                folder = posixpath.dirname(self._planned.path)
                return quote(posixpath.relpath(path, folder), safe=_SAFE) + mark
        whole = next(self._forms(url)) + mark
        return None if whole == text else whole

    def _forms(self, url: str) -> Iterator[str]:
        """Yield the URL as browsers send it, then as older browsers and crawlers sent it.

        The path is UTF-8 and the query is in the page's encoding (URL Standard, section 4.4), or
        all is.
        """
        path, question, query = url.partition("?")
        yield _quote(path) + question + _quote(query, self._codec)
        if not url.isascii():
            yield _quote(path, self._codec) + question + _quote(query, self._codec)

    def _text(self, written: str) -> str:
        """Return the characters of text whose bytes were read as one character each."""
        if not self._bytewise or written.isascii():
            return written
        try:
            return written.encode("latin-1").decode(self._codec)
        except UnicodeError:
            return written


def _quote(text: str, codec: str = "utf-8") -> str:
    """Return a part of a URL in ASCII; existing escapes stay."""
    if _PLAIN.fullmatch(text):
        return text
    return quote(text, safe="!\"#$%&'()*+,/:;<=>?@[\\]^_`{|}~", encoding=codec, errors="replace")


def _encoding(data: bytes, content_type: str, form: str | None, url: str) -> str:
    told = _CHARSET.search(content_type)
    name = charset.detect_bom(data) or charset.whatwg_name(told[1] if told else None)
    if form == "css":
        found = _AT_CHARSET.match(data)
        return name or charset.whatwg_name(found[1].decode("latin-1") if found else None) or "utf-8"
    return name or charset.html_charset(data, _host(url)).name


def _host(url: str) -> str | None:
    with suppress(ValueError):
        return urlsplit(url).hostname
    return None
