"""`sheaf status`."""

import argparse
from contextlib import suppress

from builder.intake import intake
from builder.obi.history import Committed, find_ended, is_open, standing
from builder.snapshot import consistency, recovery
from builder.sources import SOURCES
from builder.store.context import Context
from builder.store.web_store import WebStore
from builder.text import tally
from functions.kinds import ROWS
from functions.snapshot import instant
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import Pointer
from functions.store.catalog import Catalogue

_SHOWN = 5  # snapshots, and ranges of retired ones
_WAITING = [source for source in SOURCES if source.noun]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments; this command has none of its own."""


def run(context: Context) -> int:
    """Show the published snapshot and the data waiting to be published."""
    catalogue = Catalogue(context.store)
    pointer, _ = recovery.current(context.store)
    newest = pointer.newest()
    manifest = catalogue.manifest(newest.snapshot) if newest else None
    manifests = []
    for number in consistency.kept_snapshots(pointer, manifest.skipped if manifest else ()):
        with suppress(MissingObject):  # retired meanwhile
            manifests.append(catalogue.manifest(number))
    is_web = isinstance(context.store, WebStore)
    runs = None if is_web else [r for r in intake.runs(context.store) if not r.published]
    waiting = []
    if runs is not None:
        shown = manifest.run if manifest else 0
        behind = (t for t, m in standing(context.store).items() if t > shown and not is_open(m))
        waiting = [r for tist in behind if (r := find_ended(context.store, tist)) is not None]
    obi = {
        "run": manifest.run if manifest else 0,
        "waiting": [{"run": run_.tist, "source": run_.source} for run_ in waiting],
    }
    lines = [_describe(context, pointer, manifests, runs), *_obi_lines(manifest, waiting)]
    document = _document(context, pointer, manifests, runs) | {"obi": obi}
    from builder.sources.harvest import night  # what follows is for aggregators alone
    from builder.sources.harvest.source import find_harvest_home

    names = [rule["name"] for rule in context.defaults["repositories"]]
    if rows := night.list_rows(find_harvest_home(context), names, context.now()):
        lines.append(night.make_table(rows))
        document["update"] = rows
    context.result("\n".join(lines), document)
    return 0


def _obi_lines(newest: Manifest | None, waiting: list[Committed]) -> list[str]:
    """Return a line about the obi store, if it holds anything."""
    if not waiting and not (newest and newest.run):
        return []
    shown = "nothing published yet"
    if newest and newest.run:
        templates = tally(newest.kinds().get("template", 0), "template")
        shown = f"{templates}, deleted ones included, shown up to the run {newest.run}"
    more = f"; {tally(len(waiting), 'run')} not published yet" if waiting else ""
    return [f"obi store  {shown}{more}"]


def _describe(
    context: Context,
    pointer: Pointer,
    manifests: list[Manifest],
    runs: list[intake.IntakeRun] | None,
) -> str:
    lines = [f"store      {context.store.address}"]
    lines += [f"id         {pointer.store}"] if pointer.store else []
    if not manifests:
        first = "" if runs else "`sheaf ingest` or `sheaf fileset`, then "
        lines.append(f"snapshot   none yet: run {first}`sheaf publish`")
    else:
        manifest = manifests[-1]
        state = "in effect since" if manifest.effective <= context.now() else "in effect from"
        size = sum(leaf.bytes for leaves in manifest.tables.values() for leaf in leaves)
        records, deleted = sum(manifest.kinds().values()), manifest.tombstones
        lines += [
            f"snapshot   {manifest.snapshot}, {state} {instant.to_text(manifest.effective)}",
            f"records    {records:,} in {tally(manifest.sets, 'set')}, "
            f"from {tally(len(manifest.sequences), 'publish', 'publishes')}",
            f"items      {records - deleted:,} present, {deleted:,} deleted",
            f"revisits   {manifest.revisits:,}, {manifest.unresolved:,} without an original",
            f"data       {tally(size, 'byte')} in Parquet",
            f"sources    {tally(manifest.rows('sources'), 'file')}, "
            f"{tally(manifest.rows('faults'), 'fault')}",
        ]
        kinds = manifest.kinds()
        for status in dict.fromkeys(kind.status for kind in ROWS if kind.status):
            own = [kind for kind in ROWS if kind.status == status]
            if count := sum(kinds.get(kind.name, 0) for kind in own):
                label, noun = status
                text = f"{tally(count, noun) if noun else f'{count:,}'}, deleted ones included"
                if any(kind.has_files for kind in own):
                    text += f"; {tally(manifest.rows('files'), 'file')} archived"
                lines.append(f"{label:10} {text}")
        lines.append(f"kept       {_snapshot_lines(manifests)}")
        retired = pointer.complete_expiry().retired
        if retired:
            spans = [f"{a}" if a == b else f"{a}-{b}" for a, b in retired[-_SHOWN:]]
            before = "..., " if len(retired) > _SHOWN else ""
            lines.append(f"retired    {before}{', '.join(spans)}")
    lines.append(f"intake     {_of_intake(runs)}")
    return "\n".join(lines)


def _of_intake(runs: list[intake.IntakeRun] | None) -> str:
    """Return a line about the runs of the intake; None if they cannot be listed."""
    if runs is None:
        return "not known: a web address has no listing"
    if not runs:
        return "empty"
    counts = ((source, sum(map(source.count, runs))) for source in _WAITING)
    parts = [tally(count, *source.noun) for source, count in counts if count]
    rows = " and ".join(parts) or tally(0, "capture")
    return f"{rows} in {tally(len(runs), 'run')}, not published yet"


def _snapshot_lines(manifests: list[Manifest]) -> str:
    """Return the number of snapshots, and the newest of them, one a line."""
    lines = [f"{m.snapshot} of {instant.to_text(m.effective)}" for m in reversed(manifests)]
    more = len(lines) - _SHOWN
    if more > 0:
        lines[_SHOWN:] = [f"and {tally(more, 'earlier one')}"]
    return "\n           ".join(lines)


def _document(
    context: Context,
    pointer: Pointer,
    manifests: list[Manifest],
    runs: list[intake.IntakeRun] | None,
) -> dict[str, object]:
    manifest = manifests[-1] if manifests else None
    snapshot = manifest and {
        "snapshot": manifest.snapshot,
        "effective": instant.to_text(manifest.effective),
        "records": sum(manifest.kinds().values()),
        "deleted": manifest.tombstones,
        "kinds": dict(manifest.kinds()),
        "revisits": manifest.revisits,
        "unresolved": manifest.unresolved,
        "sets": manifest.sets,
        "publishes": len(manifest.sequences),
        "bytes": {
            t: sum(leaf.bytes for leaf in references) for t, references in manifest.tables.items()
        },
        "faults": manifest.rows("faults"),
        "sources": manifest.rows("sources"),
        "libraries": dict(manifest.libraries),
    }
    waiting = (
        None
        if runs is None
        else [
            {"run": run_.name} | {kind.key: kind.count(run_) for kind in _WAITING if kind.key}
            for run_ in runs
        ]
    )
    return {
        "store": context.store.address,
        "id": pointer.store or None,
        "snapshot": snapshot,
        "kept": [
            {"snapshot": m.snapshot, "effective": instant.to_text(m.effective)} for m in manifests
        ],
        "retired": [list(span) for span in pointer.complete_expiry().retired],
        "intake": waiting,
    }
