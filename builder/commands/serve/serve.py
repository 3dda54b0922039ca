"""`sheaf serve`."""

import argparse
import logging
import os
from collections.abc import Callable
from pathlib import Path

from builder.arguments import declare
from builder.serve.kept_pages import KeptPages
from builder.serve.server import LogLines, Server, compress, open_log
from builder.serve.shared_answers import SharedAnswers
from builder.serve.site_folder import SiteFolder
from builder.snapshot import recovery
from builder.store.context import Context
from functions.config.configuration import Configuration
from functions.http import wsgi
from functions.http.wsgi import WsgiApplication
from functions.site.server import open_site
from functions.snapshot.errors import NothingPublished, StoreError
from functions.store.scratch import Scratch

_LOG = logging.getLogger("sheaf")

_ROWS = 8 << 20
"""Bytes of memory for rows per concurrent request: two row groups, so that twice as many harvesters
at different places of a list find theirs.
"""
_DATABASE = 512
"""Megabytes for DuckDB, of all workers together."""
_LEAST_DATABASE = 128
"""Minimum megabytes of a worker's DuckDB: the largest pages need them."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "--host HOST": "address to listen at",
            "--port PORT": "port to listen at; 0 for any",
            "--access-log FILE": "access log, - for standard error (default: serve.access_log)",
            "--content": "also serve archived bytes at /content, pages as they were at /web, and "
            "captures at /cdx (default: "
            "content.serve)",
            "--site DIR": "serve a folder that `sheaf export site` wrote, instead of a store",
        },
        host={"default": "127.0.0.1"},
        port={"default": 8080},
    )


def run(context: Context) -> int:
    """Serve OAI-PMH at /oai and pages for people at /.

    It runs until it is interrupted. Its state is at /health.
    """
    LogLines().install()
    if context.arguments.site is not None:
        return _serve_site(context, Path(context.arguments.site))
    try:
        recovery.current(context.store)[0].require_newest()
    except NothingPublished:
        _LOG.warning("nothing is published yet: until `sheaf publish`, all answers are 503")
    settings = context.configuration
    if context.arguments.content:
        settings = settings.having("content.serve", True)
    open_log(*_find_log(context))  # its error is reported before any worker starts
    pages: Path | None = None
    counts = Scratch() if settings["serve.metrics"] else None
    if settings["serve.page_cache"]:
        try:
            scratch = Scratch()
            pages = scratch.path
        except StoreError as error:  # all pages are rendered
            _LOG.warning("no page is kept: %s", error)
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS; the process may use fewer
        cores = len(os.sched_getaffinity(0))
    # A worker without a share of the concurrent requests would be of no use.
    workers = min(settings["serve.workers"] or cores, settings["serve.concurrent"])
    server = Server(
        lambda number: _open_worker(
            context, settings, pages, counts.path if counts else None, workers, number
        ),
        context.arguments.host,
        context.arguments.port,
        workers,
        lambda: _announce(context, settings, server.url),
    )
    server.run()
    _LOG.info("stopped")
    return 0


def _serve_site(context: Context, root: Path) -> int:
    """Serve a folder of answers."""
    site, arguments = SiteFolder(root), context.arguments
    application = wsgi.make_application(site.answer)

    def announce() -> None:
        lines = f"serving {root}\n  for harvesters  {server.url}/oai?verb=Identify\nCtrl-C ends it."
        context.result(lines, {"url": f"{server.url}/", "oai": f"{server.url}/oai"})

    server = Server(
        lambda _: (application, lambda: None), arguments.host, arguments.port, 1, announce
    )
    server.run()
    _LOG.info("stopped")
    return 0


def _announce(context: Context, settings: Configuration, base: str) -> None:
    content = f"{base}/content" if settings["content.serve"] else None
    context.result(
        f"serving {context.store.address}\n"
        f"  for people      {base}/\n"
        f"  for harvesters  {base}/oai?verb=Identify\n"
        + (f"  archived bytes  {content}/IDENTIFIER, {base}/cdx?url=URL\n" if content else "")
        + (f"  archived pages  {base}/web/URL\n" if content else "")
        + "Ctrl-C ends it.",
        {"url": f"{base}/", "oai": f"{base}/oai", **({"content": content} if content else {})},
    )


def _find_log(context: Context) -> tuple[str, Path]:
    """Return the name of the access log, and the folder that it is relative to."""
    if context.arguments.access_log is not None:
        return context.arguments.access_log, Path.cwd()
    return context.configuration["serve.access_log"], context.configuration_path.parent


def _open_worker(
    context: Context,
    settings: Configuration,
    pages: Path | None,
    counts: Path | None,
    workers: int,
    number: int,
) -> tuple[WsgiApplication, Callable[[], object]]:
    """Open worker `number`'s share of the site, and return what closes it. Raises SheafError.

    `pages` is the folder of kept pages, `counts` that of metrics.
    """
    share, more = divmod(settings["serve.concurrent"], workers)
    places = share + (number < more)
    settings = settings.having("serve.concurrent", places)
    settings = settings.having("store.cache", max(16, settings["store.cache"] // workers))
    metadata, answer, close = open_site(
        *context.store_uri(),
        context.configuration_path.parent,
        settings,
        context.reading_environment,
        context.now,
        open_log(*_find_log(context)),
        compress,
        _ROWS * places,
        max(_LEAST_DATABASE, _DATABASE // workers),
    )
    if pages is not None:
        answer = KeptPages(
            answer,
            metadata.find_pin,
            metadata,
            pages,
            settings["serve.page_cache"] << 20,
            own_host=not settings["repository.base_url"],
            workers=workers,
        )
    answer = SharedAnswers(answer, metadata)
    if counts is not None:
        from builder.serve.metrics import RequestMetrics  # only who wants it loads the library

        answer = RequestMetrics(answer, metadata.health.report, counts)
    return wsgi.make_application(answer, metadata.mount), close
