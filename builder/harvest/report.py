"""Reports of harvests, as text and as JSON. Pure."""

from collections.abc import Sequence

from builder.display import tally
from builder.harvest.run import HarvestResult
from builder.harvest.state import COMPLETE, LOST, PARTIAL
from builder.terminal import visible

_SHOWN = 10


def text(outcome: HarvestResult) -> str:
    """Return the report of one harvest: one line, and more lines for faults and remarks."""
    counts = outcome.counts
    if not outcome.number:
        return (
            visible(f"{outcome.order.named}: nothing came") + f"\n  {visible(outcome.error or '')}"
        )
    said = [f"{counts.new:,} new", f"{counts.changed + counts.another:,} changed"]
    if counts.same:
        said.append(f"{counts.same:,} as before")
    if counts.deleted:
        said.append(f"{counts.deleted:,} of them deleted")
    if counts.mended:
        said.append(f"{counts.mended:,} mended")
    head = "complete" if outcome.status == COMPLETE else outcome.status
    lines = [
        f"{outcome.order.named}: {head}: {tally(counts.distinct, 'record')} "
        f"({', '.join(said)}) in {tally(counts.pages, 'page')}, run {outcome.number}"
    ]
    lines += [f"  {note}" for note in outcome.notes]
    if counts.lost:
        lines.append(f"  {tally(counts.lost, 'record')} could not be harvested:")
        lines += [f"    {identifier or '?'}: {why}" for identifier, why in outcome.lost[:_SHOWN]]
        if counts.lost > _SHOWN:
            where = "harvest.json names them" if counts.lost <= LOST else "harvest.json names some"
            lines.append(f"    and {counts.lost - _SHOWN:,} more: {where}")
    if outcome.error is not None:
        lines.append(f"  {outcome.error}")
        if outcome.status == PARTIAL:
            lines.append("  run the command again to continue")
    return "\n".join(visible(line) for line in lines)


def to_json(outcome: HarvestResult) -> dict[str, object]:
    """Return the report that --json prints."""
    counts = outcome.counts
    return {
        "base_url": outcome.order.base_url,
        "prefix": outcome.order.prefix,
        "set": outcome.order.set,
        "folder": str(outcome.folder),
        "run": outcome.number,
        "status": outcome.status,
        "records": counts.distinct,
        "new": counts.new,
        "changed": counts.changed + counts.another,
        "same": counts.same,
        "again": counts.again,
        "deleted": counts.deleted,
        "mended": counts.mended,
        "pages": counts.pages,
        "rows": outcome.rows,
        "lost": counts.lost,
        "outside": counts.outside,
        "later": counts.later,
        "missing": [{"identifier": one, "why": why} for one, why in outcome.lost],
        "notes": list(outcome.notes),
        "error": outcome.error,
    }


def is_incomplete(outcomes: Sequence[HarvestResult]) -> bool:
    """Return whether any requested record is missing."""
    return not all(outcome.is_whole for outcome in outcomes)
