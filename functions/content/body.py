"""Streams: an answer's bytes as they come, a piece at a time, however many there are."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from contextvars import copy_context
from typing import BinaryIO

from functions.content.errors import ContentError

PIECE = 1 << 16
"""Bytes that are read at once."""


def skip(source: BinaryIO, count: int) -> None:
    """Read forwards over `count` bytes, or to the end."""
    while count > 0:
        count -= len(data := source.read(min(count, PIECE)))
        if not data:
            return


def count_rest(source: BinaryIO, most: int) -> int | None:
    """Return how many bytes are left, which are read for it; None where they are more than `most`.

    A few bytes may be made to inflate to any number of them.
    """
    count = 0
    while data := source.read(PIECE):
        count += len(data)
        if count > most:
            return None
    return count


def pieces(source: BinaryIO, length: int | None, whole: int | None = None) -> Iterator[bytes]:
    """Yield the next `length` bytes (None: to the end), each piece once the next one was read.

    So what is wrong is known, and raised, before the last piece is given: who has got as many bytes
    as there are to be knows that they are right. Of a `whole` that has more bytes than it is to
    have, ContentError is raised before those are given.
    """
    last, count = b"", 0
    while length is None or length > 0:
        data = source.read(PIECE if length is None else min(length, PIECE))
        if not data:
            break
        count += len(data)
        if whole is not None and count > whole:
            raise ContentError("damaged", f"there are more bytes there than the {whole} told")
        if length is not None:
            length -= len(data)
        if last:
            yield last
        last = data
    if last:
        yield last


class Body:
    """The pieces of an answer: those of `ready`, then the others as they are read.

    `source` is closed with it, then `ended` is called, once, with how many bytes were given, and
    with what it broke off by. What goes wrong on the way is raised. It may be read by one thread
    after another, each time in the context (contextvars) in which it was made.
    """

    def __init__(
        self,
        ready: list[bytes],
        further: Iterator[bytes],
        source: ExitStack,
        ended: Callable[[int, Exception | None], None],
    ) -> None:
        self._ready = ready[::-1]
        self._further = further
        self._source = source
        self._ended: Callable[[int, Exception | None], None] | None = ended
        self._given = 0
        self._context = copy_context()

    def __iter__(self) -> "Body":
        return self

    def __next__(self) -> bytes:
        if self._ended is None:
            raise StopIteration
        try:
            piece = self._ready.pop() if self._ready else self._context.run(next, self._further)
        except Exception as error:
            self._end(None if isinstance(error, StopIteration) else error)
            raise
        self._given += len(piece)
        return piece

    def close(self) -> None:
        """Let go of the source. It is no error where there is nothing left of it."""
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        ended, self._ended = self._ended, None
        if ended is None:
            return
        try:
            self._context.run(self._source.close)
        finally:
            ended(self._given, error)
