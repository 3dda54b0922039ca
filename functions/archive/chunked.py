"""Decoder of the chunked transfer coding (RFC 9112, section 7.1)."""

import re

_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_SIZE_LINE = 1 << 12  # bytes of a chunk's size line, with its extensions


def begins_chunk(start: bytes) -> bool:
    """Tell whether a body with these first bytes is chunked."""
    return _SIZE.match(start) is not None


class ChunkedDecoder:
    """Decodes the chunked transfer coding in pieces; other bytes pass unchanged."""

    def __init__(self) -> None:
        self._rest = b""
        self._left = 0  # bytes missing from the current chunk
        self._first = True
        self._broken = False
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Return the decoded bytes of the next `data`."""
        if self._broken:
            return data
        if self._over:
            return b""
        data = self._rest + data
        self._rest = b""
        pieces: list[bytes] = []
        at = 0
        while at < len(data):
            if self._left:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                continue
            start = at if self._first else _past_newline(data, at)
            match = _SIZE.match(data, start)
            if match:
                self._first = False
                at = match.end()
                self._left = int(match[1], 16)
                if not self._left:
                    self._over = True
                    break
            elif len(data) - at < _SIZE_LINE and b"\n" not in data[start:]:
                self._rest = data[at:]
                break
            else:
                # Archives hold de-chunked bodies whose header still says chunked.
                self._broken = True
                pieces.append(data[at:])
                break
        return b"".join(pieces)

    def flush(self) -> bytes:
        """Return bytes that were held back as an unfinished size line."""
        rest, self._rest = self._rest, b""
        return rest if self._first else b""


def _past_newline(data: bytes, at: int) -> int:
    if data.startswith(b"\r\n", at):
        return at + 2
    return at + 1 if data.startswith(b"\n", at) else at
