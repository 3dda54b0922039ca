"""Contents in memory, and who asks for them by events or over a real connection."""

import io
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, BinaryIO, cast

from functions.content.capture_row import FIELDS, CaptureRow
from functions.content.contents import ArchivedContents
from functions.content.handler import ContentApplication
from functions.content.protocols import (
    NEWEST,
    Bound,
    BytePlace,
    ByteRange,
    CapturePlace,
    Content,
    ContentError,
)
from functions.content.search import CaptureSearch
from functions.reading.repository import PublishedRecord
from functions.snapshot import surt
from functions.snapshot.manifest import Manifest
from tests.builder.sources.webarchives import containers
from tests.functions.oai.client import START, Clock, answer, configured, event
from tests.functions.reading.memory import MemoryRepository, capture
from tests.serving import serving

ID = "oai:example.org:" + "a" * 24
URL = "http://a.cz/dir/page.txt"
WHEN = datetime(2007, 11, 5, 10, 20, 30, tzinfo=UTC)

CAPTURE = CaptureRow.of(
    ID,
    1,
    (),
    {
        **dict.fromkeys(FIELDS),
        "url": URL,
        "url_surtkey": "cz,a)/dir/page.txt",
        "fetch_date": "2007-11-05T10:20:30Z",
        "fetch_time": WHEN,
        "fetch_status": 200,
        "warc_record_type": "response",
    },
)


def sha1(payload: bytes) -> str:
    return f"sha1:{containers.sha1(payload)}"


@dataclass
class Made:
    """What is held of an item; `broken` is raised behind the last byte, as a wrong digest is."""

    payload: bytes
    media_type: str = "text/plain"
    url: str = URL
    status: int | None = 200
    headers: tuple[tuple[str, str], ...] = ()
    stored: bytes | None = None
    size: int | None = -1
    date: datetime | None = WHEN
    stretch: ByteRange | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    broken: ContentError | None = None
    is_capture: bool = True


class Source(io.RawIOBase):
    """Bytes that are counted as they are read; behind the last ones something may be wrong."""

    def __init__(self, data: BinaryIO, broken: Exception | None, read: Callable[[int], None]):
        self._data, self._broken, self._told = data, broken, read

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._data.read(size)
        self._told(len(data))
        if not data and size and self._broken is not None:
            raise self._broken
        return data


class Endless(io.RawIOBase):
    """So many zeros, none of them in memory."""

    def __init__(self, count: int) -> None:
        self.left = count

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        count = self.left if size < 0 else min(size, self.left)
        self.left -= count
        return bytes(count)


class FakeContents(ArchivedContents):
    """Contents that it is given; counts what is read and what is open."""

    def __init__(self, held: Mapping[str, Made | ContentError] | None = None) -> None:
        self.held = dict(held or {})
        self.asked: list[tuple[str | None, str, datetime | None]] = []
        self.zeros = 0
        self.read = self.open = 0
        self._lock = threading.Lock()

    def find(
        self,
        manifest: Manifest,
        record: PublishedRecord | None,
        *,
        file: str = "",
        at: datetime | None = None,
    ) -> Content:
        self.asked.append((record and record.identifier, file, at))
        name = file if record is None else record.identifier
        found = self.held.get(name, ContentError("unknown", "there is no such item"))
        if isinstance(found, ContentError):
            raise found
        size = len(found.payload) if found.size == -1 else found.size
        taken = None
        if found.is_capture:
            fields = {
                **dict.fromkeys(FIELDS),
                "url": found.url,
                "url_surtkey": surt.of(found.url.encode("utf-8", "surrogateescape")),
                "fetch_date": found.date and found.date.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "warc_record_type": "response",
                "content_length": None if size is None else len(found.stored or found.payload),
            }
            taken = CaptureRow.of(name, 1, (), fields)
        digest = sha1(found.payload if found.stored is None else found.stored)
        return Content(
            name,
            found.url,
            found.date,
            found.status,
            found.media_type,
            found.headers,
            digest,
            size,
            taken,
            stretch=found.stretch,
            facts=found.facts,
        )

    @contextmanager
    def open_content(
        self, content: Content, *, coded: bool = False, verified: bool = True
    ) -> Iterator[BinaryIO]:
        found = self.held[content.identifier]
        assert isinstance(found, Made)
        payload = found.stored if coded and found.stored is not None else found.payload
        source: Any = Endless(self.zeros) if self.zeros else io.BytesIO(payload)
        self._count(opened=1)
        try:
            yield cast(BinaryIO, Source(source, found.broken if verified else None, self._count))
        finally:
            self._count(opened=-1)

    def _count(self, read: int = 0, opened: int = 0) -> None:
        with self._lock:
            self.read += read
            self.open += opened


