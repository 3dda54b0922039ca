"""`sheaf obi`."""

import argparse
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from builder.context import Context
from builder.errors import UsageError
from builder.http.url import normalise
from builder.obi import content, log
from builder.obi.claim import ObiRuntime
from builder.obi.content import Version
from builder.obi.history import Committed, OpenedRun, history, is_open, standing
from builder.obi.key import DAY_END, parse_tist
from builder.obi.log import ItemHistory
from builder.obi.report import (
    describe_absence,
    describe_item,
    describe_store,
    find_redirect_target,
    item_document,
    run_document,
)
from builder.obi.run import abandon
from builder.text import visible
from functions.database import engine
from functions.snapshot.errors import StoreError
from functions.snapshot.oai_name import canonical_handle
from functions.url import redirects
from functions.url.redirects import RedirectChainError

_IDENTIFIER = re.compile(r"oai:(?:[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z][A-Za-z0-9-]*)+:)?(.+)")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="a template's handle or OAI identifier, or a file's URL"
    )
    parser.add_argument(
        "--as-of", metavar="DATE", help="state at this time: a day (its end), an instant or a tist"
    )
    parser.add_argument("--bytes", metavar="FILE", help="write its bytes to this file; - is stdout")
    parser.add_argument(
        "--abandon", type=int, metavar="TIST", help="abandon an open run that will not be resumed"
    )


def run(context: Context) -> int:
    """Show the history of a template or file in the obi store.

    Without an argument, show a summary of the store. With --bytes, also write the stored bytes,
    after verifying their digest.
    """
    arguments = context.arguments
    if arguments.abandon is not None:
        return _abandon(context, arguments.abandon)
    if arguments.id is None:
        if arguments.as_of or arguments.bytes:
            raise UsageError("--as-of and --bytes need an ID")
        return _summary(context)
    if arguments.bytes == "-" and arguments.json:
        raise UsageError("--bytes - and --json both write to stdout: name a file")
    at = None if arguments.as_of is None else parse_tist(arguments.as_of, "--as-of", DAY_END)
    runs = history(context.store)
    found = _find_item(context, runs, arguments.id)
    if at is None:  # runs that follow each other within a second have times in the future
        at = max(int(context.now().timestamp()), runs[-1].tist)
    held = found.at(at)
    chain = _follow(context, found, at)
    if arguments.bytes:
        source = chain[-1].at(at) or held  # bytes of an earlier time are better than none
        if source is None:
            raise UsageError(visible(describe_absence(chain, at)))
        _write(context, source[1], arguments.bytes)
    if arguments.bytes != "-":
        context.result(describe_item(chain, at), item_document(chain, at))
    return 0


def _abandon(context: Context, tist: int) -> int:
    runtime = ObiRuntime(context.now, context.sleep, context.say)
    abandon(context.store, tist, "by `sheaf obi --abandon`", runtime)
    context.result(f"the run {tist} is abandoned: its changes are discarded", {"abandoned": tist})
    return 0


def _find_item(context: Context, runs: Sequence[Committed], given: str) -> ItemHistory:
    """Return the history of an item: by the key as given, by its normal form, or by its handle.

    The handle is that of an OAI identifier. Raises UsageError if no run has logged the item.
    """
    names = [given, normalise(given).id or canonical_handle(given)]
    if match := _IDENTIFIER.fullmatch(given):
        names.append(canonical_handle(unquote(match[1])))
    with _database() as (connection, scratch):
        for name in dict.fromkeys(names):
            found = log.read_history(connection, context.store, runs, scratch, name)
            if found.known:
                return found
    raise UsageError(
        f"the obi store has nothing of {visible(given)}: name a handle that was ingested, or a URL "
        "that was gathered"
    )


def _follow(context: Context, found: ItemHistory, at: int) -> list[ItemHistory]:
    """Return the item and, of a URL that was a redirect at a time, those that it led to.

    The item alone without an end, by a loop or too many redirects; with --bytes that raises
    UsageError.
    """
    seen = {found.id: found}

    def step(url: str) -> str | None:
        target = find_redirect_target(seen[url], at)
        if target is not None and target not in seen:
            seen[target] = _read_item(context, target)
        return target

    try:
        return [seen[url] for url in redirects.follow(found.id, step)]
    except RedirectChainError as error:
        if context.arguments.bytes:
            raise UsageError(visible(str(error))) from error
        return [found]


def _read_item(context: Context, name: str) -> ItemHistory:
    with _database() as (connection, scratch):
        return log.read_history(connection, context.store, history(context.store), scratch, name)


@contextmanager
def _database() -> Iterator[tuple[engine.Connection, Path]]:
    with (
        tempfile.TemporaryDirectory(prefix="sheaf-obi-") as folder,
        closing(engine.connect(scratch=Path(folder))) as connection,
    ):
        yield connection, Path(folder)


def _write(context: Context, version: Version, name: str) -> None:
    with closing(content.open_version(context.store, version)) as source:
        if name == "-":
            _copy(source, sys.stdout.buffer)
            return
        try:
            with Path(name).open("wb") as target:
                _copy(source, target)
        except OSError as error:
            raise StoreError(f"{name} cannot be written: {error.strerror}") from error


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    shutil.copyfileobj(source, target, 1 << 20)
    target.flush()


def _summary(context: Context) -> int:
    """Print a list of the store's runs with the counts of their logs."""
    store = context.store
    runs = history(store)
    unended = [
        OpenedRun.read(store, t) for t, members in standing(store).items() if is_open(members)
    ]
    counts: Counter[str] = Counter()
    for run_ in runs:
        counts.update(run_.counts)
    context.result(
        describe_store(store.address, runs, unended, counts),
        {
            "store": store.address,
            "runs": [run_document(run_) for run_ in runs],
            "open": [{"tist": one.tist, "kind": one.kind, "source": one.source} for one in unended],
            "rows": dict(sorted(counts.items())),
        },
    )
    return 0
