"""The chunked transfer coding (RFC 9112, section 7.1), undone."""

import re

_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_SIZE_LINE = 1 << 12  # bytes that a chunk's size line may have, extensions included


def begins_chunk(start: bytes) -> bool:
    """Tell whether a body that begins so is chunked."""
    return _SIZE.match(start) is not None


class ChunkedDecoder:
    """Undoes the chunked transfer coding, piece by piece; what is not chunked passes as it is."""

    def __init__(self) -> None:
        self._rest = b""
        self._left = 0  # bytes of the present chunk that are still to come
        self._first = True
        self._broken = False
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Return what the next `data` holds."""
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
                # Archives hold bodies that were de-chunked under a header that says otherwise.
                self._broken = True
                pieces.append(data[at:])
                break
        return b"".join(pieces)

    def flush(self) -> bytes:
        """Return what was held back as the beginning of a size line that never ended."""
        rest, self._rest = self._rest, b""
        return rest if self._first else b""


def _past_newline(data: bytes, at: int) -> int:
    if data.startswith(b"\r\n", at):
        return at + 2
    return at + 1 if data.startswith(b"\n", at) else at
