"""`sheaf obi`."""

import argparse
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

from builder.arguments import declare
from builder.errors import UsageError, explaining
from builder.http.url import normalise
from builder.obi import content, log
from builder.obi.claim import ObiRuntime
from builder.obi.content import (
    ExchangeRow,
    FailureRow,
    Incidence,
    Redirect,
    Row,
    SeenRow,
    Version,
)
from builder.obi.history import Committed, OpenedRun, history, is_open, standing
from builder.obi.key import DAY_END, parse_tist
from builder.obi.log import ItemHistory
from builder.obi.run import abandon
from builder.store.context import Context
from builder.text import tally, visible
from functions.snapshot import instant, redirects
from functions.snapshot.errors import StoreError
from functions.snapshot.oai_name import canonical_handle
from functions.snapshot.redirects import RedirectChainError
from functions.store import engine

_IDENTIFIER = re.compile(r"oai:(?:[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z][A-Za-z0-9-]*)+:)?(.+)")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "id [ID]": "a template's handle or OAI identifier, or a file's URL",
            "--as-of DATE": "state at this time: a day (its end), an instant or a tist",
            "--bytes FILE": "write its bytes to this file; - is stdout",
            "--abandon TIST": "abandon an open run that will not be resumed",
        },
    )


def run(context: Context) -> int:
    """Show the history of a template or file in the obi store.

    Without an argument, show a summary of the store. With --bytes, also write the stored bytes,
    after verifying their digest.
    """
    arguments = context.arguments
    if arguments.abandon is not None:
        runtime = ObiRuntime(context.now, context.sleep, context.say)
        tist = arguments.abandon
        abandon(context.store, tist, "by `sheaf obi --abandon`", runtime)
        text = f"the run {tist} is abandoned: its changes are discarded"
        context.result(text, {"abandoned": tist})
        return 0
    if arguments.id is None:
        if arguments.as_of or arguments.bytes:
            raise UsageError("--as-of and --bytes need an ID")
        return _summary(context)
    if arguments.bytes == "-" and arguments.json:
        raise UsageError("--bytes - and --json both write to stdout: name a file")
    at = None if arguments.as_of is None else parse_tist(arguments.as_of, "--as-of", DAY_END)
    runs = history(context.store)
    item = _find_item(context, runs, arguments.id)
    if at is None:  # runs that follow each other within a second have times in the future
        at = max(int(context.now().timestamp()), runs[-1].tist)
    version = item.at(at)
    chain = _follow(context, item, at)
    if arguments.bytes:
        source = chain[-1].at(at) or version  # bytes of an earlier time are better than none
        if source is None:
            raise UsageError(visible(describe_absence(chain, at)))
        _write(context, source[1], arguments.bytes)
    if arguments.bytes != "-":
        context.result(describe_item(chain, at), item_document(chain, at))
    return 0


def _find_item(context: Context, runs: Sequence[Committed], name: str) -> ItemHistory:
    """Return the history of an item: by the key as given, by its normal form, or by its handle.

    The handle is that of an OAI identifier. Raises UsageError if no run has logged the item.
    """
    names = [name, normalise(name).id or canonical_handle(name)]
    if match := _IDENTIFIER.fullmatch(name):
        names.append(canonical_handle(unquote(match[1])))
    with _database() as (connection, scratch):
        for candidate in dict.fromkeys(names):
            item = log.read_history(connection, context.store, runs, scratch, candidate)
            if item.is_known:
                return item
    raise UsageError(
        f"the obi store has nothing of {visible(name)}: name a handle that was ingested, or a URL "
        "that was gathered"
    )


def _follow(context: Context, item: ItemHistory, at: int) -> list[ItemHistory]:
    """Return the item and, of a URL that was a redirect at a time, those that it led to.

    The item alone without an end, by a loop or too many redirects; with --bytes that raises
    UsageError.
    """
    seen = {item.id: item}

    def step(url: str) -> str | None:
        target = find_redirect_target(seen[url], at)
        if target is not None and target not in seen:
            with _database() as (connection, scratch):
                runs = history(context.store)
                seen[target] = log.read_history(connection, context.store, runs, scratch, target)
        return target

    try:
        return [seen[url] for url in redirects.follow(item.id, step)]
    except RedirectChainError as error:
        if context.arguments.bytes:
            raise UsageError(visible(str(error))) from error
        return [item]


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
        with explaining(name, "written", StoreError), Path(name).open("wb") as target:
            _copy(source, target)


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
            "open": [
                {"tist": opened.tist, "kind": opened.kind, "source": opened.source}
                for opened in unended
            ],
            "rows": dict(sorted(counts.items())),
        },
    )
    return 0


_SHOWN = 5  # runs


