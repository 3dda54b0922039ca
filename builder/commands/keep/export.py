"""`sheaf export FORMAT`: writes the store's content in other formats."""

import argparse
import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from builder.command_table import declare
from builder.context import Context
from builder.dump import json_lines
from builder.errors import UsageError
from builder.export import (
    archival,
    captures,
    croissant,
    obi_source,
    parquet_files,
    records,
    staging,
    warc,
)
from builder.export.obi_source import choose_runs, open_runs, target_path
from builder.obi.history import history
from builder.progress import ProgressBar
from builder.text import tally
from functions.database import engine
from functions.oai.format import MANDATORY
from functions.snapshot.errors import NothingPublished


def export_ocfl(context: Context) -> int:
    """Write templates, files and datasets with all their versions as OCFL 1.1 objects.

    A repeated run adds what is new. Each object's content is verified.
    """
    target = target_path(context.store, context.arguments.dir)
    done, elsewhere = archival.write_objects(context, target)
    text = f"{tally(done.objects, 'object')} and {tally(done.versions, 'version')} added"
    return _report(context, "ocfl", target, text, asdict(done), elsewhere)


def export_bagit(context: Context) -> int:
    """Write a BagIt bag for each run, and each version of a dataset.

    A repeated run adds the bags that are missing. Each object's content is verified.
    """
    target = target_path(context.store, context.arguments.dir)
    done, elsewhere = archival.write_bags(context, target)
    text = f"{tally(done.bags, 'bag')} added with {tally(done.files, 'file')}"
    return _report(context, "bagit", target, text, asdict(done), elsewhere)


def export_rocrate(context: Context) -> int:
    """Write a folder with an RO-Crate for each version of a dataset.

    A repeated run adds the folders that are missing. Each file's content is verified.
    """
    target = target_path(context.store, context.arguments.dir)
    done, elsewhere = archival.write_crates(context, target)
    text = f"{tally(done.folders, 'crate')} added with {tally(done.files, 'file')}"
    return _report(context, "rocrate", target, text, asdict(done), elsewhere)


def export_warc(context: Context) -> int:
    """Write gathered files as WARC/1.1.

    A repeated run adds what is new to a folder. Each object's content is verified. If an option
    selects captures, or the store has nothing else, these are written, to one FILE.warc.gz;
    `--where true` selects all.
    """
    arguments = context.arguments
    if captures.is_selected(arguments) or not history(context.store):
        return captures.export_warc(context, captures.excerpt(arguments))
    with open_runs(context) as (runs, connection):
        chosen = choose_runs(runs, arguments.runs)
        target = target_path(context.store, arguments.file)
        gathered = obi_source.gather_runs(connection)
        found, heads = obi_source.sightings, partial(obi_source.list_exchanges, context.store)
        files = [
            warc.FetchedFile(
                r.tist, partial(found, connection, r.tist), partial(heads, r), r.is_import
            )
            for r in chosen
            if r.tist in gathered
        ]
        if not files:
            raise NothingPublished(
                f"{context.store.address}: these runs have no files behind URLs: run `sheaf gather`"
            )
        with ProgressBar("exporting", len(files), " runs") as advance:
            done = warc.export(context.store, files, target, advance)
    text = (
        f"{tally(done.files, 'WARC file')} written with "
        f"{tally(done.responses, 'response')}, {tally(done.resources, 'resource')} and "
        f"{tally(done.revisits, 'revisit')}; "
        f"{tally(done.there, 'was there', 'were there')}"
    )
    return _report(context, "warc", target, text, asdict(done))


def export_wacz(context: Context) -> int:
    """Write captures as one WACZ file, for replay.

    The captures are those of the newest snapshot, either all or those that the options select.
    """
    return captures.export_wacz(context, captures.excerpt(context.arguments))


def export_cdxj(context: Context) -> int:
    """Write an index of captures as CDXJ.

    The captures are those of the newest snapshot, either all or those that the options select.
    """
    return captures.export_cdxj(context, captures.excerpt(context.arguments))


