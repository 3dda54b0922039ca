"""`sheaf upgrade`."""

import argparse
from dataclasses import asdict
from pathlib import Path

from builder.context import Context
from builder.errors import UsageError
from builder.progress import ProgressBar, show_bytes
from builder.store.s3 import Store, open_store
from builder.store.web_store import WebStore
from builder.text import tally
from builder.upgrade.store_move import move
from builder.upgrade.upgrade import UpgradeResult, upgrade
from functions.snapshot.errors import VERSION


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--to",
        metavar="STORE",
        help="copy the store to this place, and upgrade the copy: a folder or s3://bucket/prefix",
    )


def run(context: Context) -> int:
    """Bring a store of an earlier release to the schema of this one.

    Items, datestamps, sets and resumption tokens stay as they are. Run it again after an
    interruption.
    """
    store = _target(context)
    memory = context.defaults["publish.memory"]
    done = upgrade(
        store, context.runtime(), memory, lambda what, total: ProgressBar(what, total, "B")
    )
    text = f"{store.address} has schema {VERSION}: {_describe(done)}"
    context.result(text, {"store": store.address, "to": VERSION, **asdict(done)})
    return 0


def _target(context: Context) -> Store:
    """Return the store to upgrade; with --to, after the copy."""
    source, to = context.store, context.arguments.to
    if to is None:
        if isinstance(source, WebStore):
            source.refuse_write()
        return source
    target = open_store(to, Path.cwd(), context.defaults, context.environment)
    if isinstance(target, WebStore):
        target.refuse_write()
    if f"{target.address}/".startswith(f"{source.address.rstrip('/')}/"):
        raise UsageError(f"{to} is inside the store: choose another place")
    copied = move(source, target, context.now(), show_bytes)
    if copied:
        context.say(f"{tally(copied, 'object')} copied to {target.address}")
    return target


def _describe(done: UpgradeResult) -> str:
    if done.is_empty:
        return "nothing to do"
    found = [
        tally(done.snapshots, "snapshot"),
        tally(done.files, "new data file"),
        tally(done.intake, "run") + " of the intake",
        tally(len(done.obi), "run") + " of the obi store",
    ]
    return ", ".join(found) + "; run `sheaf publish` next, and then `sheaf verify`"