class FakeSearch(CaptureSearch):
    """There is one capture, of URL. Counts searches; `broken` is raised."""

    def __init__(self, broken: Exception | None = None) -> None:
        self.broken = broken
        self.count = 0

    def captures(
        self,
        manifest: Manifest,
        first: str,
        last: str,
        after: BytePlace | None,
        limit: int,
        since: int = 0,
        until: int = NEWEST,
        *,
        reverse: bool = False,
    ) -> list[CaptureRow]:
        self.count += 1
        if self.broken is not None:
            raise self.broken
        return [CAPTURE] if first <= CAPTURE.surt < last and limit and after is None else []

    def page(
        self, *args: Any, reverse: bool = False, end: Bound | None = None, **named: Any
    ) -> CapturePlace:
        return CapturePlace(self.captures(*args, **named), None)

    def starts(self, *args: Any) -> list[Bound]:
        return []

    def matching(self, pattern: str, texts: Sequence[str], whole: bool) -> list[bool]:
        return [True for _ in texts]


class Asker:
    """Asks an application over FakeContents: one capture, ID, of `made`, unless `held` says."""

    def __init__(
        self,
        made: Made | ContentError | None = None,
        contents: FakeContents | None = None,
        sign: Any = None,
        largest: int | None = None,
        search: FakeSearch | None = None,
        **settings: Any,
    ) -> None:
        self.contents = contents or FakeContents()
        if made is not None:
            self.contents.held[ID] = made
        self.repository = MemoryRepository()
        changes = {name: capture(URL) for name in self.contents.held if name.startswith("oai:")}
        self.repository.publish(changes or {ID: capture(URL)}, START)
        self.clock = Clock()
        self.clock.move(60)
        self.lines: list[str] = []
        self.search = search or FakeSearch()
        self.application = ContentApplication(
            self.repository,
            self.contents,
            self.search,
            configured(**{"content_serve": True, **settings}),
            self.clock,
            self.lines.append,
            sign=sign,
            largest=largest,
        )

    def raw(
        self, path: str = f"/content/{ID}", query: str = "", method: str = "GET", **headers: str
    ) -> dict[str, Any]:
        """Ask; `if_none_match` stands for If-None-Match."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return answer(self.application, event(query, method, path, names))

    def get(self, *args: Any, **headers: str) -> "Got":
        """Ask, and take the body, be it a stream."""
        reply = self.raw(*args, **headers)
        body = reply["body"]
        if not isinstance(body, bytes):
            with body_of(body) as pieces:
                body = b"".join(pieces)
        return Got(reply["statusCode"], reply["headers"], body)


@dataclass(frozen=True)
class Got:
    """An answer as a client has it."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@contextmanager
def body_of(stream: Any) -> Iterator[Any]:
    try:
        yield stream
    finally:
        stream.close()


@contextmanager
def listening(application: ContentApplication, patience: int = 60) -> Iterator[tuple[str, int]]:
    """Serve as `sheaf serve` does; give host and port."""
    with serving(application.answer, patience=patience) as server:
        yield server.address
