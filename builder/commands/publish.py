"""`sheaf publish`."""

import argparse

from builder.context import Context
from builder.publish import publish
from builder.revision import Built
from builder.tally import tally
from functions.oai import trial
from functions.snapshot import instant


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: there are none of its own."""


def run(context: Context) -> int:
    """Publish what was ingested as the next snapshot."""
    digests = trial.digests(context.configuration)
    built = publish(context.store, context.configuration, context.surroundings(), digests)
    context.result(_account(built), _document(built))
    return 0


def _account(built: Built) -> str:
    if built.manifest is None:
        return "nothing new to publish; " + tally(
            built.records, "record is as it was", "records are as they were"
        )
    account = (
        f"snapshot {built.manifest.snapshot} of {instant.to_text(built.manifest.effective)}: "
        f"{tally(built.records, 'record')} in {tally(built.manifest.sets, 'set')} "
        f"({built.new:,} new, {built.changed:,} changed, {built.unchanged:,} ingested again, "
        f"{tally(built.copies, 'further copy', 'further copies')}; "
        f"{tally(built.faults, 'new fault')})"
    )
    manifest = built.manifest
    if manifest.revisits:
        account += (
            f"\n{tally(manifest.revisits, 'revisit')}, {manifest.unresolved:,} of them without an "
            f"original; {built.moved:,} that were published before have another original now"
        )
    return account


def _document(built: Built) -> dict[str, object]:
    manifest = built.manifest
    return {
        "snapshot": manifest.snapshot if manifest else None,
        "effective": instant.to_text(manifest.effective) if manifest else None,
        "records": built.records,
        "new": built.new,
        "changed": built.changed,
        "unchanged": built.unchanged,
        "copies": built.copies,
        "faults": built.faults,
        "revisits": manifest.revisits if manifest else None,
        "unresolved": manifest.unresolved if manifest else None,
        "moved": built.moved,
    }
