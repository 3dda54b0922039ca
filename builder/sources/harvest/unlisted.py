"""Items that a full list no longer has: they are named, and end as deleted on request.

Repositories without persistent deletions drop items without a word (OAI-PMH 2.0, section 2.5.1).
Only a list that is proven whole ends items, and the rule of loss holds back many at once.
"""

from xml.sax.saxutils import escape

from builder.intake import loss
from builder.sources.harvest.folder import HarvestFolder
from builder.sources.harvest.state import (
    RunState,
)
from builder.sources.harvest.version import HarvestedRow
from builder.sources.harvest.window import HarvestDates, to_granularity
from builder.text import tally

VANISHED = "the repository no longer lists it"
"""The fault of a deletion that the repository did not send."""
_RECORD = (
    '<record xmlns="http://www.openarchives.org/OAI/2.0/"><header status="deleted">'
    "<identifier>{}</identifier><datestamp>{}</datestamp>{}</header></record>"
)


def end_unlisted(
    folder: HarvestFolder, run: RunState, dates: HarvestDates, proven: bool
) -> tuple[str, ...]:
    """Return the items that a full run did not list, and store their deletions if asked to.

    `proven` says that the list was whole. Raises HarvestError.
    """
    if not run.full or run.remade or run.since is not None or run.until is not None:
        return ()
    items = folder.find_unlisted(run.number)
    if not items:
        return ()
    many = f"{tally(len(items), 'record')} of earlier runs no longer listed"
    lost_all = not run.counts.distinct
    if not dates.remove_missing:
        run.note(f"{many}: --remove-missing deletes them")
    elif not proven:
        run.note(f"{many}, but not deleted: this list may have been incomplete")
    elif not dates.accept_loss and (lost_all or loss.is_held(len(items), folder.seen.count_live())):
        run.note(f"{many} at once, and not deleted: --accept-loss deletes them")
    else:
        stamp = to_granularity(run.began, folder.state.granularity) or ""
        for name, sets in items.items():
            specs = "".join(f"<setSpec>{escape(spec)}</setSpec>" for spec in sets)
            record = _RECORD.format(escape(name), stamp, specs)
            folder.add(
                HarvestedRow(name, stamp, True, sets, {}, record, run.dated, run.number, VANISHED)
            )
        run.counts.removed = len(items)
        run.note(f"{many}, and deleted")
    return tuple(items)
