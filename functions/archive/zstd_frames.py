"""Record stream of a zstd file (RFC 8878) whose records have frames of their own.

By "Zstandard Compression for WARC Files 1.0" (iipc), a file may begin with a dictionary, and
skippable frames have no meaning. A section begins with each frame that begins with a record; other
frames continue the record before them. Empty frames are skipped.

A broken frame gives the blocks before the error. The lengths of its blocks lead behind it if a
frame or the file's end is there. Otherwise reading continues at the next frame that decodes to a
record's start.
"""

from typing import BinaryIO

from functions.archive import zstd
from functions.archive.gzip_members import GzipMembers
from functions.archive.record import CHECKSUM, COMPRESSION, CUT
from functions.archive.stream import HEAD, begins_record
from functions.archive.zstd import ZstdError

_CHECK = "doesn't match checksum"  # the library's message for a bad checksum
_FREE = 1 << 26
"""Bytes that a frame may decode to, however short it is."""
_RATIO = 2000
"""How many times its size a frame may decode to: twice what a gzip member can."""
_SKIPPABLE = 1 << 23  # bytes of a skippable frame; a greater length counts as damage


class ZstdFrames(GzipMembers):
    """A zstd file. Its frames take the place of gzip members."""

    shared_code = "zstd-not-per-record"
    _magic, _near, _retained = zstd.MAGIC, zstd.NEAR, 1 << 18
    _inflater: zstd.FrameDecoder | None  # type: ignore[assignment]  # used by this class alone

    def __init__(self, head: bytes, stream: BinaryIO, start: int = 0, at: int = 0) -> None:
        """Start with `head`, the bytes from `at` on, which include the file's dictionary.

        With a `start`, the stream seeks there, for `find_record`.
        """
        super().__init__(head, stream, start, at)
        self._dictionary_error = ""  # why there is no dictionary
        try:
            self._decoder = zstd.ZstdDecoder(zstd.read_dictionary(head))
        except ZstdError as error:
            self._decoder, self._dictionary_error = zstd.ZstdDecoder(), str(error)
        # Offset of the first frame without dictionary, its id, number of frames.
        self._missing_dictionary: list[int] = []
        self._lead = 0  # bytes of the frame's header, until its first block was decoded
        self._checked = False  # whether the frame ends with a checksum
        self._decoded = 0  # bytes that the frame gave

    def _open(self) -> bool:
        """Open the next frame that is not empty; its first piece goes to _ahead."""
        while self._has_raw(zstd.NEAR):
            place = self._raw_base + self._raw_at
            self._member = place
            if self._raw.startswith(zstd.MAGIC, self._raw_at):
                self._begin(place)
                self._ahead = self._inflate()
                if self._ahead:
                    self._report_dictionary()
                    return True
            elif not zstd.SKIPPABLE.match(self._raw, self._raw_at):
                self._find_member(place)
                detail = f"{self._raw_base + self._raw_at - place} bytes"
                self.faults.append((place, "zstd-garbage", detail, "left out"))
            elif not self._skip():
                self._leave("zstd-corrupt", "a skippable frame with no frame behind it")
        self._report_dictionary()
        return False

    def _begin(self, place: int) -> None:
        try:
            header = zstd.parse_frame_header(self._raw[self._raw_at : self._raw_at + zstd.HEADER])
        except ZstdError as error:
            cut = len(self._raw) - self._raw_at < zstd.HEADER
            self._leave("zstd-truncated" if cut else "zstd-corrupt", str(error))
            return
        self._lead, self._checked, self._decoded = header.size, header.checksum, 0
        if not header.dictionary or header.dictionary == self._decoder.dictionary:
            self._inflater = self._decoder.begin_frame()
            return
        self._raw_at += self._lead
        if not self._pass_blocks():
            self._leave("zstd-corrupt", f"needs dictionary {header.dictionary} and has no end")
            return
        self._missing_dictionary = self._missing_dictionary or [place, header.dictionary, 0]
        self._missing_dictionary[2] += 1

    def _inflate(self) -> bytes:
        """Return the frame's next piece; empty at its end, which also closes it."""
        while self._inflater is not None:
            self._has_raw(zstd.NEAR)
            at = end = self._raw_at + self._lead
            piece, last = b"", False
            try:
                if at + 3 <= len(self._raw):
                    size, last = zstd.parse_block(self._raw, at)
                    end = at + size
                    piece = self._inflater.feed(self._raw[self._raw_at : end])
                    self._decoded += len(piece)
                    raw = self._raw_base + end - self._member
                    if self._decoded > max(_FREE, _RATIO * raw):
                        raise ZstdError(f"it decodes to more than {_RATIO} times its size")
                    if last and self._checked:  # separately, so that a wrong one loses no bytes
                        self._inflater.feed(self._raw[end : end + zstd.CHECKSUM])
                        end += zstd.CHECKSUM
            except ZstdError as error:
                self._raw_at += self._lead
                passed = self._pass_blocks()
                code = "zstd-window" if "too much memory" in str(error) else "zstd-corrupt"
                self._leave(code, str(error), passed)
                return piece
            self._lead = 0
            if end > len(self._raw) or end == at:
                self._cut_off(at)
                return piece
            self._raw_at = end
            if last:
                self._inflater = None
            if piece:
                return piece
        return b""

    def _cut_off(self, at: int) -> None:
        """Leave the open frame, whose block at `at` ends behind the file."""
        # The block's length may be damaged. But an uncompressed block may hold an archive, whose
        # frames then look like frames of the file.
        stored = at < len(self._raw) and not self._raw[at] & 6
        start = self._member - self._raw_base
        if not stored or (start >= 0 and not self._opens_record(start)):
            self._find_member(self._member + 1)
            if self._has_raw(1):
                self._leave("zstd-corrupt", "a block ends after the end of the file", passed=True)
                return
        self._inflater = None
        self._raw_at = len(self._raw)
        self._section.fail(self._member, CUT)
        self.faults.append((self._member, "zstd-truncated", "", "read up to the end"))

    def _leave(self, code: str, detail: str, passed: bool = False) -> None:
        """Leave the open frame where it breaks, and go to the next one."""
        self._inflater = None
        cut = CUT if code == "zstd-truncated" else COMPRESSION
        self._section.fail(self._member, CHECKSUM if detail.endswith(_CHECK) else cut)
        # The error may lie behind the next frame's start, so search from this frame's start.
        if not passed:
            self._find_member(self._member + 1)
        more = self._has_raw(1)
        done = f"continued at byte {self._raw_base + self._raw_at}" if more else "stopped"
        self.faults.append((self._member, code, detail, done))

    def _pass_blocks(self) -> bool:
        """Go from a block to its frame's end; False if neither a frame nor the file's end is there.

        After False, a search must begin here at the latest.
        """
        last = False
        while not last:
            self._has_raw(zstd.BLOCK + 3)
            try:
                size, last = zstd.parse_block(self._raw, self._raw_at)
            except ZstdError:
                return False
            if self._raw_at + size > len(self._raw):
                return False
            self._raw_at += size
        self._raw_at += zstd.CHECKSUM if self._checked else 0
        return self._at_frame()

    def _skip(self) -> bool:
        """Skip a skippable frame; False if no frame follows it."""
        self._has_raw(8)
        size = zstd.skippable_size(self._raw, self._raw_at)
        if size > _SKIPPABLE + 8:
            return False
        self._has_raw(size + len(zstd.MAGIC))
        self._raw_at += size
        return self._at_frame()

    def _at_frame(self) -> bool:
        """Tell whether a frame begins here, or the file ends."""
        at_end = not self._has_raw(len(zstd.MAGIC))
        if self._raw_at > len(self._raw):
            return False
        begins = self._raw.startswith(zstd.MAGIC, self._raw_at)
        return at_end or begins or bool(zstd.SKIPPABLE.match(self._raw, self._raw_at))

    def _report_dictionary(self) -> None:
        if self._missing_dictionary:
            place, number, count = self._missing_dictionary
            why = f"; the file's own: {self._dictionary_error}" if self._dictionary_error else ""
            detail = f"{count} frames need dictionary {number} or another{why}"
            self.faults.append((place, "zstd-dictionary-missing", detail, "left out"))
            self._missing_dictionary = []

    def _opens_record(self, at: int) -> bool:
        near = self._raw[at : at + zstd.NEAR]
        return begins_record(zstd.expand(near, HEAD, self._decoder)[0])
