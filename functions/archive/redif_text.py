"""The text of ReDIF templates: decoded from the bytes of a file, or of a range of a pack.

A byte order mark decides the encoding. Without one, each line is UTF-8 or of another encoding,
windows-1252 by default, so no knowledge of the whole file is needed.
"""

import hashlib
import re
from collections.abc import Callable

ASCII, UTF_8, WINDOWS, MIXED = "ascii", "utf-8", "windows-1252", "mixed"
UTF_16 = ("utf-16le", "utf-16be")
MARKED = "utf-8-bom"
_PLAIN = (ASCII, UTF_8, MIXED)
_LINE = re.compile(rb"[^\r\n]*[\r\n]*")


def decode_lines(data: bytes, mark: str | None, other: str = WINDOWS) -> tuple[str, str]:
    """Return whole lines of a source as text, and their encoding.

    `other` is the encoding of lines that are not UTF-8. Invalid bytes become U+FFFD.
    """
    if mark is not None:
        return data.decode("utf-8", "replace"), mark
    if data.isascii():
        return data.decode("ascii"), ASCII
    try:
        return data.decode("utf-8"), UTF_8
    except UnicodeDecodeError:
        pass
    texts: list[str] = []
    encoding = other
    for line in _LINE.findall(data):
        try:
            texts.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            texts.append(line.decode(other, "replace"))
        else:
            if not line.isascii():
                encoding = MIXED if other == WINDOWS else f"{MIXED}-{other}"
    return "".join(texts), encoding


def normalize_line_ends(text: str) -> str:
    """Replace CRLF and CR by LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def make_text(data: bytes, encoding: str) -> bytes:
    """Return the stored text of a template from its bytes in a file: in UTF-8, with a final LF."""
    if encoding in UTF_16:
        data = data.decode(encoding, "replace").encode("utf-8", "replace")
    mark = encoding if encoding in (MARKED, *UTF_16) else None
    other = WINDOWS if encoding in _PLAIN else encoding.removeprefix(f"{MIXED}-")
    text, _ = decode_lines(data, mark, other)
    return normalize_line_ends(text).encode("utf-8", "replace") + b"\n"


def restore_text(
    read: Callable[[int], bytes], length: int, size: int, encoding: str, sha256: str
) -> bytes | None:
    """Return the text of a template in a pack; None if neither reading has the digest `sha256`.

    `read` returns so many bytes of the pack from the template's first. These are `length` bytes of
    its file or, where they do not give its text again, the `size` bytes of the text itself.
    """
    text = make_text(read(length), encoding)
    if hashlib.sha256(text).hexdigest() != sha256:
        text = read(size)
    return text if hashlib.sha256(text).hexdigest() == sha256 else None
