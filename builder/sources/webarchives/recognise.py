"""Recognising a file, or a record's start, by its first bytes; names do not count."""

import re
import zlib
from typing import BinaryIO

from functions.archive import zstd
from functions.archive.gzip_members import MAGIC
from functions.archive.inflate import salvage
from functions.archive.stream import ARC_LINE, HEAD, WARC_LINE, begins_record

_GZIP = b"\x1f\x8b"
_ARC_HEADER = re.compile(
    rb"\n(?:[a-z]+:[^\n]+ \d{1,3}(?:\.\d{1,3}){3} \d{14} [^\n]* \d+\r?\nHTTP/"
    rb"|filedesc://[^\n]+ \d+\r?\n)"
)
_ENDS_WITH_LENGTH = re.compile(rb"(?:.* )?-?\d+")
_WARC_HEADER = re.compile(rb"WARC/\d\.\d+\r\n(?:[\w-]+:[^\r\n]*\r\n)+\r\n")

_ZIP_NAME = re.compile(rb"PK\x03\x04.{22}(..)(?:..)(.{0,80})", re.DOTALL)
_WACZ_NAME = re.compile(rb"(?:datapackage(?:-digest)?\.json|(?:archive|pages|indexes)/)")

_OTHER_FORMATS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x04\x22\x4d\x18", "unsupported-compression", "lz4"),
    (b"BZh", "unsupported-compression", "bzip2"),
    (b"\xfd7zXZ\x00", "unsupported-compression", "xz"),
    (b"7z\xbc\xaf\x27\x1c", "unsupported-compression", "7z"),
    (b"PK\x03\x04", "not-an-archive", "a zip file that is not a WACZ"),
    (b"PK\x05\x06", "not-an-archive", "an empty zip file"),
    (b" CDX ", "not-an-archive", "a CDX index"),
    (b"%PDF", "not-an-archive", "a PDF file"),
    (b"PAR1", "not-an-archive", "a Parquet file"),
)
_CDXJ = re.compile(rb"[^ \n]+ \d{14,17} \{")


def read_head(stream: BinaryIO) -> bytes:
    """Return the first bytes of a stream that decide its format, or all of a shorter one."""
    head = b""
    size = HEAD
    while len(head) < size:
        piece = stream.read(size - len(head))
        if not piece:
            break
        head += piece
        if len(head) >= HEAD == size and zstd.begins(head):
            size = zstd.bytes_needed(head)
    return head


def recognise(head: bytes) -> str | None:
    """Return "warc" or "arc", with ".gz" or ".zst", or "wacz" by a file's first bytes, else None.

    `head` should be the result of `read_head`.
    """
    if is_zip(head):
        names = (
            match[2][: int.from_bytes(match[1], "little")] for match in _ZIP_NAME.finditer(head)
        )
        return "wacz" if any(map(_WACZ_NAME.match, names)) else None
    kind = _recognise_plain(unpack_head(head))
    return kind and kind + (".gz" if is_gzip(head) else ".zst" if zstd.begins(head) else "")


def describe_unknown(head: bytes) -> tuple[str, str]:
    """Return a fault's code and detail for a file that `recognise` does not know."""
    if not head:
        return "empty-file", ""
    for magic, code, detail in _OTHER_FORMATS:
        if head.startswith(magic):
            return code, detail
    if _CDXJ.match(head):
        return "not-an-archive", "a CDXJ index"
    if is_gzip(head) or zstd.begins(head):
        inside = describe_unknown(unpack_head(head))[1] or "nothing known"
        return "not-an-archive", f"{'gzip' if is_gzip(head) else 'zstd'} of {inside}"
    return "not-an-archive", ""


def is_gzip(head: bytes) -> bool:
    """Tell whether `head` begins a gzip member (RFC 1952)."""
    return head.startswith(_GZIP)


def packing(head: bytes) -> str | None:
    """Return "gz", "zst", or "" for plain, of an archive whose first bytes may be damaged.

    It is the format that the file begins with, broken or not, or the format of the first record
    within `head`; None without either.
    """
    if is_gzip(head) and (recognise(head) or is_broken_gzip(head)):
        return "gz"
    if zstd.begins(head) and (recognise(head) or _decompress_zstd(head)[1] is not None):
        return "zst"
    if _recognise_plain(head):
        return ""
    if is_other(head):
        return None
    for magic, packed in ((MAGIC, "gz"), (zstd.MAGIC, "zst")):
        at = head.find(magic)
        while at >= 0:
            if begins_record(unpack_head(head[at:])):
                return packed
            at = head.find(magic, at + 1)
    return "" if _WARC_HEADER.search(head) or _ARC_HEADER.search(head) else None


def is_other(head: bytes) -> bool:
    """Tell whether a file is empty, or begins as another known format does."""
    return not head or any(head.startswith(magic) for magic, *_ in _OTHER_FORMATS)


def is_zip(head: bytes) -> bool:
    """Tell whether `head` begins a zip file's first entry (APPNOTE 4.3.7)."""
    return head.startswith(b"PK\x03\x04")


def is_broken_gzip(head: bytes) -> bool:
    """Tell whether a gzip member within `head` fails to inflate."""
    while head.startswith(_GZIP):
        inflater = zlib.decompressobj(31)
        try:
            while not inflater.eof and head:
                inflater.decompress(head, HEAD)
                head = inflater.unconsumed_tail
        except zlib.error:
            return True
        head = inflater.unused_data
    return False


def unpack_head(head: bytes) -> bytes:
    """Return a file's decompressed first bytes."""
    if is_gzip(head):
        return inflate_head(head)
    return _decompress_zstd(head)[0] if zstd.begins(head) else head


def inflate_head(head: bytes) -> bytes:
    """Return up to HEAD bytes of the first gzip member in `head` that is not empty."""
    while head.startswith(_GZIP):
        inflater = zlib.decompressobj(31)
        try:
            data = inflater.decompress(head, HEAD)
        except zlib.error:
            return salvage(zlib.decompressobj(31), head)[:HEAD]
        if data or not inflater.eof:
            return data
        head = inflater.unused_data
    return b""


def _decompress_zstd(head: bytes) -> tuple[bytes, str | None]:
    """Return up to HEAD bytes of the zstd frames in `head`, and the error, None without one."""
    try:
        decoder = zstd.ZstdDecoder(zstd.read_dictionary(head))
    except zstd.ZstdError:
        decoder = zstd.ZstdDecoder()
    return zstd.expand(head, HEAD, decoder)


def _recognise_plain(head: bytes) -> str | None:
    if WARC_LINE.match(head):
        return "warc"
    line = head.lstrip(b"\r\n").partition(b"\n")[0]
    if line[:11].lower() == b"filedesc://":
        return "arc"
    match = ARC_LINE.match(line)
    return "arc" if match and _ENDS_WITH_LENGTH.fullmatch(match[4]) else None
