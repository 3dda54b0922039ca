"""`sheaf serve`."""

import argparse
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType

from builder.context import Context
from builder.runtime import Clock
from builder.serve.access_log import open_log
from builder.serve.connection import Handler
from builder.serve.kept_pages import KeptPages, LineRecorder
from builder.serve.mirror import CacheServer, SharedCache
from builder.serve.page_cache import PageCache
from builder.serve.server import LocalServer, compress
from builder.serve.workers import WorkerServer
from builder.snapshot import recovery
from functions.config.configuration import Configuration
from functions.content import assembly
from functions.oai.application import Application
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.site import assembly as pages
from functions.snapshot.errors import NothingPublished, StoreError
from functions.snapshot.store import Reader
from functions.store import catalog
from functions.store.catalog import Catalogue
from functions.store.scratch import Scratch
from functions.store.slice import open_reader
from functions.store.store_reader import BucketReader

_ROWS = 8 << 20
"""Bytes of memory for rows per concurrent request: two row groups, so that twice as many harvesters
at different places of a list find theirs.
"""
_DATABASE = 512
"""Megabytes for DuckDB, of all workers together."""
_LEAST_DATABASE = 128
"""Minimum megabytes of a worker's DuckDB: the largest pages need them."""


@dataclass(frozen=True)
class ServedStore:
    """Settings that a process needs to serve a store: `uri` relative to `base`, and others.

    `folder` is that of the configuration; `log` is the access log's name and the folder it is
    relative to. `pages` is the folder of kept pages.
    """

    uri: str
    base: Path
    folder: Path
    settings: Configuration
    environment: Mapping[str, str]
    clock: Clock
    log: tuple[str, Path]
    workers: int
    pages: Path | None = None


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
    parser.add_argument("--port", type=int, default=8080, help="port to listen at; 0 for any")
    parser.add_argument(
        "--access-log",
        metavar="FILE",
        help="access log, - for standard error (default: serve.access_log)",
    )
    parser.add_argument(
        "--content",
        action="store_true",
        help="also serve archived bytes at /content, and captures at /cdx (default: content.serve)",
    )


def run(context: Context) -> int:
    """Serve OAI-PMH at /oai and pages for people at /.

    It runs until it is interrupted.
    """
    pointer, _ = recovery.current(context.store)
    newest = pointer.newest()
    if newest is None:
        raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")
    site = _site(context)
    reader = open_reader(*context.store_uri(), context.configuration, context.reading_environment)
    host, port = context.arguments.host, context.arguments.port
    # Errors of the store, the templates or the log are reported now, by one process.
    Catalogue(reader).manifest(newest.snapshot)
    scratch = _open_scratch(context) if site.settings["serve.page_cache"] else None
    if scratch is not None:
        site = replace(site, pages=scratch.path)
    with _open(site, reader) as (handler, threads):
        if site.workers == 1:
            catalog.collect_less_often()
            _serve(context, site, reader.address, LocalServer(handler, host, port, threads))
            return 0
    lend = CacheServer(reader.cache).lend if isinstance(reader, BucketReader) else None
    server = WorkerServer(partial(_open_worker, site), host, port, site.workers, lend)
    _serve(context, site, reader.address, server)
    return 0


def _open_scratch(context: Context) -> Scratch | None:
    """Open the folder of kept pages; without one, all pages are rendered."""
    try:
        return Scratch()
    except StoreError as error:
        context.say(f"no page is kept: {error}")
        return None


def _site(context: Context) -> ServedStore:
    arguments, settings = context.arguments, context.configuration
    if arguments.content:
        settings = settings.having("content.serve", True)
    folder = context.configuration_path.parent
    log = (settings["serve.access_log"], folder)
    if arguments.access_log is not None:
        log = (arguments.access_log, Path.cwd())
    workers = settings["serve.workers"] or _cores()
    return ServedStore(
        uri=context.store_uri()[0],
        base=context.store_uri()[1],
        folder=folder,
        settings=settings,
        environment=context.reading_environment,
        clock=context.now,
        log=log,
        # A worker without a share of the concurrent requests would be of no use.
        workers=min(workers, settings["serve.concurrent"]),
    )


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _serve(
    context: Context, site: ServedStore, address: str, server: LocalServer | WorkerServer
) -> None:
    """Serve until Ctrl-C or SIGTERM; a second signal ends it without finishing responses."""
    base = server.url
    content = f"{base}/content" if site.settings["content.serve"] else None

    def announce() -> None:
        context.result(
            f"serving {address}\n"
            f"  for people      {base}/\n"
            f"  for harvesters  {base}/oai?verb=Identify\n"
            + (f"  archived bytes  {content}/IDENTIFIER, {base}/cdx?url=URL\n" if content else "")
            + "Ctrl-C ends it.",
            {"url": f"{base}/", "oai": f"{base}/oai", **({"content": content} if content else {})},
        )

    def end(number: int, frame: FrameType | None) -> None:
        restore()
        server.close()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, end)
        server.run(announce)
        context.say("stopped")
    except KeyboardInterrupt:
        context.say("stopped before all responses were complete")
    finally:
        restore()


@contextmanager
def _open_worker(
    site: ServedStore, number: int, door: socket.socket
) -> Iterator[tuple[Handler, int]]:
    """Open one worker's share of the site; `door` connects to the cache of a bucket."""
    share, more = divmod(site.settings["serve.concurrent"], site.workers)
    settings = site.settings.having("serve.concurrent", share + (number < more))
    shared = SharedCache(door)
    reader = open_reader(site.uri, site.base, settings, site.environment, cache=shared)
    with _open(replace(site, settings=settings), reader, number) as opened:
        catalog.collect_less_often()
        yield opened


@contextmanager
def _open(site: ServedStore, reader: Reader, number: int = 0) -> Iterator[tuple[Handler, int]]:
    """Open worker `number`'s handler of a site, and its number of threads. Raises SheafError."""
    write = open_log(*site.log)
    recorder = None if write is None else LineRecorder(write)
    places = site.settings["serve.concurrent"]
    repository = DuckRepository(
        reader,
        _ROWS * places,
        ahead=True,
        memory=max(_LEAST_DATABASE, _DATABASE // site.workers),
    )
    try:
        # A restarted worker does not return to an older snapshot.
        guarded = site.workers > 1
        metadata = Application(
            repository,
            site.settings,
            site.clock,
            recorder,
            compress=compress,
            guarded=guarded,
            pages=pages.site_over(repository),
        )
        handler: Handler = metadata.answer
        if site.settings["content.serve"]:
            content = assembly.application(
                repository,
                reader.address,
                site.folder,
                site.settings,
                site.environment,
                site.clock,
                write,
                compress,
                guarded=guarded,
            )
            handler, places = assembly.beside(content, metadata.answer), 2 * places
        if site.pages is not None:
            most = site.settings["serve.page_cache"] << 20
            cache = PageCache(site.pages, most, site.workers, number)
            own_host = not site.settings["repository.base_url"]
            handler = KeptPages(handler, metadata, cache, site.clock, recorder, own_host=own_host)
        # One more thread than the request limit: it rejects further requests.
        yield handler, places + 1
    finally:
        repository.close()
