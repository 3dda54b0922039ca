"""ISO 2709: MARC 21 in MARC-8 or UTF-8, and UNIMARC (MARC 21 Specifications, Record Structure).

pymarc reads the same fields in twice the time, and stops at a record of a wrong length. Here the
next record begins behind the terminator, whatever lengths say. What pymarc refuses is a fault. Two
things are read better: a wrong length, and UTF-8 or UNIMARC that the leader does not declare.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate, count
from typing import IO
from unicodedata import normalize

from builder.sources.records.forms.charsets import Decoder, find_decoder, find_unimarc
from builder.sources.records.forms.form import (
    CHUNK,
    LONGEST,
    ByteSource,
    Piece,
    announce_pieces,
    open_source,
    read_pieces,
)
from builder.sources.records.forms.marcxml import Repair, make_marc
from builder.sources.records.record import (
    MarcField,
    MarcRecord,
    ReadOptions,
    RecordItem,
    RecordsError,
)

_RECORD, _FIELD, _PART, _ESCAPE = b"\x1d", b"\x1e", b"\x1f", b"\x1b"
_MARK = b"\xef\xbb\xbf"
_LEADER = re.compile(rb"(?:[\d ]{5}.{7}[\d ]{5}|.{12}\d{5}.{7}\d)", re.DOTALL)
_WITHIN = re.compile(rb"(?=(\d{5})[A-Za-z ][A-Za-z].{5}\d{5})", re.DOTALL)
_DIRECTORY = re.compile(r"(?:[ -~]{3}[\d ]{9})+")
_BETWEEN = b"\r\n \t\x00\x1a"
"""What exports write between records and at the end of a file."""
_PRINTED = bytes(code for code in range(0x100) if code >= 0x20 or code in _FIELD + _PART)
_CODED = re.compile(rb"  \x1fa(\d{8}[a-z|].{17,}?)(?:[\x1e\x1f]|$)", re.DOTALL)
"""Field 100 of UNIMARC: general data, which begin with a date and a type of date."""


def recognise(head: bytes, is_declared: bool = False) -> bool:
    """Return whether a file begins as ISO 2709: a leader, and soon the end of a field."""
    start = head.lstrip(_MARK + _BETWEEN)
    return bool(_LEADER.match(start)) and 24 < start.find(_FIELD) < 1 << 15


def read(source: ByteSource, options: ReadOptions) -> Iterator[RecordItem]:
    """Yield the records of a file, and its faults. Raises RecordsError if the file is cut off."""

    def parse(piece: Piece, digest: bytes) -> Iterator[RecordItem]:
        record, repairs = parse_marc(piece.data, options.encoding)
        return make_marc(piece.place, record, repairs, digest)

    with open_source(source) as stream:
        pieces = announce_pieces(_cut(stream), "marc", options)
        yield from read_pieces(pieces, "marc", options, parse)


def _cut(stream: IO[bytes]) -> Iterator[Piece]:
    """Yield the bytes of each record, without its terminator."""
    rest, at, numbers = b"", 0, count(1)
    while (chunk := stream.read(CHUNK)) and len(rest) <= LONGEST:
        pieces = (rest + chunk).split(_RECORD)
        for index, piece in enumerate(pieces[:-1]):
            data, following = piece.lstrip(_BETWEEN if at else _BETWEEN + _MARK), pieces[index + 1]
            size, start = len(data) + 1, at + len(piece) - len(data)
            declared = int(data[:5]) if data[:5].isdigit() else 0
            if declared > size and following and not _LEADER.match(following.lstrip(_BETWEEN)):
                # It is no terminator, but a character of a text, since no leader follows.
                pieces[index + 1] = piece + _RECORD + following
                continue
            # A record that lost its end has the next one in it, whose length is right.
            starts = _WITHIN.finditer(data, 1) if declared != size else ()
            lost = next((m.start() for m in starts if int(m[1]) == size - m.start()), 0)
            for begin, end in ((0, lost), (lost, size)) if lost else ((0, size),):
                if data:
                    place = f"record {next(numbers)}, byte {start + begin}"
                    yield Piece(place, data[begin:end])
            at += len(piece) + 1
        rest = pieces[-1]
    if rest.strip(_BETWEEN):
        raise RecordsError(f"it is cut off: no terminator ends the record at byte {at}")


def parse_marc(data: bytes, declared: str | None = None) -> tuple[MarcRecord, list[Repair]]:
    """Return the record of these bytes, which are without terminator, and what was repaired.

    The encoding is the declared one; else what the leader or UNIMARC's field 100 says, or UTF-8 if
    all bytes are. Raises ValueError.
    """
    leader, repairs = data[:24].decode("ascii"), list[Repair]()
    if not data[12:17].strip().isdigit() or not 24 < (base := int(data[12:17])) <= len(data):
        raise ValueError(f"its leader gives no address of data: {leader[12:17]!r}")
    if data[:5] != b"%05d" % (len(data) + 1):
        repairs.append((None, f"its length is {len(data) + 1}, not {leader[:5]!r}"))
    directory = data[24 : base - 1].decode("ascii")
    if not _DIRECTORY.fullmatch(directory):
        raise ValueError(f"its directory is not of 12 characters a field: {directory[:24]!r}")
    encoding, fields = _find_encoding(data, leader, declared), []
    decode = find_decoder(encoding)
    is_clean = not data.translate(None, _PRINTED)
    text = data.decode() if is_clean and data.isascii() else ""  # the same in all encodings
    for tag, start, end in _slice(data, directory, base, repairs):
        if tag < "010" and tag.isdigit():
            part = data[start:end]
            value = part.decode("latin-1") if encoding == "marc-8" else decode(part)
            fields.append(MarcField(tag, "", value))
            continue
        if text or (is_clean and data[start:end].isascii()):
            head, *texts = (text[start:end] if text else data[start:end].decode()).split("\x1f")
            subfields = tuple([(each[0], each[1:]) for each in texts if each])
        else:
            first, *parts = data[start:end].split(_PART)
            if declared and not first.isascii():
                first, parts = b"", [b"a" + first, *parts]
                repairs.append((tag, "it had no indicators: its text is subfield a"))
            head = first.decode("ascii")
            subfields = tuple([_read_subfield(each, decode) for each in parts if each])
        fields.append(MarcField(tag, head if len(head) == 2 else (head + "  ")[:2], "", subfields))
    return MarcRecord(leader, tuple(fields)), repairs


def _read_subfield(data: bytes, decode: Decoder) -> tuple[str, str]:
    """Return the code and the text of a subfield. A code that is not ASCII is read as by pymarc."""
    if data[0] < 0x80:
        return chr(data[0]), decode(data[1:])
    text, size = data.decode("latin-1"), 1
    with suppress(UnicodeDecodeError):
        text = data.decode()
        size = len(text[0].encode())
    ascii_ = normalize("NFKD", text).encode("ascii", "ignore").decode()
    return ascii_[:1] or " ", decode(data[size:])


def _slice(
    data: bytes, directory: str, base: int, repairs: list[Repair]
) -> list[tuple[str, int, int]]:
    """Return the tag, start and end of each field, as the directory says.

    If it leads elsewhere than to the ends of fields, and there are as many ends as entries, those
    count. Raises ValueError.
    """
    entries = []
    for at in range(0, len(directory), 12):
        start = base + int(directory[at + 7 : at + 12])
        entries.append((directory[at : at + 3], start, start + int(directory[at + 3 : at + 7]) - 1))
    wrong = [tag for tag, _, end in entries if data[end : end + 1] != _FIELD]
    if not wrong:
        return entries
    parts = data[base:].removesuffix(_FIELD).split(_FIELD)
    if len(parts) != len(entries):
        if repairs:
            raise ValueError(f"{repairs[0][1]}, and its directory is wrong at {wrong[0]}")
        repairs.append((wrong[0], "its directory leads elsewhere than to the field's end"))
        return entries
    repairs.append((wrong[0], "its directory leads elsewhere: fields are read by their ends"))
    order = sorted(range(len(entries)), key=lambda at: entries[at][1])
    starts = accumulate((len(part) + 1 for part in parts), initial=base)
    spans = {
        at: (start, start + len(p)) for at, p, start in zip(order, parts, starts, strict=False)
    }
    return [(tag, *spans[at]) for at, (tag, *_) in enumerate(entries)]


def _find_encoding(data: bytes, leader: str, declared: str | None) -> str:
    """Return the name of a record's encoding, for find_decoder."""
    if declared or leader[9] == "a" or data.isascii():
        return declared or ("utf-8" if leader[9] == "a" else "marc-8")
    if _ESCAPE not in data:
        with suppress(UnicodeDecodeError):  # no text in MARC-8 or ISO 5426 is UTF-8 by chance
            data.decode()
            return "utf-8"
    coded = _CODED.search(data)
    return find_unimarc(coded[1].decode("latin-1")) if coded else "marc-8"
