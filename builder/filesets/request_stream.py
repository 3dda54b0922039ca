"""The feed: requests as lines of a stream that may go on for ever, one after the other."""

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
    """Yield the requests that the lines of an open file are, JSON in UTF-8, until `stop` is set.

    A line that is none has a request that stands for it and names it, by its number from 1. Empty
    ones are passed over. Of a line that is too long no more is in memory than a line may have.
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
    """Yield the lines without their ends; of one that is too long the beginning."""
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
