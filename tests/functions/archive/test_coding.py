"""Codings undone in a stream: whatever the pieces, the same bytes, and never too many at once."""

import gzip
import zlib
from collections.abc import Iterator
from random import Random

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from functions.archive.coding import (
    DECODABLE,
    PIECE,
    ContentCodingError,
    decode_codings,
    decode_head,
    detect_codings,
)

PAGE = b"<!doctype html><title>x</title>" * 40


def compressed(coding: str, data: bytes) -> bytes:
    if coding in ("gzip", "x-gzip"):
        return gzip.compress(data, mtime=0)
    if coding == "deflate":
        return zlib.compress(data, wbits=-15 if len(data) % 2 else 15)
    return brotli.compress(data, quality=3) if coding == "br" else zstandard.compress(data)


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def undone(data: bytes, *codings: str, size: int = 1 << 16, is_chunked: bool = False) -> bytes:
    return b"".join(decode_codings(cut(data, size), codings, chunked=is_chunked))


@given(
    st.binary(max_size=3000),
    st.lists(st.sampled_from(sorted(DECODABLE)), max_size=3),
    st.integers(1, 4000),
    st.integers(0, 500),
)
def test_what_was_coded_comes_back(data: bytes, codings: list[str], size: int, chunk: int) -> None:
    packed = data
    for coding in codings:
        packed = compressed(coding, packed)
    if chunk:
        pieces = [packed[at : at + chunk] for at in range(0, len(packed), chunk)]
        packed = b"".join(b"%X;x=1\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\nA: b\r\n\r\n"
    assert undone(packed, *codings, size=size, is_chunked=chunk > 0) == data


@given(st.binary(max_size=300), st.sampled_from(sorted(DECODABLE)), st.integers(1, 400))
def test_any_bytes_give_bytes_or_say_why_not(data: bytes, coding: str, size: int) -> None:
    """And the same however they are cut."""

    def outcome(step: int) -> bytes | None:
        try:
            return undone(data, coding, size=step)
        except ContentCodingError:
            return None

    assert outcome(size) == outcome(1 << 16)


@given(st.binary(min_size=1, max_size=3000), st.sampled_from(sorted(DECODABLE)), st.data())
def test_what_is_cut_short_gives_its_beginning(
    data: bytes, coding: str, draw: st.DataObject
) -> None:
    packed = compressed(coding, data)
    end = draw.draw(st.integers(len(packed) // 2, len(packed)))
    if coding == "deflate":
        end = max(end, 2)
    assert data.startswith(undone(packed[:end], coding)) or end < 20


@pytest.mark.sampled(3)
@pytest.mark.parametrize("coding", sorted(DECODABLE))
@pytest.mark.parametrize("size", [1, 1000, 1 << 20])
def test_a_bomb_comes_in_small_pieces(coding: str, size: int) -> None:
    packed = compressed(coding, bytes(20_000_000))
    count = 0
    for piece in decode_codings(cut(packed, size), [coding], chunked=False):
        assert len(piece) <= PIECE * 1.5
        count += len(piece)
    assert count == 20_000_000


@pytest.mark.parametrize("coding", [*sorted(DECODABLE), "utf-8", "", "identity"])
@pytest.mark.parametrize("plain", [PAGE, b'{"a": 1}\n' * 40, b"let x = 1;\n" * 40])
def test_what_does_not_bear_its_coding_passes(coding: str, plain: bytes) -> None:
    """As what reads archives takes it for its title."""
    assert undone(plain, coding) == plain
    assert decode_head(plain, [coding], 1 << 20)[0] == plain
    if coding in DECODABLE:
        assert detect_codings(plain, [coding], chunked=False) == ([], False)
        assert detect_codings(compressed(coding, plain), [coding], chunked=False)[0] == [coding]


def test_members_one_behind_the_other_are_one_and_what_is_behind_is_not() -> None:
    one, two = gzip.compress(b"one", mtime=0), gzip.compress(b"two", mtime=0)
    for size in (1, 5, 1000):
        assert undone(one + two, "gzip", size=size) == b"onetwo"
        assert undone(one + b"\0\0\0" + two, "gzip", size=size) == b"one"


@pytest.mark.parametrize(
    "data", [b"", b"5\r\nhel", b"hello, no chunk", b"zz\r\nx", b"0\r\n\r\nmore"]
)
def test_what_is_not_chunked_or_cut_gives_what_there_is(data: bytes) -> None:
    expected = {b"5\r\nhel": b"hel", b"0\r\n\r\nmore": b""}.get(data, data)
    for size in (1, 3, 100):
        assert undone(data, size=size, is_chunked=True) == expected


def test_what_nobody_decodes_is_told_before_anything_is_read() -> None:
    def never() -> Iterator[bytes]:
        raise AssertionError
        yield b""

    for codings in (["compress"], ["dcz"], ["gzip", "dcb"], ["gzip"] * 9):
        with pytest.raises(ContentCodingError):
            decode_codings(never(), codings, chunked=False)


def test_what_breaks_in_the_midst_gives_what_was_before_it() -> None:
    data = b"".join(b"%d\n" % (n * n) for n in range(20_000))
    packed = bytearray(gzip.compress(data, mtime=0))
    packed[len(packed) // 2 :] = Random(1).randbytes(5000)
    came = b""
    with pytest.raises(ContentCodingError, match="cannot be inflated"):  # noqa: PT012
        for piece in decode_codings(cut(bytes(packed), 100), ["gzip"], chunked=False):
            came += piece
    assert came
    assert data.startswith(came[: 1 << 12])
