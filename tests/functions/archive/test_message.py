"""Heads of HTTP messages: they end where they end, however the bytes of a record come."""

import io
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.archive.message import read_message
from functions.archive.record import BufferedBlock, RecordBlock
from functions.archive.stream import RecordStream

BODY = b"<html>\n\nbody\r\n\r\nof it"
HEADS = [
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX: 1\r\n\r\n",
    b"HTTP/1.1 200 OK\nContent-Type: text/html\nX:\n folded\n\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.0 404 Not Found\r\n",  # then the body, at once
    b"HTTP/1.0 404\r\nX" + b"\r" * 30 + b"\n" + b"\r" * 30 + b"\n",
    b"ICY 200 OK\r\n\r\n",
    b"H",
    b"",
]


class Pieces(io.RawIOBase):
    """A stream that gives so many bytes at once, one size after another."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._left, self._sizes = data, sizes

    def read(self, size: int = -1, /) -> bytes:
        step = self._sizes.pop(0) if self._sizes else len(self._left)
        piece, self._left = self._left[:step], self._left[step:]
        return piece


def told(block: RecordBlock) -> tuple[object, bytes, list[str]]:
    message, payload, flaws = read_message(block)
    while piece := block.take():
        payload += piece
    return message, payload, [code for code, *_ in flaws]


def piecewise(data: bytes, sizes: list[int]) -> tuple[object, bytes, list[str]]:
    stream = RecordStream(b"", cast(io.BufferedIOBase, Pieces(data, sizes)))
    stream.next_section()
    return told(RecordBlock(stream, len(data)))


@pytest.mark.parametrize("head", HEADS)
def test_a_head_is_the_same_wherever_a_piece_ends(head: bytes) -> None:
    data = head + BODY
    whole = told(BufferedBlock(data, 0, len(data)))
    for first in range(1, len(data) + 1):
        assert piecewise(data, [first]) == whole, first
    assert piecewise(data, [1] * len(data)) == whole


@given(
    st.lists(st.sampled_from([b"\r\n", b"\n", b"\r", b"A: b", b"HTTP/1.1 200", b"c"])), st.data()
)
def test_no_pieces_make_another_head(parts: list[bytes], draw: st.DataObject) -> None:
    data = b"HTTP/1.1 200 OK" + b"".join(parts)
    sizes = draw.draw(st.lists(st.integers(1, 30), max_size=8))
    assert piecewise(data, sizes) == told(BufferedBlock(data, 0, len(data)))


@pytest.mark.parametrize(
    ("size", "flaws"), [(900_000, []), (1 << 20, []), ((1 << 20) + 1, ["http-head-invalid"])]
)
def test_a_large_head_is_as_long_in_pieces_as_in_memory(size: int, flaws: list[str]) -> None:
    head = b"HTTP/1.1 200 OK\r\n"
    head += b"X: " + b"v" * (size - len(head) - 7) + b"\r\n\r\n"
    assert len(head) == size
    data = head + BODY
    message, payload, codes = told(BufferedBlock(data, 0, len(data)))
    assert (payload, codes) == (data if flaws else BODY, flaws)
    assert piecewise(data, [1000, 65_536, 7, 65_536]) == (message, payload, codes)
