"""Streaming bodies of answers, read in pieces of bounded size."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from contextvars import copy_context
from typing import BinaryIO

from functions.content.errors import ContentError

PIECE = 1 << 16
"""Bytes of one read."""


def skip(source: BinaryIO, count: int) -> None:
    """Skip `count` bytes, or all up to the end."""
    while count > 0:
        count -= len(data := source.read(min(count, PIECE)))
        if not data:
            return


def count_rest(source: BinaryIO, most: int) -> int | None:
    """Return the number of remaining bytes, by reading them; None if there are more than `most`.

    The limit is needed because a few bytes can inflate to any number of bytes.
    """
    count = 0
    while data := source.read(PIECE):
        count += len(data)
        if count > most:
            return None
    return count


def pieces(source: BinaryIO, length: int | None, whole: int | None = None) -> Iterator[bytes]:
    """Yield the next `length` bytes (None: to the end), one piece behind the reads.

    An error is therefore raised before the last piece is sent. A client that got the announced
    number of bytes knows that they are correct. If `whole` is given and there are more bytes than
    that, ContentError is raised before the extra bytes are sent.
    """
    last, count = b"", 0
    while length is None or length > 0:
        data = source.read(PIECE if length is None else min(length, PIECE))
        if not data:
            break
        count += len(data)
        if whole is not None and count > whole:
            raise ContentError("damaged", f"there are more than the {whole} declared bytes")
        if length is not None:
            length -= len(data)
        if last:
            yield last
        last = data
    if last:
        yield last


class Body:
    """The body of an answer: the pieces in `ready`, then `further` pieces as they are read.

    At the end `source` is closed, then `ended` is called once with the number of bytes sent and the
    error, if any. Errors while reading are raised. Several threads may read it in turn, each in the
    context (contextvars) in which it was created.
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
        """Close the source; harmless if it is closed already."""
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        ended, self._ended = self._ended, None
        if ended is None:
            return
        try:
            self._context.run(self._source.close)
        finally:
            ended(self._given, error)
