"""`sheaf export ocfl`."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain

from builder.arguments import declare
from builder.exports import obi_source
from builder.exports.archived_content import add_datasets, open_content, report_folders
from builder.exports.ocfl import root
from builder.exports.ocfl.dataset_objects import DatasetObject
from builder.exports.ocfl.obi_objects import ObiObject
from builder.exports.ocfl.root import OcflSource
from builder.exports.staging import target_path
from builder.progress import ProgressBar
from builder.store.context import Context
from builder.text import tally


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(parser, {"dir DIR": "the OCFL storage root"})
    add_datasets(parser)


def run(context: Context) -> int:
    """Write templates, files and datasets with all their versions as OCFL 1.1 objects.

    A repeated run adds what is new. Each object's content is verified.
    """
    target = target_path(context.store, context.arguments.dir)
    mail = context.configuration["repository.admin_emails"][0]
    user = {"name": "sheaf", "address": f"mailto:{mail}"}
    with open_content(context) as (opened, datasets):
        sources: Iterator[OcflSource] = iter(())
        count = 0
        if opened:
            stored = obi_source.list_objects(opened[1])
            sources = (ObiObject(context.store, each) for each in stored)
            count = obi_source.count_objects(opened[1])
        if datasets:
            objects = (DatasetObject(*v, datasets.pack) for v in datasets.versions.items())
            sources = chain(sources, objects)
            count += len(datasets.versions)
        with ProgressBar("exporting", count, " objects") as advance:
            done = root.export(sources, target, user, advance)
    text = f"{tally(done.objects, 'object')} and {tally(done.versions, 'version')} added"
    return report_folders(context, "ocfl", target, text, asdict(done), datasets)
