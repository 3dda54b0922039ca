"""Opens the source of a restore by its address: an endpoint, or a store.

The captures of a store and their bytes are read in this process.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from builder.exports.restore import endpoint
from builder.exports.restore.captures import (
    CaptureBytes,
    CaptureFilter,
    CaptureSource,
    ListedCapture,
    MissingError,
    request_url,
)
from builder.exports.restore.endpoint import EndpointClient, EndpointSource
from builder.http.addresses import AnyAddresses
from builder.http.client import HttpClient, agent_of
from builder.http.politeness import HostPolicy, HostQueue
from builder.http.settings import Proxies, http_settings, proxies
from builder.snapshot import recovery
from builder.store.context import Context
from functions.content import assembly, terms
from functions.content.capture_row import FIELDS, CaptureRow
from functions.content.contents import ArchivedContents
from functions.content.protocols import BytePlace, ContentError
from functions.content.search import CaptureSearch
from functions.content.terms import Range
from functions.reading.as_of import AsOf
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import RecordSelection, Repository, read_batches
from functions.snapshot.manifest import Manifest, Span
from functions.store.slice import open_reader

_PAGE = 2000
_CONCURRENT = 1 << 10


@dataclass(frozen=True, slots=True)
class StoreSource:
    """Implements CaptureSource over one snapshot of a store; `close` closes the others."""

    address: str
    manifest: Manifest
    repository: Repository
    search: CaptureSearch
    contents: ArchivedContents
    close: Callable[[], None]

    def captures(self, choice: CaptureFilter) -> Iterator[ListedCapture]:
        """Yield the captures of the choice: of a set in the order of the log, else by SURT."""
        if choice.set is None and choice.urls:
            for interval in choice.ranges():
                yield from self._search_captures(interval, choice.until)
        else:
            yield from choice.select(self._list_set(choice.set))

    def of_url(self, url: str, until: str) -> Iterator[ListedCapture]:
        """Yield the captures of one URL."""
        for interval in terms.parse_scope(url, "exact").ranges:
            yield from self._search_captures(interval, until)

    @contextmanager
    def open(self, identifier: str, digest: str = "") -> Iterator[CaptureBytes]:
        """Open the bytes of a capture, with codings decoded and its record's digest verified."""
        try:
            record = self.repository.record(self.manifest, identifier, fields=FIELDS)
            content = self.contents.find(self.manifest, record)
            headers: dict[str, str] = {}
            for name, value in content.headers:
                headers.setdefault(name.lower(), value)
            with self.contents.open_content(content) as stream:
                yield CaptureBytes(stream, content.size, headers)
        except ContentError as error:
            raise MissingError(error.code, str(error)) from error

    def _search_captures(self, interval: Range, until: str) -> Iterator[ListedCapture]:
        after: BytePlace | None = None
        while True:
            page = self.search.page(self.manifest, *interval, after, _PAGE, until=int(until))
            yield from map(listed_capture, page.captures)
            after = page.after
            if after is None:
                return

    def _list_set(self, spec: str | None) -> Iterator[ListedCapture]:
        selection = RecordSelection(("capture",), Span(1, self.manifest.last_position), spec)
        for page in read_batches(self.repository, self.manifest, selection, _PAGE, fields=FIELDS):
            for record in page:
                if not record.deleted:
                    values = record.identifier, record.position, record.sets, record.fields
                    yield listed_capture(CaptureRow.of(*values))


def listed_capture(capture: CaptureRow) -> ListedCapture:
    """Return a capture as needed for a plan."""
    return ListedCapture(
        identifier=capture.identifier,
        url=request_url(capture.url, capture.method, capture.body),
        surt=capture.surt,
        stamp=capture.stamp,
        status=capture.status,
        redirect=capture.redirect,
        digest=capture.digest or "",
        media_type=capture.mime or capture.detected or "",
        length=None if capture.is_revisit else capture.length,
        revisit=capture.is_revisit,
        method=capture.method,
    )


def is_endpoint(address: str) -> bool:
    """Return whether an address is that of a server rather than a store."""
    return address.startswith(("http://", "https://"))


def http_client(agent: str, stop: threading.Event, behind: Proxies | None = None) -> HttpClient:
    """Return an HTTP client without politeness pauses.

    The operator names the endpoint, and chooses the number of threads.
    """
    return HttpClient(
        agent=agent,
        addresses=AnyAddresses(),
        hosts=HostQueue(HostPolicy(concurrent=_CONCURRENT, forgives=0), stop),
        stop=stop,
        proxies=behind or Proxies(),
        keep_alive=True,
    )


def open_source(
    context: Context, address: str, stop: threading.Event | None = None
) -> CaptureSource:
    """Return the source at an address: an endpoint for http(s), else a store.

    `context` is that of the command; `stop` ends waiting for an endpoint. Raises SheafError.
    """
    if is_endpoint(address):
        agent, behind = agent_of("(sheaf restore)"), proxies(context.environment)
        http = http_settings(context.defaults, "restore")
        client = http_client(agent, stop or threading.Event(), behind)
        asking = EndpointClient(client, http.limits(), http.retry_policy())
        return EndpointSource(endpoint.base(address), asking)
    store = context.store
    with ExitStack() as stack:
        reader = open_reader(
            *context.store_uri(), context.configuration, context.reading_environment
        )
        repository = DuckRepository(reader)
        stack.callback(repository.close)
        recovery.current(store)[0].require_newest()
        settings = context.configuration
        present = AsOf(repository, context.now, 0.0, settings["serve.clock_allowance"])
        manifest = repository.manifest(present.reading().entry.snapshot)
        base = context.configuration_path.parent
        contents = assembly.open_contents(
            repository, reader.address, base, settings, context.reading_environment
        )
        search = CaptureSearch(repository.catalogue, repository.files)
        closing = stack.pop_all().close
    return StoreSource(reader.address, manifest, repository, search, contents, closing)
