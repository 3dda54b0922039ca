"""What a broken gzip member inflates to before it breaks, which zlib withholds with its error."""

import zlib

from functions.archive.start import HEAD, begins_record

OUTPUT = 1 << 18
"""Inflated bytes of one piece, which bounds memory."""


def opens_record(raw: bytes) -> bool:
    """Tell whether a member that begins with `raw` inflates to a record's start."""
    inflater = zlib.decompressobj(31)
    try:
        return begins_record(inflater.decompress(raw, HEAD))
    except zlib.error:
        return begins_record(salvage(zlib.decompressobj(31), raw))


def salvage(inflater: "zlib._Decompress", data: bytes) -> bytes:
    """Return what `data` inflates to before it breaks."""
    pieces: list[bytes] = []
    size = 0
    for step in (256, 1):
        while data and size < OUTPUT:
            trial = inflater.copy()
            try:
                piece = trial.decompress(data[:step])
            except zlib.error:
                break
            pieces.append(piece)
            size += len(piece)
            inflater, data = trial, data[step:]
    return b"".join(pieces)
