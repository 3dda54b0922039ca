"""Reports: the history of an item and the runs of a store, as text and as JSON.

A chain is the history of an item and, if it is a URL that redirects, those of the URLs it led to.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from builder.obi.content import (
    ExchangeRow,
    FailureRow,
    Incidence,
    Redirect,
    Row,
    SeenRow,
    Version,
)
from builder.obi.history import Committed, OpenedRun
from builder.obi.log import ItemHistory
from builder.text import tally, visible
from functions.snapshot import instant

_SHOWN = 5  # runs


def describe_item(chain: Sequence[ItemHistory], at: int) -> str:
    """Return the history of an item, and its bytes at a time, as lines of text."""
    found, held = chain[0], chain[0].at(at)
    lines = [found.id]
    for tist, row in found.events():
        lines.append(f"  {_text(tist)}  {_row_text(row, found.id)}")
    blocks = found.blocks()
    for _, block in blocks:
        other = block.url if block.handle == found.id else block.handle
        lines.append(f"  {'file' if block.handle == found.id else 'named by'}  {other}")
    led = "".join(f": redirected to {one.id}" for one in chain[1:])
    if held is None:
        lines.append(f"absent at {_text(at)}{led}")
    else:
        lines.append(_held_text(held, at) + led)
    if led and (end := chain[-1].at(at)):
        lines.append(f"  {_held_text(end, at)}")
    return "\n".join(map(visible, lines))


def _held_text(held: tuple[int, Version], at: int) -> str:
    tist, version = held
    return f"at {_text(at)}: {tally(version.bytes, 'byte')} of {_text(tist)}, {version.key}"


def describe_absence(chain: Sequence[ItemHistory], at: int) -> str:
    """Return why there are no bytes."""
    found, last = chain[0].id, chain[-1].id
    if found != last:
        return f"{found} led to {last} at {_text(at)}, which has no bytes of that time"
    return f"{found} was absent at {_text(at)}: `sheaf obi ID` shows its history"


def find_redirect_target(found: ItemHistory, at: int) -> str | None:
    """Return the target of a URL at a time, if a redirect is the last that it was seen as."""
    last: Row | None = None
    for tist, row in found.rows:
        own = getattr(row, "id", getattr(row, "origin", None)) == found.id
        if tist <= at and own and isinstance(row, Version | SeenRow | Redirect):
            last = row
    return last.target if isinstance(last, Redirect) else None


def _row_text(row: Row, own: str) -> str:
    if isinstance(row, Version):
        told = f"version     {tally(row.bytes, 'byte')}, sha256 {row.sha256}"
        return ", ".join((told, *row.flags))
    if isinstance(row, Incidence):
        return f"{row.what:<10}  again" if row.again else row.what
    if isinstance(row, Redirect):
        to = f"to {row.target}" if row.origin == own else f"from {row.origin}"
        return f"redirect    {row.status} {to}"
    if isinstance(row, FailureRow):
        return f"failure     {row.code}" + (f": {said}" if (said := _failure_text(row)) else "")
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
    found, held, end = chain[0], chain[0].at(at), chain[-1].at(at)
    return {
        "id": found.id,
        "events": [{"tist": t, "row": row.row, **asdict(row)} for t, row in found.events()],
        "files": [{"tist": t, **asdict(block)} for t, block in found.blocks()],
        "as_of": at,
        "version": held and {"tist": held[0], **asdict(held[1])},
        "redirected": [one.id for one in chain[1:]],
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
        f"open       {one.name()}; `sheaf obi --abandon {one.tist}` ends it" for one in unended
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
