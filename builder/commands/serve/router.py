"""`sheaf router`."""

import argparse
from pathlib import Path

from builder.arguments import declare
from builder.serve.routers import FILES, write_router
from builder.store.context import Context


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    rows = {
        "file FILE": "; ".join(f"{name}: {meaning}" for name, meaning in FILES.items()),
        "--root DIR": "the folder of the site, as the server sees it",
        "--base URL": "the base URL, if it is another than that of the site's files",
        "--port PORT": "the port to listen at",
    }
    declare(
        parser,
        rows,
        file={"choices": [*FILES]},
        root={"default": "site"},
        port={"default": 80},
    )


def run(context: Context) -> int:
    """Print FILE of a router, by which another server answers from a site.

    The router reads what is in the folder at each request, so that a publish changes only files.
    """
    arguments = context.arguments
    root = Path(arguments.root).absolute()
    text = write_router(arguments.file, root, arguments.base or "", arguments.port)
    context.result(text.rstrip("\n"), {"file": arguments.file, "text": text})
    return 0
