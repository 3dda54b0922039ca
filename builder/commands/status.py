"""`sheaf status`."""

import argparse

from builder import intake
from builder.context import Context
from functions.snapshot import instant
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import Pointer
from functions.store.catalog import Catalogue


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: there are none of its own."""


def run(context: Context) -> int:
    """Say what is published and what waits to be published."""
    catalogue = Catalogue(context.store)
    pointer = catalogue.pointer()
    newest = pointer.newest()
    manifest = catalogue.manifest(newest.snapshot) if newest else None
    runs = list(intake.runs(context.store))
    context.result(_account(context, pointer, manifest, runs), _document(context, manifest, runs))
    return 0


def _account(
    context: Context, pointer: Pointer, manifest: Manifest | None, runs: list[intake.Run]
) -> str:
    lines = [f"store      {context.store.address}"]
    if manifest is None:
        lines.append("snapshot   none yet: run `sheaf ingest`, then `sheaf publish`")
    else:
        state = "in effect since" if manifest.effective <= context.now() else "in effect from"
        size = sum(leaf.bytes for leaves in manifest.tables.values() for leaf in leaves)
        lines += [
            f"snapshot   {manifest.snapshot}, {state} {instant.to_text(manifest.effective)}",
            f"records    {sum(manifest.kinds().values()):,} in {manifest.sets:,} sets, "
            f"from {len(manifest.sequences):,} publishes",
            f"data       {size:,} bytes in Parquet",
            f"sources    {manifest.rows('sources'):,} files, {manifest.rows('faults'):,} faults",
        ]
    captures = sum(source.captures for run_ in runs for source in run_.sources)
    lines.append(
        f"intake     {captures:,} captures in {len(runs):,} runs, not published yet"
        if runs
        else "intake     empty"
    )
    return "\n".join(lines)


def _document(
    context: Context, manifest: Manifest | None, runs: list[intake.Run]
) -> dict[str, object]:
    snapshot = manifest and {
        "snapshot": manifest.snapshot,
        "effective": instant.to_text(manifest.effective),
        "records": sum(manifest.kinds().values()),
        "kinds": dict(manifest.kinds()),
        "sets": manifest.sets,
        "publishes": len(manifest.sequences),
        "bytes": {t: sum(leaf.bytes for leaf in found) for t, found in manifest.tables.items()},
        "faults": manifest.rows("faults"),
        "sources": manifest.rows("sources"),
        "libraries": dict(manifest.libraries),
    }
    waiting = [
        {"run": run_.name, "captures": sum(s.captures for s in run_.sources)} for run_ in runs
    ]
    return {"store": context.store.address, "snapshot": snapshot, "intake": waiting}
