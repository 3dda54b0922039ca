"""Whatever befalls a file: nothing is raised, and every record that is whole is found again.

A file is a row of parts, one a record as stored. A mutation leaves some of them as they are, and
makes rubble of others: bytes flipped, lost, put in, overwritten, or cut off with the file's end.
"""

import io
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from builder.intake.captures import FAULT_CODES, Capture, Fault
from builder.sources.webarchives.events import Skipped
from builder.sources.webarchives.recognise import describe_unknown, is_gzip
from builder.sources.webarchives.webarchive import ArchiveReader
from functions.archive import zstd
from tests.builder.sources.webarchives.containers import (
    ALL,
    arc,
    dictionary,
    dictionary_frame,
    filedesc,
    frame,
    http,
    warc,
    zipped,
)
from tests.extent import examples

NOISE = bytes((n * 167 + n // 7) % 256 for n in range(700))
BODIES = [
    b"<title>first</title>",
    b"",
    b"<p>" + b"long " * 400,
    NOISE,
    b"<title>last</title>\r\n\r\n",
]
WARCS = [
    warc(b"software: x\r\n", kind=b"warcinfo", url=None),
    *(warc(http(body), url=b"http://a.cz/%d" % n) for n, body in enumerate(BODIES)),
    warc(b"GET / HTTP/1.0\r\n\r\n", kind=b"request", url=b"http://a.cz/request"),
    warc(http(b""), kind=b"revisit", url=b"http://a.cz/revisit"),
]
ARCS = [filedesc(), *(arc(http(b), url=b"http://a.cz/%d" % n) for n, b in enumerate(BODIES))]
TRAINED = dictionary()


PACKED = {
    "warc.gz": (b"", [zipped(r) for r in WARCS]),
    "arc.gz": (b"", [zipped(r) for r in ARCS]),
    "warc.zst": (b"", [frame(r) for r in WARCS]),
    "arc.zst": (b"", [frame(r) for r in ARCS]),
    "dictionary.warc.zst": (dictionary_frame(TRAINED), [frame(r, TRAINED) for r in WARCS]),
}
PLAIN = {"warc": (b"", WARCS), "arc": (b"", ARCS)}


@dataclass
class Piece:
    """A part as it was, or rubble."""

    data: bytes
    number: int | None = None

    @property
    def whole(self):
        return self.number is not None


def found_in(data):
    found = list(ArchiveReader(io.BytesIO(data), "a", ALL))
    for event in found:
        if isinstance(event, Fault):
            assert event.code in FAULT_CODES
            assert event.done
            assert event.place is None or 0 <= event.place <= len(data)
    return found


def content(event):
    """Return what a record is, wherever it lies and however often it is there."""
    if isinstance(event, Skipped):
        return ("left out", event.reason)
    return (event.url, event.content_digest, event.content_length, event.title, event.fetch_date)


def place(event):
    if isinstance(event, Skipped):
        return event.offset, event.length
    return event.warc_record_offset, event.warc_record_length


def records_of(found):
    return [e for e in found if isinstance(e, Capture | Skipped)]


def reference(head, parts):
    return [content(e) for e in records_of(found_in(head + b"".join(parts)))]


@st.composite
def mutated(draw, parts):
    """Return pieces: parts that are whole, with what became of the others between them."""
    pieces = [Piece(part, number) for number, part in enumerate(parts)]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(pieces) - 1))
        data = pieces[at].data
        here = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["flip", "lose", "put", "over", "between", "shuffle", "cut"]))
        if kind == "flip" and data:
            flipped = bytearray(data)
            for _ in range(draw(st.integers(1, 3))):
                flipped[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))
            pieces[at] = Piece(bytes(flipped))
        elif kind == "lose":
            # From within one part to within another, or the same.
            last = draw(st.integers(at, min(at + 2, len(pieces) - 1)))
            rest = pieces[last].data[draw(st.integers(0, len(pieces[last].data))) :]
            pieces[at : last + 1] = [Piece(data[:here]), Piece(rest)]
        elif kind == "put":
            junk = draw(st.binary(min_size=1, max_size=300))
            pieces[at] = Piece(data[:here] + junk + data[here:])
        elif kind == "over":
            junk = draw(st.binary(min_size=1, max_size=100))
            pieces[at] = Piece(data[:here] + junk + data[here + len(junk) :])
        elif kind == "between":
            pieces.insert(at, Piece(draw(st.binary(min_size=1, max_size=300))))
        elif kind == "shuffle":
            pieces = draw(st.permutations(pieces))
            pieces.insert(draw(st.integers(0, len(pieces))), pieces[at])
        else:
            pieces = [*pieces[:at], Piece(data[:here])]
    return list(pieces)


def check_whole(pieces, head, parts, *, packed):
    expected = reference(head, parts)
    data = head + b"".join(piece.data for piece in pieces)
    # Chance may make another kind of file of it, or bytes that only another kind has.
    assume(is_gzip(data) or zstd.begins(data) or not describe_unknown(data)[1])
    assume(zstd.begins(data) <= zstd.begins(parts[0]) and is_gzip(data) <= is_gzip(parts[0]))
    rubble = b"".join(piece.data for piece in pieces if not piece.whole)
    assume(b"WARC/" in parts[0] or b"WARC/" not in rubble)
    found = found_in(data)
    records = records_of(found)
    by_place = {place(e)[0]: e for e in records}
    offset = len(head)
    for piece, following in zip(pieces, [*pieces[1:], Piece(b"", 0)], strict=True):
        if piece.whole:
            assert offset in by_place, (offset, piece.number)
            event = by_place[offset]
            assert content(event) == expected[piece.number]
            if following.whole and packed:
                assert place(event)[1] == len(piece.data)
        offset += len(piece.data)
    return records, [e for e in found if isinstance(e, Fault)]


# The same examples each time: one in thousands makes of a broken member another that is none.
_EXAMPLES = settings(
    max_examples=examples(150),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PACKED)
@given(st.data())
@_EXAMPLES
def test_each_whole_part_of_a_packed_file_is_found(name, draw):
    head, parts = PACKED[name]
    expected = reference(head, parts)
    pieces = draw.draw(mutated(parts))
    records, faults = check_whole(pieces, head, parts, packed=True)
    whole = Counter(expected[piece.number] for piece in pieces if piece.whole)
    rubble = [piece for piece in pieces if not piece.whole and piece.data]
    assert len(records) <= whole.total() + 2 * len(rubble)
    if not faults:  # no damage at all, or none that means anything, as in the date of a member
        assert set(map(content, records)) <= set(expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PLAIN)
@given(st.data())
@_EXAMPLES
def test_each_whole_part_of_a_plain_file_is_found(name, draw):
    # Whatever a header was made to declare: its record ends where another begins.
    head, parts = PLAIN[name]
    pieces = draw.draw(mutated(parts))
    if name == "arc":
        # Other than WARC's, a header of ARC is known by its line alone, which has to begin as one.
        for piece, following in pairwise(pieces):
            if following.whole and not piece.data.endswith(b"\n"):
                piece.data += b"\n"
    records, _ = check_whole(pieces, head, parts, packed=False)
    rubble = b"".join(piece.data for piece in pieces if not piece.whole)
    assert len(records) <= sum(piece.whole for piece in pieces) + 1 + rubble.count(b"\n")
