"""Bytes of pages: their references are replaced within their own encoding.

The encoding of a page, and all bytes that are no reference, are unchanged.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote, urldefrag, urljoin, urlsplit

import webencodings

from functions.archive import charset
from functions.content.replay.references import (
    FRAME,
    LINK,
    OFF,
    REFRESH,
    SCRIPT,
    ReferenceRules,
    find_base,
    rewrite_css,
    rewrite_html,
)

LARGEST = 32 << 20
"""Maximum bytes of a page; larger pages are not converted."""

KINDS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "image/svg+xml": "html",
    "text/css": "css",
}
"""The kinds of references of media types."""

Goal = Callable[[Iterator[str], str, str, str], str | None]
"""Returns where a reference leads, None to keep it.

It takes the forms of the URL, likeliest first, its fragment with `#` or "", what it is for, and the
reference as written.
"""
Target = Callable[[str], str]
"""Returns the target of a link ("": none) that has this one."""

_DRAWING = re.compile(rb"<(?:\w+:)?svg(?=[\s>])([^>]*)")
_SIZE = re.compile(rb"\s(?:width|height)\s*=")
_VIEW_BOX = re.compile(
    rb"\sviewBox\s*=\s*[\"']\s*(?:[-+.\de]+[\s,]+){2}([.\d]{1,9})[\s,]+([.\d]{1,9})\s*[\"']"
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)
_PLAIN = re.compile("[!-~]*")
_SIMPLE = re.compile(
    r"(?:(https?://[A-Za-z0-9.\-]++(?::[0-9]++)?/)|(/)(?!/)|(?=[\w~%]))"
    r"[\w/.~%=&+\-]*+(?:\?[\w/.~%=&+\-]++)?",
    re.ASCII,
)
"""What most references are: a URL, or a path from the root or from the page, without a fragment."""
_STEPS = re.compile("/[./]")
_AT_CHARSET = re.compile(rb'@charset "([^"]{1,40})";')
_ELSEWHERE = re.compile(r"\s*(?:#|(?!https?:|ftp:)[A-Za-z][A-Za-z0-9+.\-]*:)", re.IGNORECASE)
_ACTIVE = re.compile(r"(?:javascript|vbscript|data):", re.IGNORECASE)
"""What a browser would run or show by itself as a page."""
_BEFORE_QUERY = re.compile(r"([^?#]*)([?#]?)(.*)", re.DOTALL)
_BREAKS = {ord(c): None for c in "\t\n\r"}


def size_drawing(data: bytes) -> bytes:
    """Return an SVG with the size of its view box, unless it says a size.

    Without one, a browser enlarges it to its whole window.
    """
    root = _DRAWING.search(data)
    if root is None or _SIZE.search(root[1]) or not (box := _VIEW_BOX.search(root[1])):
        return data
    at = root.start(1)
    return data[:at] + b' width="%b" height="%b"' % box.groups() + data[at:]


@dataclass(frozen=True, slots=True)
class PageBytes:
    """A page: its bytes, its URL, one of the values of KINDS, and its encoding's WHATWG name."""

    data: bytes
    url: str
    form: str
    encoding: str

    @staticmethod
    def of(data: bytes, url: str, form: str, content_type: str) -> "PageBytes":
        """Return the page with the encoding that its archived Content-Type or it itself says."""
        declared = _CHARSET.search(content_type)
        name = charset.detect_bom(data) or charset.whatwg_name(declared[1] if declared else None)
        if name is None and form == "css":
            match = _AT_CHARSET.match(data)
            name = charset.whatwg_name(match[1].decode("latin-1") if match else None) or "utf-8"
        if name is None:
            host = None
            with suppress(ValueError):
                host = urlsplit(url).hostname
            name = charset.html_charset(data, host).name
        return PageBytes(data, url, form, name)

    def rewrite(self, goal: Goal, target: Target | None = None) -> bytes | None:
        """Return the page with its references replaced; None if its encoding forbids it.

        With `target`, an archive shows it (see ReferenceRules), and no encoding forbids it: what
        cannot be decoded is replaced.
        """
        codec = (webencodings.lookup(self.encoding) or webencodings.UTF8).codec_info.name
        if self.encoding in charset.UNLIKE_ASCII:
            text = self.data.decode(codec, "replace")
            if target is None and text.encode(codec, "replace") != self.data:
                return None
            references = _PageReferences(self, goal, target, codec, bytewise=False)
            return references.rewrite(text).encode(codec, "replace")
        # In this encoding every byte is one character, so all other bytes stay, even invalid ones.
        references = _PageReferences(self, goal, target, codec, bytewise=True)
        return references.rewrite(self.data.decode("latin-1")).encode("latin-1")


class _PageReferences:
    """Replaces the references of one page."""

    def __init__(
        self, page: PageBytes, goal: Goal, target: Target | None, codec: str, *, bytewise: bool
    ) -> None:
        self._page = page
        self._goal = goal
        self._target = target
        self._codec = codec
        self._bytewise = bytewise
        self._before: dict[int | None, str]
        self._set_base(page.url)

    def _set_base(self, url: str) -> None:
        """Resolve further references by a URL, and simple ones by what stands before them."""
        self._base, self._before = url, {}
        if _PLAIN.fullmatch(url):
            with suppress(ValueError):
                self._before = {2: urljoin(url, "/-")[:-2], None: urljoin(url, "-")[:-1]}

    def rewrite(self, text: str) -> str:
        """Return the text with its references rewritten; they are ASCII."""
        if self._page.form == "css":
            return rewrite_css(text, lambda url, role: self._reference(self._text(url), role))
        base, base_target = find_base(text, self._text)
        if base:
            with suppress(ValueError):
                self._set_base(urljoin(self._page.url, base))
        rules = ReferenceRules(
            self._reference,
            self._text,
            None if self._target is None else self._link,
            base_target,
        )
        return rewrite_html(text, rules)

    def _reference(self, written: str, role: str) -> str | None:
        """Return where a reference leads; None if it is no URL."""
        if simple := _SIMPLE.fullmatch(written):  # urljoin takes most of the time
            if simple[1]:
                return self._goal(iter((written,)), "", role, written)
            if simple.lastindex in self._before and not _STEPS.search(written):
                url = self._before[simple.lastindex] + written
                return self._goal(iter((url,)), "", role, written)
        text = written.translate(_BREAKS).strip()
        if (
            self._target is not None
            and role in (LINK, FRAME, REFRESH, SCRIPT)
            and _ACTIVE.match(text)
        ):
            return OFF
        if not text or _ELSEWHERE.match(text):
            return None
        if self._target is not None and "\\" in text:  # browsers read these as slashes
            path, mark, rest = _BEFORE_QUERY.match(text).groups()  # type: ignore[union-attr]
            text = path.replace("\\", "/") + mark + rest
        try:
            url, fragment = urldefrag(urljoin(self._base, text))
        except ValueError:
            return None if self._target is None else OFF
        return self._goal(self._forms(url), f"#{_quote(fragment)}" if fragment else "", role, text)

    def _link(self, written: str, target: str) -> tuple[str | None, str]:
        """Return where a link leads, and in which frame."""
        assert self._target is not None
        new_target = self._target(target)
        # What stays in its frame is a frame's page, without anything around it.
        new = self._reference(written, LINK if new_target in ("_top", "_blank") else FRAME)
        return new, "" if new is None or new.startswith("#") else new_target

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
