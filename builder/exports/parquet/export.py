"""`sheaf export parquet`."""

import argparse
import json
import os

from builder.arguments import declare
from builder.exports import staging
from builder.exports.parquet import croissant, parquet_files
from builder.progress import ProgressBar
from builder.store.context import Context
from builder.text import tally
from functions.store import engine


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    meanings = {
        "dir DIR": "folder to create",
        "--view VIEW": "a view of `sheaf query` (default: captures)",
    }
    declare(parser, meanings, view={"choices": parquet_files.VIEWS, "default": "captures"})


def run(context: Context) -> int:
    """Write a view as Parquet with large row groups, described by croissant.json.

    The rows are those of the newest snapshot; captures are sorted by SURT and date.
    """
    view, settings = context.arguments.view, context.configuration
    target = staging.new_folder_path(context.store, context.arguments.dir)
    with staging.beside(target) as folder:
        parts = folder / "made"
        parts.mkdir()
        with engine.connect(
            threads=os.cpu_count() or 1,
            memory_megabytes=settings["publish.memory"],
            scratch=folder,
        ) as connection:
            manifest, count = parquet_files.sort_rows(connection, context.store, view)
            with ProgressBar("exporting", count, " rows") as advance:
                files = parquet_files.write_files(connection, view, parts, count, advance)
            columns = parquet_files.list_columns(connection, view)
        description = croissant.describe(settings, manifest, view, columns, files)
        with staging.wrap_errors(target):
            (parts / "croissant.json").write_text(json.dumps(description, indent=1) + "\n", "utf-8")
            staging.sync()
            parts.rename(target)
    counts = f"{tally(count, 'row')} in {tally(len(files), 'file')} of Parquet"
    document = {
        "store": context.store.address,
        "parquet": str(target),
        "snapshot": manifest.snapshot,
        "view": view,
        "rows": count,
        "files": len(files),
    }
    context.result(f"{target}: {counts}, and croissant.json", document)
    return 0
