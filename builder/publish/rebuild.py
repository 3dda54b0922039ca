"""Rebuild: publishes and withdrawals of templates that the obi store has records of, made again.

A store can be rebuilt from its folder `obi/` alone. The records are replayed at their instants, so
all templates get their datestamps again, and those that were deleted are tombstones again.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import repeat

from builder.obi import publishes
from builder.obi.history import history
from builder.obi.publishes import PUBLISH, WITHDRAW, PublishRecord
from builder.publish.publish import IntakeChange, publish
from builder.runtime import Runtime
from builder.snapshot.transaction import Change, ChangeResult, NothingSelectedError, revise
from builder.text import tally
from functions.config.configuration import Configuration
from functions.oai.render import check
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue


def publish_formats(
    store: Writer, configuration: Configuration, runtime: Runtime, *, redate: bool = False
) -> ChangeResult:
    """Publish (see publish.publish) with the offered formats, after what a lost store had.

    Raises also ConfigurationError for a faulty format.
    """
    formats = check.digests(configuration)
    rebuild(store, configuration, runtime, formats)
    return publish(store, configuration, runtime, formats, redate=redate)


def rebuild(
    store: Writer, configuration: Configuration, runtime: Runtime, formats: Mapping[str, str]
) -> int:
    """Publish again what the records say that was published after the newest snapshot.

    Returns the number of records. That is 0 unless the store lost its snapshots. An interrupted
    rebuild continues. Raises DamagedStore if a run of a record is missing.
    """
    newest = Catalogue(store).pointer().newest()
    left = publishes.read_records(store, newest.effective if newest else None)
    if not left:
        return 0
    runtime.say(f"publishing again {tally(len(left), 'change')} of the templates, at their dates")
    runs = {run.tist: run.digest for run in history(store)}
    for record in left:
        if record.kind == PUBLISH and runs.get(record.run) != record.digest:
            raise DamagedStore(
                f"{record.key} names the run {record.run}, which is missing or was edited: restore "
                "it from a copy, or remove the record to give its changes a new date"
            )
    lead = timedelta(seconds=configuration["publish.lead"])
    counts = Counter(record.effective for record in left)
    for record in left:
        change = _change(store, configuration, runtime, formats, record)
        # Two snapshots cannot have one instant, so of several records the last one gets it.
        later = timedelta(seconds=counts[record.effective] - record.number)
        now = record.effective - later - lead
        then = replace(runtime, clock=repeat(now).__next__, sleep=lambda seconds: None)
        try:
            revise(store, configuration, then, change)
        except NothingSelectedError:
            continue  # the items were not templates, and are not there
    return len(left)


def _change(
    store: Writer,
    configuration: Configuration,
    runtime: Runtime,
    formats: Mapping[str, str],
    record: PublishRecord,
) -> Change:
    if record.kind == PUBLISH:
        return IntakeChange(store, configuration, runtime, formats, record.run)
    from builder.publish.reinstate import Reinstatement
    from builder.publish.selection import Selection
    from builder.publish.withdraw import Withdrawal

    selection = Selection(identifiers=record.identifiers)
    if record.kind == WITHDRAW:
        return Withdrawal(selection, record.reason)
    return Reinstatement(selection)
