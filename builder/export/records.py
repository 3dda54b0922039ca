"""The exports `jsonl` and `oai`: dumps of the newest snapshot, complete or since an earlier one."""

import argparse
import re
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta

from builder.context import Context
from builder.errors import UsageError
from builder.export import dump, staging
from builder.export.dump import DumpFormat
from builder.export.obi_source import target_path
from builder.progress import Phase
from builder.text import tally
from functions.oai.answer import Answer, Content, ErrorList, RecordList
from functions.oai.render import check
from functions.oai.repository import PublishedRecord, Repository
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.oai.request import LIST_RECORDS, NO_RECORDS, OaiFault
from functions.snapshot import instant
from functions.snapshot.errors import NothingPublished
from functions.snapshot.manifest import Manifest
from functions.store.slice import open_reader

LINES, PAGES = 1_000_000, 10_000
"""Records of a part: JSON lines, and one document of OAI-PMH, which is in memory."""
_ROWS = 64 << 20
"""Bytes of rows in memory."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def add_options(parser: argparse.ArgumentParser, part: int) -> None:
    """Declare the arguments that both exports have."""
    parser.add_argument("dir", metavar="DIR", help="folder to create")
    parser.add_argument("--set", metavar="SPEC", help="records of this set and its subsets")
    parser.add_argument(
        "--since", metavar="SNAPSHOT|DATE",
        help="only what changed after a snapshot, or since a date; deletions are told",
    )  # fmt: skip
    parser.add_argument(
        "--part", type=int, default=part, metavar="N", help=f"records of a file (default: {part:,})"
    )
    parser.add_argument(
        "--compression", choices=dump.CODINGS, default="zstd", help="of the files (default: zstd)"
    )


def export(context: Context, prefix: str | None) -> int:
    """Write a dump as JSON lines or, with a metadata prefix, as documents of OAI-PMH."""
    arguments, settings = context.arguments, context.configuration
    if arguments.part < 1:
        raise UsageError(f"--part {arguments.part}: expected a number from 1")
    target = target_path(context.store, arguments.dir)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} is not an empty folder: name a new one")
    reader = open_reader(*context.store_uri(), settings, context.reading_environment)
    with closing(DuckRepository(reader, _ROWS, ahead=True)) as repository:
        manifest = _newest(context, repository)
        since = _parse_since(arguments.since, manifest, repository)
        form, kinds = _choose(context, manifest, prefix)
        if arguments.set and not repository.has_set(manifest, arguments.set):
            raise UsageError(f"there is no set {arguments.set} in snapshot {manifest.snapshot}")
        selection = dump.select_records(manifest, kinds, arguments.set, since, prefix or "")
        size = 0 if selection.is_empty else repository.size(manifest, selection)
        with staging.beside(target) as folder, staging.wrap_errors(target):
            made = folder / "made"
            made.mkdir()
            with Phase("exporting", size, " records") as advance:
                parts = dump.write_parts(
                    repository, manifest, selection, form, made, arguments.compression,
                    arguments.part, advance,
                )  # fmt: skip
            told = {
                "repository": settings["repository.name"],
                "format": prefix or "jsonl",
                "set": arguments.set,
                "since": since and instant.to_text(since),
                "compression": arguments.compression,
            }
            dump.write_manifest(made, manifest, parts, told)
            staging.sync()
            made.rename(target)
    records, deleted = (sum(getattr(p, name) for p in parts) for name in ("records", "deleted"))
    text = (
        f"{tally(records, 'record')}, of them {deleted:,} deleted, in {tally(len(parts), 'file')}"
    )
    counts = {"snapshot": manifest.snapshot, "records": records, "deleted": deleted}
    document = {"store": context.store.address, form.name: str(target), **counts}
    context.result(f"{target}: {text}", {**document, "files": len(parts)})
    return 0


def _newest(context: Context, repository: Repository) -> Manifest:
    pointer = repository.pointer()
    if not pointer.entries:
        raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")
    return repository.manifest(pointer.at(context.now()).snapshot)


def _parse_since(text: str | None, manifest: Manifest, repository: Repository) -> datetime | None:
    """Return the first datestamp that the dump has. Raises UsageError."""
    if text is None:
        return None
    if text.isdecimal():
        return _after(int(text), manifest, repository)
    try:
        return instant.from_text(f"{text}T00:00:00Z" if _DAY.fullmatch(text) else text)
    except ValueError as error:
        raise UsageError(
            f"--since {text}: expected a snapshot's number, or a date such as 2026-03-01 or "
            "2026-03-01T12:00:00Z"
        ) from error


def _after(snapshot: int, manifest: Manifest, repository: Repository) -> datetime:
    """Return the first datestamp behind a snapshot, which may be retired. Raises UsageError."""
    if not 0 < snapshot <= manifest.snapshot or snapshot in manifest.skipped:
        raise UsageError(
            f"--since {snapshot}: there was no such snapshot; the newest is {manifest.snapshot}"
        )
    if not repository.pointer().is_retired(snapshot):
        effective = repository.manifest(snapshot).effective
    else:
        before = [s.effective for s in manifest.sequences if s.number <= snapshot]
        effective = max(before, default=manifest.earliest - timedelta(seconds=1))
    return effective + timedelta(seconds=1)


def _choose(
    context: Context, manifest: Manifest, prefix: str | None
) -> tuple[DumpFormat, Sequence[str]]:
    """Return the form of the records, and the kinds that have it. Raises UsageError."""
    if prefix is None:
        return DumpFormat("records", ".jsonl", dump.frame_lines), tuple(manifest.kinds())
    settings = context.configuration
    formats, renderer = check.open_formats(settings.relative_to(context.configuration_path.parent))
    row = formats.get(prefix)
    if row is None:
        offered = ", ".join(one.prefix for one in formats.rows)
        raise UsageError(f"there is no metadata format {prefix}; there are {offered}")
    base = settings["repository.base_url"] or f"https://{manifest.namespace}/oai"
    arguments = (("verb", LIST_RECORDS), ("metadataPrefix", prefix))

    def frame(records: Sequence[PublishedRecord]) -> bytes:
        since = manifest.since(row.prefix)
        content: Content = RecordList(records, row, None, manifest.snapshot, since=since)
        if not records:
            content = ErrorList((OaiFault(NO_RECORDS, "Nothing changed."),))
        return renderer.document(Answer(manifest.effective, base, arguments, content))

    return DumpFormat(prefix, ".xml", frame, context.arguments.part), tuple(row.crosswalks)
