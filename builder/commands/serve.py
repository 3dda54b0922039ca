"""`sheaf serve`."""

import argparse
from pathlib import Path

from builder import log, recovery
from builder.context import Context
from builder.server import LocalServer, gzipped
from functions.oai import kept
from functions.oai.duck import DuckRepository
from functions.oai.handler import Application
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


def run(context: Context) -> int:
    """Serve OAI-PMH at /oai and a page for people at /, until interrupted."""
    arguments, configuration = context.arguments, context.configuration
    repository = DuckRepository(context.reader, ahead=True)
    newest = repository.pointer().newest()
    if newest is None:
        recovery.check_store(context.store)
        raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")
    repository.manifest(newest.snapshot)  # a damaged or newer store is told of now, not later
    if arguments.access_log is not None:
        write = log.opened(arguments.access_log, Path.cwd())
    else:
        write = log.opened(configuration["serve.access_log"], context.configuration_path.parent)
    application = Application(repository, configuration, context.now, write, compress=gzipped)
    # One thread more than requests are answered at once: it tells the others that they are not.
    threads = configuration["serve.concurrent"] + 1
    kept.seldom_searched()
    server = LocalServer(application.unpacked, arguments.host, arguments.port, threads)
    base = server.url
    context.result(
        f"serving {context.reader.address}\n"
        f"  for people      {base}/\n"
        f"  for harvesters  {base}/oai?verb=Identify\n"
        "Ctrl-C ends it.",
        {"url": f"{base}/", "oai": f"{base}/oai"},
    )
    try:
        server.run()
    except KeyboardInterrupt:
        context.say("stopped")
    finally:
        server.close()
        repository.close()
    return 0
