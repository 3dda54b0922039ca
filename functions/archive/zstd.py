"""zstd (RFC 8878): frames, fed block by block.

A block gives BLOCK bytes at most, so whoever feeds one at a time bounds memory, whatever the
bytes are made to expand to; and the blocks' lengths lead to a frame's end even where it is broken.
"""

import re
from typing import BinaryIO, NamedTuple

import zstandard

MAGIC = b"\x28\xb5\x2f\xfd"
SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
BLOCK = 1 << 17
"""Bytes that a block holds at most, before and after decoding (RFC 8878, 3.1.1.2.4)."""
HEADER = 18
"""Bytes that a frame's header has at most."""
NEAR = HEADER + 3 + BLOCK
"""Raw bytes that hold a frame's header and its first block, however long these are."""
CHECKSUM = 4
WINDOW = 1 << 27
"""Bytes of memory that a frame may ask for: what the command zstd gives without being told more."""
DICTIONARY = 1 << 23
"""Bytes that a dictionary may have, as stored and decoded (iipc, "Zstandard Compression for WARC
Files 1.0", which asks for no more of a reader)."""

DICTIONARY_FRAME = b"\x5d\x2a\x4d\x18"
"""What the frame begins with that holds a file's dictionary."""
_DICTIONARY_MAGIC = b"\x37\xa4\x30\xec"


class ZstdError(ValueError):
    """What is wrong with a frame, in the words of the library where these are its own."""


class FrameHeader(NamedTuple):
    """A frame's header: its own length, and what it says of the frame."""

    size: int
    dictionary: int
    """Id of the dictionary that it names, else 0."""
    checksum: bool


def parse_frame_header(data: bytes) -> FrameHeader:
    """Return the header that a frame begins with; raises Undecodable if it is none or is cut."""
    try:
        header = zstandard.get_frame_parameters(data)
        return FrameHeader(zstandard.frame_header_size(data), header.dict_id, header.has_checksum)
    except zstandard.ZstdError as error:
        raise _wrap_error(error) from error


def parse_block(data: bytes, at: int) -> tuple[int, bool]:
    """Return the length of the block at `at`, with its header, and whether it is the frame's last.

    Raises Undecodable if no block can begin so.
    """
    word = int.from_bytes(data[at : at + 3], "little")
    kind, size = word >> 1 & 3, word >> 3
    if kind == 3 or size > BLOCK:
        raise ZstdError("no block where one should begin")
    return 3 + (1 if kind == 1 else size), bool(word & 1)


class FrameDecoder:
    """A frame that is being decoded; it is fed its header and first block together."""

    __slots__ = ("_decoder",)

    def __init__(self, decoder: "zstandard.ZstdDecompressionObj") -> None:
        self._decoder = decoder

    def feed(self, data: bytes) -> bytes:
        """Return what the next bytes give; raises Undecodable."""
        try:
            return self._decoder.decompress(data)
        except zstandard.ZstdError as error:
            raise _wrap_error(error) from error


class ZstdDecoder:
    """Begins frames, one at a time, with the dictionary that they may need."""

    def __init__(self, dictionary: bytes = b"", window: int = WINDOW) -> None:
        """`dictionary` is in the form of RFC 8878, section 5; raises Undecodable if it is not."""
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
        """Begin a frame; one that was begun before is loaded up."""
        return FrameDecoder(self._decompressor.decompressobj())


def skippable_size(data: bytes, at: int) -> int:
    """Return the length of the skippable frame at `at`, with its header of eight bytes."""
    return 8 + int.from_bytes(data[at + 4 : at + 8], "little")


def bytes_needed(start: bytes) -> int:
    """Return how many of a file's first bytes hold its dictionary, if any, and one block."""
    if start.startswith(DICTIONARY_FRAME) and skippable_size(start, 0) <= DICTIONARY + 8:
        return skippable_size(start, 0) + NEAR
    return NEAR


def read_dictionary(start: bytes) -> bytes:
    """Return the dictionary in the frame that a file begins with; none if it begins otherwise.

    Raises Undecodable if the frame is cut, is longer than is read, or holds no dictionary.
    """
    if not start.startswith(DICTIONARY_FRAME):
        return b""
    size = skippable_size(start, 0)
    data = start[8:size]
    if size > DICTIONARY + 8 or size > len(start):
        raise ZstdError(f"it would have {size - 8} bytes")
    if data.startswith(MAGIC):
        data, wrong = expand(data, DICTIONARY + 1, ZstdDecoder(window=DICTIONARY))
        if wrong or len(data) > DICTIONARY:
            raise ZstdError(wrong or f"it has more than {DICTIONARY} bytes")
    if not data.startswith(_DICTIONARY_MAGIC):
        raise ZstdError("its frame holds something else")
    return data


def expand(data: bytes, limit: int, decoder: ZstdDecoder) -> tuple[bytes, str | None]:
    """Return the first `limit` bytes of what the frames in `data` hold, and what is wrong.

    A last frame that `data` cuts off is not wrong.
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
    """What a stream of frames holds, of whatever they are, none of which needs a dictionary."""

    def __init__(self, stream: BinaryIO, window: int = WINDOW) -> None:
        """`window` is how many bytes of memory a frame may ask for."""
        decoder = zstandard.ZstdDecompressor(max_window_size=window)
        self._reader = decoder.stream_reader(stream, BLOCK, read_across_frames=True)

    def read(self, size: int) -> bytes:
        """Return up to `size` more bytes, none at the end; raises Undecodable."""
        try:
            return self._reader.read(size)
        except zstandard.ZstdError as error:
            raise _wrap_error(error) from error
