"""Exports records as JSON lines or OAI-PMH documents, complete or as a difference.

The parts are written beside the target, and the target appears once all are complete. An
interrupted export leaves nothing behind: it starts again.
"""

import argparse
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from builder.arguments import declare
from builder.errors import UsageError
from builder.exports import staging
from builder.outputs.dumps import manifest as manifests
from builder.outputs.dumps import parts
from builder.outputs.dumps.formats import DumpFormats
from builder.outputs.dumps.manifest import DumpManifest
from builder.outputs.dumps.parts import PartLimits, write_parts
from builder.outputs.dumps.selection import DumpSelection, Since, read_pages
from builder.progress import ProgressBar
from builder.store.context import Context
from builder.text import tally
from functions.kinds import KINDS
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import Repository
from functions.snapshot import instant
from functions.snapshot.errors import ConfigurationError, MissingObject
from functions.snapshot.manifest import Manifest
from functions.store.slice import open_reader

_ROWS = 64 << 20
"""Bytes of rows in memory."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that all formats share."""
    meanings = {
        "dir DIR": "folder to create",
        "--set SPEC": "only records of this set and its subsets",
        "--kind KIND": "only this kind",
        "--since SNAPSHOT|DATE": "only what changed after this snapshot (a number), or from this "
        "datestamp on",
        "--compression NAME": "of the parts (default: zstd)",
        "--part-records N": f"largest number of records in a part (default: {parts.RECORDS:,})",
        "--part-bytes N": f"largest part in bytes, before compression (default: {parts.BYTES:,})",
    }
    declare(
        parser,
        meanings,
        kind={"choices": KINDS},
        compression={"choices": parts.COMPRESSIONS, "default": "zstd", "metavar": None},
        part_records={"default": parts.RECORDS},
        part_bytes={"default": parts.BYTES},
    )


def export(context: Context, name: str) -> int:
    """Write the records in the format `name` to the new folder of the arguments.

    Raises UsageError, NothingPublished and StoreError.
    """
    arguments, settings = context.arguments, context.configuration
    limits = PartLimits(arguments.part_records, arguments.part_bytes)
    if min(limits.records, limits.bytes) < 1:
        raise UsageError("--part-records and --part-bytes: expected numbers from 1")
    target = staging.new_folder_path(context.store, arguments.dir)
    formats = DumpFormats.of(settings)
    reader = open_reader(*context.store_uri(), settings, context.reading_environment)
    with closing(DuckRepository(reader, _ROWS, ahead=True)) as repository:
        manifest = repository.manifest(repository.pointer().at(context.now()).snapshot)
        formats = formats.of_snapshot(manifest)
        selection = _select(context, repository, manifest, formats, name)
        format_ = formats.open(name, selection)
        count = repository.size(manifest, selection.records)
        with staging.beside(target) as scratch, staging.wrap_errors(target):
            folder = scratch / "made"
            folder.mkdir()
            pages = read_pages(repository, selection, format_.fields)
            with ProgressBar("exporting", count, " records") as advance:
                written = write_parts(
                    pages, format_, folder, arguments.compression, limits, advance
                )
                listed = [part.part for part in written]
            document = DumpManifest(
                settings["repository.name"],
                name,
                arguments.compression,
                selection,
                manifest.snapshot,
                manifest.effective,
                listed,
                arguments.kind,
            )
            (folder / manifests.FILE).write_bytes(document.to_json())
            staging.sync()
            folder.rename(target)
    return _report(context, document, target)


def _report(context: Context, document: DumpManifest, target: Path) -> int:
    records, deleted, size = (
        sum(getattr(part, name) for part in document.parts)
        for name in ("records", "deleted", "bytes")
    )
    text = (
        f"{tally(records, 'record')} of snapshot {document.snapshot}, {deleted:,} of them deleted, "
        f"in {tally(len(document.parts), 'part')}"
    )
    report = {
        "store": context.store.address,
        "dir": str(target),
        "format": document.format,
        "snapshot": document.snapshot,
        "records": records,
        "deleted": deleted,
        "bytes": size,
        "parts": len(document.parts),
    }
    context.result(f"{target}: {text}", report)
    return 0


def _select(
    context: Context, repository: Repository, manifest: Manifest, formats: DumpFormats, name: str
) -> DumpSelection:
    """Return the selection of the arguments. Raises UsageError."""
    arguments = context.arguments
    try:
        kinds: Sequence[str] = formats.kinds(name)
    except ConfigurationError as error:
        raise UsageError(f"--format: {error}") from error
    if arguments.kind is not None:
        if arguments.kind not in kinds:
            raise UsageError(f"--kind {arguments.kind}: these items have no format {name}")
        kinds = (arguments.kind,)
    if arguments.set is not None and not repository.has_set(manifest, arguments.set):
        raise UsageError(f"--set {arguments.set}: there is no such set in this store")
    since = _find_since(repository, manifest, arguments.since)
    prefix = name if name in manifest.formats else ""
    return DumpSelection.of(manifest, kinds, arguments.set, since, prefix)


def _find_since(repository: Repository, newest: Manifest, text: str | None) -> Since | None:
    """Return where the difference begins by the argument. Raises UsageError."""
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()):
        start = instant.from_datestamp(text)
        if start is None:
            raise UsageError(
                f"--since {text}: expected the number of a snapshot, or a date such as 2026-01-31 "
                "or 2026-01-31T12:00:00Z"
            )
        return Since(start)
    number = int(text)
    if not 0 < number <= newest.snapshot or number in newest.skipped:
        raise UsageError(
            f"--since {text}: there was no such snapshot; the newest is {newest.snapshot}"
        )
    try:
        return Since.after(repository.manifest(number).effective, number)
    except MissingObject:
        # It was retired. Each snapshot since added at most one sequence; the rest was in it.
        since = sum(later not in newest.skipped for later in range(number + 1, newest.snapshot + 1))
        sequences = newest.sequences[: max(0, len(newest.sequences) - since)]
        return Since.after(
            sequences[-1].effective if sequences else newest.earliest - timedelta(seconds=1), number
        )
