"""Opens the source of a restore by its address."""

import threading
from contextlib import ExitStack

from builder.context import Context
from builder.errors import UsageError
from builder.http.addresses import Anywhere
from builder.http.client import HttpClient, agent_of
from builder.http.politeness import HostPolicy, HostQueue
from builder.http.proxies import Proxies, proxies
from builder.http.settings import http_settings
from builder.restore import endpoint
from builder.restore.client import EndpointClient
from builder.restore.endpoint import EndpointSource
from builder.restore.protocols import CaptureSource
from builder.restore.store import StoreSource
from builder.snapshot import recovery
from builder.store.folder import FolderStore
from functions.content import wiring
from functions.content.search import CaptureSearch
from functions.oai.as_of import AsOf
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.snapshot.errors import NothingPublished
from functions.snapshot.store import Writer
from functions.store.reader import open_reader

_CONCURRENT = 1 << 10


def is_endpoint(address: str) -> bool:
    """Return whether an address is that of a server rather than a store."""
    return address.startswith(("http://", "https://"))


def http_client(agent: str, stop: threading.Event, behind: Proxies | None = None) -> HttpClient:
    """Return an HTTP client without politeness pauses.

    The operator names the endpoint, and chooses the number of threads.
    """
    policy = HostPolicy(concurrent=_CONCURRENT, forgives=0)
    return HttpClient(
        agent=agent, addresses=Anywhere(), hosts=HostQueue(policy, stop), stop=stop,
        proxies=behind or Proxies(), keep_alive=True,
    )  # fmt: skip


def source(context: Context, address: str, stop: threading.Event | None = None) -> CaptureSource:
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
    if isinstance(store, FolderStore) and not store.root.is_dir():
        raise UsageError(f"{address} is neither a folder nor the URL of a server")
    return _store(context, store)


def _store(context: Context, store: Writer) -> CaptureSource:
    with ExitStack() as stack:
        reader = open_reader(
            *context.store_uri(), context.configuration, context.reading_environment
        )
        repository = DuckRepository(reader)
        stack.callback(repository.close)
        pointer, _ = recovery.current(store)
        if pointer.newest() is None:
            raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")
        settings = context.configuration
        present = AsOf(repository, context.now, 0.0, settings["serve.clock_allowance"])
        manifest = repository.manifest(present.reading().entry.snapshot)
        base = context.configuration_path.parent
        contents = wiring.contents(
            repository, reader.address, base, settings, context.reading_environment
        )
        search = CaptureSearch(repository.catalogue, repository.files)
        closing = stack.pop_all().close
    return StoreSource(reader.address, manifest, repository, search, contents, closing)
