"""zstd (RFC 8878): frames, decoded block by block.

A block gives at most BLOCK bytes, so decoding one at a time bounds memory, whatever the input. The
blocks' lengths lead to the end of a frame even if it is broken.
"""

import re
from typing import BinaryIO, NamedTuple

import zstandard

MAGIC = b"\x28\xb5\x2f\xfd"
SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
BLOCK = 1 << 17
"""The most bytes of a block, before and after decoding (RFC 8878, 3.1.1.2.4)."""
HEADER = 18
"""The most bytes of a frame's header."""
NEAR = HEADER + 3 + BLOCK
"""Raw bytes that include a frame's header and its first block."""
CHECKSUM = 4
WINDOW = 1 << 27
"""Bytes of memory that a frame may ask for: the default of the command `zstd`."""
DICTIONARY = 1 << 23
"""The most bytes of a dictionary, stored and decoded: the limit for readers in "Zstandard
Compression for WARC Files 1.0" (iipc)."""

DICTIONARY_FRAME = b"\x5d\x2a\x4d\x18"
"""Magic number of the frame with a file's dictionary."""
_DICTIONARY_MAGIC = b"\x37\xa4\x30\xec"


class ZstdError(ValueError):
    """A fault of a frame, in the library's words if it has any."""


class FrameHeader(NamedTuple):
    """A frame's header."""

    size: int
    dictionary: int
    """Id of the dictionary that the frame needs, or 0."""
    checksum: bool


def open_compressor(stream: BinaryIO, level: int = 3) -> BinaryIO:
    """Open a stream that writes one frame with a checksum to `stream`, which stays open."""
    compressor = zstandard.ZstdCompressor(level=level, write_checksum=True)
    return compressor.stream_writer(stream, closefd=False)


def begins(head: bytes) -> bool:
    """Tell whether `head` begins a frame or a skippable frame."""
    return head.startswith(MAGIC) or SKIPPABLE.match(head) is not None


def parse_frame_header(data: bytes) -> FrameHeader:
    """Parse a frame's header. Raises ZstdError if it is truncated or invalid."""
    try:
        header = zstandard.get_frame_parameters(data)
        return FrameHeader(zstandard.frame_header_size(data), header.dict_id, header.has_checksum)
    except zstandard.ZstdError as error:
        raise _wrap_error(error) from error


def parse_block(data: bytes, at: int) -> tuple[int, bool]:
    """Return the length of the block at `at`, with its header, and whether it is the frame's last.

    Raises ZstdError if no block can begin there.
    """
    word = int.from_bytes(data[at : at + 3], "little")
    kind, size = word >> 1 & 3, word >> 3
    if kind == 3 or size > BLOCK:
        raise ZstdError("a block is missing")
    return 3 + (1 if kind == 1 else size), bool(word & 1)


class FrameDecoder:
    """A decoder of one frame; its first input is the header with the first block."""

    __slots__ = ("_decoder",)

    def __init__(self, decoder: "zstandard.ZstdDecompressionObj") -> None:
        self._decoder = decoder

    def feed(self, data: bytes) -> bytes:
        """Decode the next bytes. Raises ZstdError."""
        try:
            return self._decoder.decompress(data)
        except zstandard.ZstdError as error:
            raise _wrap_error(error) from error


class ZstdDecoder:
    """Decodes frames, one at a time, with an optional dictionary."""

    def __init__(self, dictionary: bytes = b"", window: int = WINDOW) -> None:
        """`dictionary` has the form of RFC 8878, section 5. Raises ZstdError if it has not."""
        self.dictionary = 0
        try:
            loaded = None
            if dictionary:
                loaded = zstandard.ZstdCompressionDict(dictionary, zstandard.DICT_TYPE_FULLDICT)
                self.dictionary = loaded.dict_id()
            self._decompressor = zstandard.ZstdDecompressor(loaded, window)
            self._decompressor.decompressobj()
        except zstandard.ZstdError as error:
            raise _wrap_error(error) from error

    def begin_frame(self) -> FrameDecoder:
        """Begin a frame; the previous frame's decoder is void."""
        return FrameDecoder(self._decompressor.decompressobj())


def skippable_size(data: bytes, at: int) -> int:
    """Return the length of the skippable frame at `at`, with its header of eight bytes."""
    return 8 + int.from_bytes(data[at + 4 : at + 8], "little")


def bytes_needed(start: bytes) -> int:
    """Return how many of a file's first bytes include its dictionary, if any, and one block."""
    if start.startswith(DICTIONARY_FRAME) and skippable_size(start, 0) <= DICTIONARY + 8:
        return skippable_size(start, 0) + NEAR
    return NEAR


def read_dictionary(start: bytes) -> bytes:
    """Return the dictionary in a file's first frame; empty without one.

    Raises ZstdError if the frame is cut off, is too long, or holds no dictionary.
    """
    if not start.startswith(DICTIONARY_FRAME):
        return b""
    size = skippable_size(start, 0)
    data = start[8:size]
    if size > DICTIONARY + 8 or size > len(start):
        raise ZstdError(f"it declares {size - 8} bytes")
    if data.startswith(MAGIC):
        data, wrong = expand(data, DICTIONARY + 1, ZstdDecoder(window=DICTIONARY))
        if wrong or len(data) > DICTIONARY:
            raise ZstdError(wrong or f"it has more than {DICTIONARY} bytes")
    if not data.startswith(_DICTIONARY_MAGIC):
        raise ZstdError("its frame holds something else")
    return data


def expand(data: bytes, limit: int, decoder: ZstdDecoder) -> tuple[bytes, str | None]:
    """Return the first `limit` bytes of the frames in `data`, and the error, None without one.

    It is no error if `data` cuts off the last frame.
    """
    pieces: list[bytes] = []
    at = size = 0
    try:
        while at < len(data) and size < limit:
            if SKIPPABLE.match(data, at):
                at += skippable_size(data, at)
                continue
            header = parse_frame_header(data[at : at + HEADER])
            if header.dictionary and header.dictionary != decoder.dictionary:
                raise ZstdError(f"needs dictionary {header.dictionary}")
            frame = decoder.begin_frame()
            lead, last = header.size, False
            while at < len(data) and size < limit and not last:
                length, last = parse_block(data, at + lead)
                pieces.append(frame.feed(data[at : at + lead + length]))
                size += len(pieces[-1])
                at, lead = at + lead + length, 0
            if last and header.checksum:
                frame.feed(data[at : at + CHECKSUM])
                at += CHECKSUM
    except ZstdError as error:
        return b"".join(pieces)[:limit], str(error)
    return b"".join(pieces)[:limit], None


def _wrap_error(error: zstandard.ZstdError) -> ZstdError:
    return ZstdError(str(error).rpartition("error: ")[2])


class ZstdReader:
    """A decoded stream of frames that need no dictionary."""

    def __init__(self, stream: BinaryIO, window: int = WINDOW) -> None:
        """`window` is how many bytes of memory a frame may ask for."""
        decoder = zstandard.ZstdDecompressor(max_window_size=window)
        self._reader = decoder.stream_reader(stream, BLOCK, read_across_frames=True)

    def read(self, size: int) -> bytes:
        """Return up to `size` more bytes, empty at the end. Raises ZstdError."""
        try:
            return self._reader.read(size)
        except zstandard.ZstdError as error:
            raise _wrap_error(error) from error
