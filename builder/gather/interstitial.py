"""Pages: whether what a URL gave is a page for people where a file should be."""

from urllib.parse import unquote, urlsplit

from builder.http.response import Content

LANDING, SOFT_404, TEXT_SAME = "landing-page", "soft-404", "text-same"
"""Flags of a version: a page for people; one in place of a PDF; other bytes with the same text."""

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_MARKS = (b"<!doctype html", b"<html")
_PDF = b"%PDF-"


def names_pdf(url: str) -> bool:
    """Tell whether a URL's path ends as that of a PDF does."""
    return unquote(urlsplit(url).path).lower().endswith(".pdf")


def flags(content: Content, as_pdf: bool) -> tuple[str, ...]:
    """Return what is odd about the bytes; `as_pdf` says that a PDF was to be expected.

    It is told from the bytes and from what the server says of them; only bytes can be a PDF.
    """
    if _PDF in content.head:
        return ()
    html = content.media_type in _HTML or _looks_like_html(content.head)
    if not html:
        return ()
    return (LANDING, SOFT_404) if as_pdf else (LANDING,)


def _looks_like_html(head: bytes) -> bool:
    """Tell whether it begins as HTML does, behind a declaration of XML and comments."""
    rest = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    while rest.startswith((b"<!--", b"<?xml")):
        _, end, rest = rest.partition(b"-->" if rest.startswith(b"<!--") else b"?>")
        if not end:
            return False
        rest = rest.lstrip()
    return b" ".join(rest[:64].split()).lower().startswith(_MARKS)
