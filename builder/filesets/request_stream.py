"""Requests from the lines of a stream, which may be endless."""

import os
import select
import threading
from collections.abc import Iterator

from builder.filesets import request
from builder.filesets.item import IngestRequest
from builder.filesets.request import LONGEST, BadLine

_STEP = 65_536
_TICK = 0.2


def requests(descriptor: int, stop: threading.Event, name: str = "line") -> Iterator[IngestRequest]:
    """Yield the request of each line of an open file, JSON in UTF-8, until `stop` is set.

    An invalid line yields a placeholder request with its number, from 1. Empty lines are skipped.
    Of a line that is too long, only as much as a valid line may have is kept in memory.
    """
    for number, data in enumerate(_lines(descriptor, stop), 1):
        if not data.strip():
            continue
        text = data.decode("utf-8", "replace")
        try:
            data.decode("utf-8")
            yield request.parse(text)
        except UnicodeDecodeError:
            yield request.invalid_request(f"{name} {number}: no UTF-8", text)
        except BadLine as error:
            yield request.invalid_request(f"{name} {number}: {error}", text)


def _lines(descriptor: int, stop: threading.Event) -> Iterator[bytes]:
    """Yield the lines without line ends; a line that is too long is cut off."""
    held = b""
    while (data := _read(descriptor, stop)) is not None:
        *whole, rest = data.split(b"\n")
        for one in whole:
            yield held + one
            held = b""
        held = (held + rest)[: 4 * LONGEST + 1]
    if held and not stop.is_set():
        yield held


def _read(descriptor: int, stop: threading.Event) -> bytes | None:
    """Return some bytes; None at the end, or once `stop` is set."""
    while not stop.is_set():
        ready, _, _ = select.select([descriptor], [], [], _TICK)
        if ready:
            return os.read(descriptor, _STEP) or None
    return None
