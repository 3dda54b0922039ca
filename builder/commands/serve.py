"""`sheaf serve`."""

import argparse
from collections.abc import Callable
from pathlib import Path

from builder.context import Context
from builder.serve import access_log
from builder.serve.connection import Handler
from builder.serve.server import LocalServer, gzipped
from builder.snapshot import recovery
from functions.config.configuration import Configuration
from functions.content import assembly
from functions.database import cache
from functions.oai.handler import Application
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.snapshot.errors import NothingPublished


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
    parser.add_argument("--port", type=int, default=8080, help="port to listen at; 0 for any")
    parser.add_argument(
        "--access-log",
        metavar="FILE",
        help="where to log requests, - for standard error (default: serve.access_log)",
    )
    parser.add_argument(
        "--content",
        action="store_true",
        help="give the archived bytes as well, at /content and by /cdx (default: content.serve)",
    )


def run(context: Context) -> int:
    """Serve OAI-PMH at /oai and a page for people at /, until interrupted."""
    arguments, configuration = context.arguments, context.configuration
    if arguments.content:
        configuration = configuration.having("content.serve", True)
    repository = DuckRepository(context.reader, ahead=True)
    pointer, _ = recovery.current(context.store)
    newest = pointer.newest()
    if newest is None:
        raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")
    repository.manifest(newest.snapshot)  # a damaged or newer store is told of now, not later
    if arguments.access_log is not None:
        write = access_log.opened(arguments.access_log, Path.cwd())
    else:
        write = access_log.opened(
            configuration["serve.access_log"], context.configuration_path.parent
        )
    answer, places = _handler(context, configuration, repository, write)
    cache.seldom_searched()
    # One thread more than requests are answered at once: it tells the others that they are not.
    server = LocalServer(answer, arguments.host, arguments.port, places + 1)
    base = server.url
    content = f"{base}/content" if configuration["content.serve"] else None
    context.result(
        f"serving {context.reader.address}\n"
        f"  for people      {base}/\n"
        f"  for harvesters  {base}/oai?verb=Identify\n"
        + (f"  archived bytes  {content}/IDENTIFIER, {base}/cdx?url=URL\n" if content else "")
        + "Ctrl-C ends it.",
        {"url": f"{base}/", "oai": f"{base}/oai", **({"content": content} if content else {})},
    )
    try:
        server.run()
    except KeyboardInterrupt:
        context.say("stopped")
    finally:
        server.close()
        repository.close()
    return 0


def _handler(
    context: Context,
    configuration: Configuration,
    repository: DuckRepository,
    write: Callable[[str], None] | None,
) -> tuple[Handler, int]:
    """Return what answers, and how many requests it answers at once."""
    metadata = Application(repository, configuration, context.now, write, compress=gzipped)
    places = configuration["serve.concurrent"]
    if not configuration["content.serve"]:
        return metadata.unpacked, places
    content = assembly.application(
        repository,
        context.reader.address,
        context.configuration_path.parent,
        configuration,
        context.environment,
        context.now,
        write,
        gzipped,
    )
    return assembly.beside(content, metadata.unpacked), 2 * places