def export_parquet(context: Context) -> int:
    """Write a view as Parquet with large row groups, described by croissant.json.

    The rows are those of the newest snapshot; captures are sorted by SURT and date.
    """
    view, settings = context.arguments.view, context.configuration
    target = target_path(context.store, context.arguments.dir)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} is not an empty folder: name a new one")
    with staging.beside(target) as folder, ExitStack() as stack:
        made = folder / "made"
        made.mkdir()
        connection = stack.enter_context(
            closing(
                engine.connect(
                    threads=os.cpu_count() or 1,
                    memory_megabytes=settings["publish.memory"],
                    scratch=folder,
                )
            )
        )
        manifest, count = parquet_files.sort_rows(connection, context.store, view)
        with ProgressBar("exporting", count, " rows") as advance:
            files = parquet_files.write_files(connection, view, made, count, advance)
        columns = parquet_files.list_columns(connection, view)
        dataset = croissant.DatasetDescription.of(settings, manifest, view)
        described = croissant.describe(dataset, view, columns, files)
        with staging.wrap_errors(target):
            (made / "croissant.json").write_text(json.dumps(described, indent=1) + "\n", "utf-8")
            staging.sync()
            made.rename(target)
    text = f"{tally(count, 'row')} in {tally(len(files), 'file')} of Parquet, and croissant.json"
    counts = {"snapshot": manifest.snapshot, "view": view, "rows": count}
    return _report(context, "parquet", target, text, {**counts, "files": len(files)})


def export_jsonl(context: Context) -> int:
    """Write records as JSON lines: all, or what changed since a snapshot.

    The parts are compressed, and manifest.json has their digests.
    """
    return records.export(context, json_lines.NAME)


def export_oai(context: Context) -> int:
    """Write records as OAI-PMH documents: all, or what changed since a snapshot.

    Each part is a response to ListRecords, compressed, and manifest.json has their digests.
    """
    if context.arguments.format == json_lines.NAME:
        raise UsageError("--format jsonl: run `sheaf export jsonl`")
    return records.export(context, context.arguments.format)


def _select_captures(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select captures."""
    declare(
        parser.add_argument_group("selection of captures (all conditions must hold)"),
        {
            "--set SPEC": "captures of this set and its subsets",
            "--url PREFIX": "captures whose URL has this prefix, including http://",
            "--as-of DATE": "the last capture of each URL up to this date, such as 2007-11-05",
            "--where SQL": "captures that meet a condition over the view `captures`",
        },
    )


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format: what runs its command, the command's arguments, and what declares others.

    `view` and `format` have the defaults of arguments of these names.
    """

    run: Callable[[Context], int]
    arguments: Mapping[str, str]
    declare_more: Callable[[argparse.ArgumentParser], None] | None = None

    def add(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        declare(
            parser,
            self.arguments,
            view={"choices": parquet_files.VIEWS, "default": "captures"},
            format={"default": MANDATORY},
        )
        if self.declare_more is not None:
            self.declare_more(parser)


_RUNS = {"--run TIST... as runs": "only this run; may be repeated"}
SUBCOMMANDS: Mapping[str, ExportFormat] = {
    "ocfl": ExportFormat(export_ocfl, {"dir DIR": "the OCFL storage root"}, archival.add_objects),
    "bagit": ExportFormat(
        export_bagit, {"dir DIR": "folder for the bags", **_RUNS}, archival.add_datasets
    ),
    "rocrate": ExportFormat(
        export_rocrate, {"dir DIR": "folder for the crates"}, archival.add_datasets
    ),
    "warc": ExportFormat(
        export_warc,
        {
            "file FILE|DIR": "one file (FILE.warc or FILE.warc.gz), or a folder with one file per "
            "run",
            **_RUNS,
        },
        _select_captures,
    ),
    "wacz": ExportFormat(
        export_wacz,
        {"file FILE": "file to create", "--title TEXT": "title of the file"},
        _select_captures,
    ),
    "cdxj": ExportFormat(
        export_cdxj,
        {"file FILE": "file to create; compressed with gzip if the name ends with .gz"},
        _select_captures,
    ),
    "parquet": ExportFormat(
        export_parquet,
        {
            "dir DIR": "folder to create",
            "--view VIEW": "a view of `sheaf query` (default: captures)",
        },
    ),
    "jsonl": ExportFormat(export_jsonl, {}, records.add_options),
    "oai": ExportFormat(
        export_oai,
        {"--format PREFIX": f"metadata format (default: {MANDATORY})"},
        records.add_options,
    ),
}
"""The formats by their names on the command line."""


def _report(
    context: Context,
    name: str,
    target: Path,
    text: str,
    counts: Mapping[str, Any],
    elsewhere: int = 0,
) -> int:
    """Report an export to a folder; return its exit status, 1 if files are `elsewhere`."""
    document = {"store": context.store.address, name: str(target), **counts}
    if "there" in counts and "bytes" in counts:
        there = tally(counts["there"], "was there", "were there")
        text += f" ({tally(counts['bytes'], 'byte')}); {there}"
    if elsewhere:
        text += f"; {tally(elsewhere, 'file')} of datasets at archive.org left out"
        document["elsewhere"] = elsewhere
    context.result(f"{target}: {text}", document)
    return 1 if elsewhere else 0
