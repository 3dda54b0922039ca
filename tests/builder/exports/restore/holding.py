"""A source of a test's own: captures and their bytes in memory, counted as they are asked for."""

import io
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from builder.exports.restore import captures as rebuild
from builder.exports.restore.captures import ListedCapture
from functions.snapshot import surt


def held(url: str, stamp: str = "20071105120000", **told: object) -> ListedCapture:
    """Return a capture of a URL; what is not told of it is usual."""
    values = {
        "identifier": f"oai:b.cz:{stamp}:{url}",
        "surt": surt.of(url.encode()),
        "status": 200,
        "redirect": None,
        "digest": "",
        "media_type": "text/html",
        "length": 4,
        **told,
    }
    return ListedCapture(url=url, stamp=stamp, **values)  # type: ignore[arg-type]


@dataclass
class Holding:
    """Implements Source. `bodies` are by identifier: bytes, or what raises or makes a stream."""

    found: list[ListedCapture] = field(default_factory=list)
    bodies: dict[str, object] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    address: str = "memory"
    asked: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, one: ListedCapture, body: object = b"body", **headers: str) -> ListedCapture:
        """Hold a capture with these bytes."""
        self.found.append(one)
        self.bodies[one.identifier] = body
        self.headers[one.identifier] = {k.replace("_", "-"): v for k, v in headers.items()}
        return one

    def captures(self, choice: rebuild.CaptureFilter) -> Iterator[ListedCapture]:
        """Yield all of them up to the date."""
        yield from (one for one in self.found if one.stamp <= choice.until)

    def of_url(self, url: str, until: str) -> Iterator[ListedCapture]:
        """Yield those with the URL's SURT."""
        key = surt.of(url.encode())
        yield from (one for one in self.found if one.surt == key and one.stamp <= until)

    @contextmanager
    def open(self, identifier: str, digest: str = "") -> Iterator[rebuild.CaptureBytes]:
        """Give the bytes."""
        with self._lock:
            self.asked[identifier] += 1
        body = self.bodies[identifier]
        if isinstance(body, Exception):
            raise body
        if isinstance(body, bytes):
            size: int | None = len(body)
            stream: BinaryIO = io.BytesIO(body)
        else:
            size, stream = None, cast(Callable[[], BinaryIO], body)()
        size = self.sizes.get(identifier, size)
        yield rebuild.CaptureBytes(stream, size, self.headers[identifier])

    def close(self) -> None:
        """Do nothing."""


class Breaking(io.BytesIO):
    """Bytes that end in what a damaged record ends in."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Give what is there, and then no end."""
        found = super().read(size)
        if not found:
            raise rebuild.MissingError("damaged", "the bytes have another digest")
        return found
