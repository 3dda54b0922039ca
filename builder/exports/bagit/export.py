"""`sheaf export bagit`."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain

from builder.arguments import declare
from builder.exports.archived_content import add_datasets, open_content, report_folders
from builder.exports.bagit.bag import Bag
from builder.exports.bagit.contents import bag_of_dataset, bag_of_run
from builder.exports.obi_source import RUNS, choose_runs
from builder.exports.staging import add_folders, target_path
from builder.progress import ProgressBar
from builder.store.context import Context
from builder.text import tally


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(parser, {"dir DIR": "folder for the bags", **RUNS})
    add_datasets(parser)


def run(context: Context) -> int:
    """Write a BagIt bag for each run, and each version of a dataset.

    A repeated run adds the bags that are missing. Each object's content is verified.
    """
    settings, wanted = context.configuration, context.arguments.runs
    target = target_path(context.store, context.arguments.dir)
    sender = {
        "Bagging-Date": context.now().date().isoformat(),
        "Source-Organization": settings["repository.name"],
        "Contact-Email": str(settings["repository.admin_emails"][0]),
    }
    with open_content(context, runs=wanted) as (opened, datasets):
        runs = choose_runs(opened[0], wanted) if opened else ()
        bags: Iterator[Bag] = iter(())
        if opened:
            bags = (bag_of_run(context.store, opened[1], each, sender) for each in runs)
        if datasets:
            packages = (package for package in datasets.pack_all() if package.data)
            bags = chain(bags, (bag_of_dataset(package, sender) for package in packages))
        count = len(runs) + (datasets.count if datasets else 0)
        with ProgressBar("exporting", count, " bags") as advance:
            done = add_folders(bags, target, advance)
    text = f"{tally(done.folders, 'bag')} added with {tally(done.files, 'file')}"
    counts = {"bags" if name == "folders" else name: n for name, n in asdict(done).items()}
    return report_folders(context, "bagit", target, text, counts, datasets)
