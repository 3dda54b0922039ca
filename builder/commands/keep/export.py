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


def add_ocfl(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dir", metavar="DIR", help="the OCFL storage root")
    archival.add_objects(parser)


def export_ocfl(context: Context) -> int:
    """Write templates, files and datasets with all their versions as OCFL 1.1 objects.

    A repeated run adds what is new. Each object's content is verified.
    """
    target = target_path(context.store, context.arguments.dir)
    done, elsewhere = archival.write_objects(context, target)
    text = f"{tally(done.objects, 'object')} and {tally(done.versions, 'version')} added"
    return _report(context, "ocfl", target, text, asdict(done), elsewhere)


def add_bagit(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dir", metavar="DIR", help="folder for the bags")
    _add_runs(parser)
    archival.add_datasets(parser)


def export_bagit(context: Context) -> int:
    """Write a BagIt bag for each run, and each version of a dataset.

    A repeated run adds the bags that are missing. Each object's content is verified.
    """
    target = target_path(context.store, context.arguments.dir)
    done, elsewhere = archival.write_bags(context, target)
    text = f"{tally(done.bags, 'bag')} added with {tally(done.files, 'file')}"
    return _report(context, "bagit", target, text, asdict(done), elsewhere)


def add_rocrate(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dir", metavar="DIR", help="folder for the crates")
    archival.add_datasets(parser)


def export_rocrate(context: Context) -> int:
    """Write a folder with an RO-Crate for each version of a dataset.

    A repeated run adds the folders that are missing. Each file's content is verified.
    """
    target = target_path(context.store, context.arguments.dir)
    done, elsewhere = archival.write_crates(context, target)
    text = f"{tally(done.folders, 'crate')} added with {tally(done.files, 'file')}"
    return _report(context, "rocrate", target, text, asdict(done), elsewhere)


def add_warc(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "file",
        metavar="FILE|DIR",
        help="one file (FILE.warc or FILE.warc.gz), or a folder with one file per run",
    )
    _add_runs(parser)
    _add_selection(parser)


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


def add_wacz(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="file to create")
    _add_selection(parser)
    parser.add_argument("--title", metavar="TEXT", help="title of the file")


def export_wacz(context: Context) -> int:
    """Write captures as one WACZ file, for replay.

    The captures are those of the newest snapshot, either all or those that the options select.
    """
    return captures.export_wacz(context, captures.excerpt(context.arguments))


def add_cdxj(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="file to create; compressed with gzip if the name ends with .gz",
    )
    _add_selection(parser)


def export_cdxj(context: Context) -> int:
    """Write an index of captures as CDXJ.

    The captures are those of the newest snapshot, either all or those that the options select.
    """
    return captures.export_cdxj(context, captures.excerpt(context.arguments))


def add_parquet(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dir", metavar="DIR", help="folder to create")
    parser.add_argument(
        "--view",
        choices=parquet_files.VIEWS,
        default="captures",
        metavar="VIEW",
        help="a view of `sheaf query` (default: captures)",
    )


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


def add_jsonl(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    records.add_options(parser)


def export_jsonl(context: Context) -> int:
    """Write records as JSON lines: all, or what changed since a snapshot.

    The parts are compressed, and manifest.json has their digests.
    """
    return records.export(context, json_lines.NAME)


def add_oai(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    records.add_options(parser)
    parser.add_argument(
        "--format",
        default=MANDATORY,
        metavar="PREFIX",
        help=f"metadata format (default: {MANDATORY})",
    )


def export_oai(context: Context) -> int:
    """Write records as OAI-PMH documents: all, or what changed since a snapshot.

    Each part is a response to ListRecords, compressed, and manifest.json has their digests.
    """
    if context.arguments.format == json_lines.NAME:
        raise UsageError("--format jsonl: run `sheaf export jsonl`")
    return records.export(context, context.arguments.format)


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format: what declares the arguments of its command, and what runs the command."""

    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Context], int]


SUBCOMMANDS: Mapping[str, ExportFormat] = {
    "ocfl": ExportFormat(add_ocfl, export_ocfl),
    "bagit": ExportFormat(add_bagit, export_bagit),
    "rocrate": ExportFormat(add_rocrate, export_rocrate),
    "warc": ExportFormat(add_warc, export_warc),
    "wacz": ExportFormat(add_wacz, export_wacz),
    "cdxj": ExportFormat(add_cdxj, export_cdxj),
    "parquet": ExportFormat(add_parquet, export_parquet),
    "jsonl": ExportFormat(add_jsonl, export_jsonl),
    "oai": ExportFormat(add_oai, export_oai),
}
"""The formats by their names on the command line."""


def _add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run",
        type=int,
        action="append",
        dest="runs",
        metavar="TIST",
        help="only this run; may be repeated",
    )


def _add_selection(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select captures."""
    which = parser.add_argument_group("selection of captures (all conditions must hold)")
    which.add_argument("--set", metavar="SPEC", help="captures of this set and its subsets")
    which.add_argument(
        "--url", metavar="PREFIX", help="captures whose URL has this prefix, including http://"
    )
    which.add_argument(
        "--as-of",
        metavar="DATE",
        help="the last capture of each URL up to this date, such as 2007-11-05",
    )
    which.add_argument(
        "--where", metavar="SQL", help="captures that meet a condition over the view `captures`"
    )


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
