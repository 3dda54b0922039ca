"""`sheaf serve`."""

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from builder.arguments import declare
from builder.runtime import Clock
from builder.serve.kept_pages import KeptPages
from builder.serve.server import Server, compress, open_log
from builder.snapshot import recovery
from builder.store.context import Context
from functions.config.configuration import Configuration
from functions.http import wsgi
from functions.http.access_log import AccessLog
from functions.http.wsgi import WsgiApplication
from functions.site.server import open_site
from functions.snapshot.errors import NothingPublished, StoreError
from functions.store.scratch import Scratch

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
    """Settings that a worker needs to serve a store: `uri` relative to `base`, and others.

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
    declare(
        parser,
        {
            "--host HOST": "address to listen at",
            "--port PORT": "port to listen at; 0 for any",
            "--access-log FILE": "access log, - for standard error (default: serve.access_log)",
            "--content": "also serve archived bytes at /content, and captures at /cdx (default: "
            "content.serve)",
        },
        host={"default": "127.0.0.1"},
        port={"default": 8080},
    )


def run(context: Context) -> int:
    """Serve OAI-PMH at /oai and pages for people at /.

    It runs until it is interrupted.
    """
    pointer, _ = recovery.current(context.store)
    if pointer.newest() is None:
        raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")
    site = _site(context)
    open_log(*site.log)  # its error is reported before any worker starts
    if site.settings["serve.page_cache"]:
        try:
            scratch = Scratch()
            site = replace(site, pages=scratch.path)
        except StoreError as error:  # all pages are rendered
            context.say(f"no page is kept: {error}")
    server = Server(
        lambda number: _open_worker(site, number),
        context.arguments.host,
        context.arguments.port,
        site.workers,
        lambda: _announce(context, site, server.url),
    )
    server.run()
    context.say("stopped")
    return 0


def _announce(context: Context, site: ServedStore, base: str) -> None:
    content = f"{base}/content" if site.settings["content.serve"] else None
    context.result(
        f"serving {context.store.address}\n"
        f"  for people      {base}/\n"
        f"  for harvesters  {base}/oai?verb=Identify\n"
        + (f"  archived bytes  {content}/IDENTIFIER, {base}/cdx?url=URL\n" if content else "")
        + "Ctrl-C ends it.",
        {"url": f"{base}/", "oai": f"{base}/oai", **({"content": content} if content else {})},
    )


def _site(context: Context) -> ServedStore:
    arguments, settings = context.arguments, context.configuration
    if arguments.content:
        settings = settings.having("content.serve", True)
    folder = context.configuration_path.parent
    log = (settings["serve.access_log"], folder)
    if arguments.access_log is not None:
        log = (arguments.access_log, Path.cwd())
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS; the process may use fewer
        cores = len(os.sched_getaffinity(0))
    workers = settings["serve.workers"] or cores
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


def _open_worker(site: ServedStore, number: int) -> tuple[WsgiApplication, Callable[[], object]]:
    """Open worker `number`'s share of the site, and return what closes it. Raises SheafError."""
    share, more = divmod(site.settings["serve.concurrent"], site.workers)
    places = share + (number < more)
    settings = site.settings.having("serve.concurrent", places)
    settings = settings.having("store.cache", max(16, settings["store.cache"] // site.workers))
    write = open_log(*site.log)
    metadata, answer, close = open_site(
        site.uri,
        site.base,
        site.folder,
        settings,
        site.environment,
        site.clock,
        write,
        compress,
        _ROWS * places,
        max(_LEAST_DATABASE, _DATABASE // site.workers),
    )
    if site.pages is not None:
        answer = KeptPages(
            answer,
            metadata.find_pin,
            metadata.find_pointer,
            site.pages,
            settings["serve.page_cache"] << 20,
            site.clock,
            None if write is None else AccessLog(write),
            own_host=not settings["repository.base_url"],
            workers=site.workers,
        )
    return wsgi.make_application(answer, metadata.mount), close