def describe_item(chain: Sequence[ItemHistory], at: int) -> str:
    """Return the history of an item, and its bytes at a time, as lines of text."""
    item, version = chain[0], chain[0].at(at)
    lines = [item.id]
    for tist, row in item.events():
        lines.append(f"  {_text(tist)}  {_row_text(row, item.id)}")
    blocks = item.blocks()
    for _, block in blocks:
        other = block.url if block.handle == item.id else block.handle
        lines.append(f"  {'file' if block.handle == item.id else 'named by'}  {other}")
    led = "".join(f": redirected to {target.id}" for target in chain[1:])
    if version is None:
        lines.append(f"absent at {_text(at)}{led}")
    else:
        lines.append(_held_text(version, at) + led)
    if led and (end := chain[-1].at(at)):
        lines.append(f"  {_held_text(end, at)}")
    return "\n".join(map(visible, lines))


def _held_text(dated: tuple[int, Version], at: int) -> str:
    tist, version = dated
    return f"at {_text(at)}: {tally(version.bytes, 'byte')} of {_text(tist)}, {version.key}"


def describe_absence(chain: Sequence[ItemHistory], at: int) -> str:
    """Return why there are no bytes."""
    first, last = chain[0].id, chain[-1].id
    if first != last:
        return f"{first} led to {last} at {_text(at)}, which has no bytes of that time"
    return f"{first} was absent at {_text(at)}: `sheaf obi ID` shows its history"


def find_redirect_target(item: ItemHistory, at: int) -> str | None:
    """Return the target of a URL at a time, if a redirect is the last that it was seen as."""
    last: Row | None = None
    for tist, row in item.rows:
        own = getattr(row, "id", getattr(row, "origin", None)) == item.id
        if tist <= at and own and isinstance(row, Version | SeenRow | Redirect):
            last = row
    return last.target if isinstance(last, Redirect) else None


def _row_text(row: Row, own: str) -> str:
    if isinstance(row, Version):
        text = f"version     {tally(row.bytes, 'byte')}, sha256 {row.sha256}"
        return ", ".join((text, *row.flags))
    if isinstance(row, Incidence):
        return f"{row.what:<10}  again" if row.again else row.what
    if isinstance(row, Redirect):
        to = f"to {row.target}" if row.origin == own else f"from {row.origin}"
        return f"redirect    {row.status} {to}"
    if isinstance(row, FailureRow):
        return f"failure     {row.code}" + (f": {reason}" if (reason := _failure_text(row)) else "")
    if isinstance(row, ExchangeRow):
        return f"captured    {_text(row.at)}, HTTP status {row.status}"
    return str(row)


def _failure_text(failure: FailureRow) -> str:
    """Return the status of a failure and its detail, without repeating the status."""
    status, detail = failure.status, failure.detail or ""
    if status is None or str(status) in detail.split():
        return detail
    return f"HTTP status {status}" + (f", {detail}" if detail else "")


def item_document(chain: Sequence[ItemHistory], at: int) -> dict[str, Any]:
    """Return the same as JSON."""
    item, version, end = chain[0], chain[0].at(at), chain[-1].at(at)
    return {
        "id": item.id,
        "events": [{"tist": t, "row": row.row, **asdict(row)} for t, row in item.events()],
        "files": [{"tist": t, **asdict(block)} for t, block in item.blocks()],
        "as_of": at,
        "version": version and {"tist": version[0], **asdict(version[1])},
        "redirected": [target.id for target in chain[1:]],
        "target": None if len(chain) == 1 or not end else {"tist": end[0], **asdict(end[1])},
    }


def describe_store(
    address: str, runs: tuple[Committed, ...], unended: list[OpenedRun], counts: Counter[str]
) -> str:
    """Return the runs of a store, the open ones, and the counts of its rows as lines of text."""
    lines = [f"store      {address}", f"runs       {tally(len(runs), 'run')}"]
    lines += [
        f"           {run_.tist} of {_text(run_.time)}: {run_.kind} of {run_.source}"
        for run_ in reversed(runs[-_SHOWN:])
    ]
    if len(runs) > _SHOWN:
        lines.append(f"           and {tally(len(runs) - _SHOWN, 'earlier one')}")
    lines += [
        f"open       {opened.name()}; `sheaf obi --abandon {opened.tist}` ends it"
        for opened in unended
    ]
    lines += [f"{name:<10} {tally(count, 'row')}" for name, count in sorted(counts.items())]
    return "\n".join(map(visible, lines))


def run_document(run_: Committed) -> dict[str, Any]:
    """Return a run as JSON."""
    return {
        "tist": run_.tist,
        "time": run_.time,
        "kind": run_.kind,
        "source": run_.source,
        "begun": instant.to_text(run_.begun),
        "committed": instant.to_text(run_.committed),
        "rows": dict(run_.counts),
    }


def _text(tist: int) -> str:
    return instant.to_text(datetime.fromtimestamp(tist, UTC))
