"""The digests of a template's text, by which a changed template is known.

They are taken over its lines without trailing white space, blank lines, comments and end-of-file
marks, each ended by LF, as UTF-8. So another encoding or line end, blank lines, comments and a move
to another file make no difference.
"""

import base64
import hashlib
from collections.abc import Iterable

from builder.sources.redif import encoding

END_MARK = "\x1a"
"""^Z, with which DOS ended a text. A line of it alone is left out."""


def normalize_line_ends(text: str) -> str:
    """Return a text in which CRLF, LF or CR end a line with LF for each."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def is_content(line: str) -> bool:
    """Tell whether a line without trailing white space is any of the template's text."""
    return bool(line) and line[0] != "#" and line != END_MARK


def lines_digest(lines: Iterable[str]) -> tuple[str, str]:
    """Return the MD5 and the SHA-256 of lines that count, in hexadecimal digits."""
    data = _encode_lines(lines)
    return _md5(data), hashlib.sha256(data).hexdigest()


def reference_md5(data: bytes) -> str:
    """Return the MD5 that the reference parser gives to lines without a byte order mark.

    It takes them for windows-1252, so that it differs where they are UTF-8 beyond ASCII.
    """
    text = normalize_line_ends(encoding.decode_reference(data))
    lines = map(str.rstrip, text.split("\n"))
    return _md5(_encode_lines(filter(is_content, lines)))


def to_base64(md5: str) -> str:
    """Return an MD5 as the reference parser writes it: in base64 without padding."""
    return base64.b64encode(bytes.fromhex(md5)).decode("ascii").rstrip("=")


def _encode_lines(lines: Iterable[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
