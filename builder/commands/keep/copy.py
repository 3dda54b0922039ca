"""`sheaf copy`."""

import argparse
from dataclasses import asdict
from pathlib import Path

from builder.arguments import declare
from builder.errors import UsageError
from builder.progress import show_bytes
from builder.publish.store_copy import export
from builder.store.context import Context
from builder.store.s3 import open_store
from builder.store.web_store import WebStore
from builder.text import tally


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "target STORE": "address of the copy: a folder or s3://bucket/prefix",
            "--newest": "copy only the newest snapshot",
        },
    )


def run(context: Context) -> int:
    """Copy the store to another place, or bring a copy up to date.

    Each object's content is verified. The intake is not copied.
    """
    arguments = context.arguments
    target = open_store(arguments.target, Path.cwd(), context.configuration, context.environment)
    if isinstance(target, WebStore):
        target.refuse_write()
    if target.address.startswith(f"{context.store.address.rstrip('/')}/"):
        raise UsageError(f"{arguments.target} is inside the store: choose another place")
    done = export(
        context.published_store(),
        target,
        context.runtime(),
        newest_only=arguments.newest,
        progress=show_bytes,
    )
    text = (
        f"{target.address} has {tally(len(done.snapshots), 'snapshot')} "
        f"up to {done.snapshots[-1]}: "
        f"{tally(done.objects, 'object')} copied ({tally(done.bytes, 'byte')}), "
        f"{tally(done.there, 'was there', 'were there')}"
    )
    if done.retired:
        text += f"; {tally(len(done.retired), 'snapshot')} retired there"
    context.result(text, {"store": context.store.address, "to": target.address, **asdict(done)})
    return 0
