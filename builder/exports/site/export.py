"""All answers of OAI-PMH as files: the same that `publish.site` writes, in a folder."""

import argparse
from contextlib import closing
from functools import partial

from builder.arguments import declare
from builder.exports import staging
from builder.outputs.site.site_files import SiteFiles
from builder.outputs.site.site_lists import SiteSnapshot
from builder.outputs.site.update import SiteUpdate
from builder.store.context import Context
from builder.store.folder import FolderStore
from builder.text import tally
from functions.content.assembly import open_contents
from functions.reading.duck_repository import DuckRepository
from functions.store.slice import open_reader

_ROWS = 64 << 20
"""Bytes of rows in memory."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(parser, {"dir DIR": "folder to create, or to bring up to date"})


def run(context: Context) -> int:
    """Write all answers of OAI-PMH as files, or update such a folder.

    A later run writes what a publish changed, and an interrupted one goes on where it was.
    """
    settings = context.configuration
    target = staging.target_path(context.store, context.arguments.dir)
    files = SiteFiles(FolderStore(target), "", is_packed=settings["site.gzip"])
    reader = open_reader(*context.store_uri(), settings, context.reading_environment)
    with closing(DuckRepository(reader, _ROWS, ahead=True)) as repository:
        manifest = repository.manifest(repository.pointer().at(context.now()).snapshot)
        archive = None
        if settings["site.replay"] and settings["site.endpoint"]:
            # A host that sends no headers would run archived scripts under its own name.
            from builder.outputs.site.archived import ArchivedPages  # loads what replays

            contents = open_contents(
                repository, *context.store_uri(), settings, context.reading_environment
            )
            archive = partial(ArchivedPages, contents)
        snapshot = SiteSnapshot.of(repository, manifest, settings, archive)
        SiteUpdate(snapshot, files, context.runtime()).run()
    report = {
        "store": context.store.address,
        "dir": str(target),
        "snapshot": manifest.snapshot,
        "files": files.count,
        "bytes": files.size,
    }
    written = tally(files.count, "file")
    text = f"{written} of snapshot {manifest.snapshot} written, {files.size:,} bytes"
    context.result(f"{target}: {text}", report)
    return 0
