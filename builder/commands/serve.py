"""`sheaf serve`."""

import argparse

from builder import recovery
from builder.context import Context
from builder.errors import UsageError
from builder.server import LocalServer
from functions.oai.duck import DuckRepository
from functions.oai.handler import Application
from functions.snapshot.errors import NothingPublished


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
    parser.add_argument("--port", type=int, default=8080, help="port to listen at; 0 for any")
    parser.add_argument("--threads", type=int, default=4, help="requests to answer side by side")


def run(context: Context) -> int:
    """Serve OAI-PMH at /oai and a page for people at /, until interrupted."""
    arguments = context.arguments
    if arguments.threads < 1:
        raise UsageError(f"--threads {arguments.threads}: expected a number from 1")
    repository = DuckRepository(context.reader)
    newest = repository.pointer().newest()
    if newest is None:
        recovery.check_store(context.store)
        raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")
    repository.manifest(newest.snapshot)  # a damaged or newer store is told of now, not later
    application = Application(repository, context.configuration, context.now)
    server = LocalServer(application, arguments.host, arguments.port, arguments.threads)
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
