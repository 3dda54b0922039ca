"""Export of what the store archives to folders: RePEc's runs and objects, and datasets.

Without a choice, bags and OCFL have both, as far as the store has them.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import TypeVar

from builder.context import Context
from builder.errors import UsageError
from builder.export import bagit, obi_source, staging
from builder.export.bagit import Bag, Bagged
from builder.export.dataset_folders import CrateFolder, DatasetObject, bag_of_dataset
from builder.export.dataset_source import DatasetSource, open_source
from builder.export.obi_bag import bag_of_run
from builder.export.obi_source import Opened, choose_runs, open_runs
from builder.export.ocfl import obi_objects, root, series_objects
from builder.export.ocfl.root import OcflSource, Rooted
from builder.export.staging import AddedFolders
from builder.obi.content import FILE
from builder.obi.run import history
from builder.progress import ProgressBar
from builder.text import tally
from functions.snapshot.errors import NothingPublished
from functions.store.catalog import Catalogue

T = TypeVar("T")
Exported = tuple[T, int]
"""The result, and the number of files that are not in the store but at archive.org."""


def add_datasets(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select datasets."""
    which = parser.add_argument_group("selection of datasets")
    which.add_argument("--set", metavar="SPEC", help="only datasets of this set and its subsets")
    which.add_argument(
        "--dataset",
        action="append",
        dest="datasets",
        default=[],
        metavar="NAME",
        help="only this dataset, by its DOI or identifier; may be repeated",
    )


def add_objects(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select objects for a storage root."""
    parser.add_argument(
        "--by",
        choices=tuple(series_objects.BY),
        help="one object for all templates of a series "
        "or of an archive (default: one for each template)",
    )
    add_datasets(parser)


def _count_elsewhere(context: Context, datasets: DatasetSource | None) -> int:
    """Return how many files another service keeps; say how many are not archived."""
    if datasets is not None and datasets.missing:
        what = tally(datasets.missing, "file of a dataset is", "files of datasets are")
        context.say(f"{what} not archived; ro-crate-metadata.json names the missing ones")
    return datasets.elsewhere if datasets else 0


def write_crates(context: Context, target: Path) -> Exported[AddedFolders]:
    """Add a folder for each dataset. Raises UsageError, NothingPublished and StoreError."""
    with _open(context, obi=False) as (_, datasets):
        assert datasets is not None
        folders = map(CrateFolder, datasets.pack_all())
        with ProgressBar("exporting", datasets.count, " datasets") as advance:
            return staging.add_folders(folders, target, advance), _count_elsewhere(
                context, datasets
            )


def write_bags(context: Context, target: Path) -> Exported[Bagged]:
    """Add a bag for each run and each dataset. Raises as `write_crates` does."""
    settings, asked = context.configuration, context.arguments.runs
    sender = {
        "Source-Organization": settings["repository.name"],
        "Contact-Email": str(settings["repository.admin_emails"][0]),
    }
    with _open(context, runs=asked) as (opened, datasets):
        runs = choose_runs(opened[0], asked) if opened else ()
        bags: Iterator[Bag] = iter(())
        if opened:
            bags = (bag_of_run(context.store, opened[1], run, sender) for run in runs)
        if datasets:
            packages = (one for one in datasets.pack_all() if one.data)
            bags = chain(bags, (bag_of_dataset(one, sender) for one in packages))
        count = len(runs) + (datasets.count if datasets else 0)
        with ProgressBar("exporting", count, " bags") as advance:
            done = bagit.export(bags, target, context.now().date(), advance)
        return done, _count_elsewhere(context, datasets)


def write_objects(context: Context, target: Path) -> Exported[Rooted]:
    """Add what the storage root lacks of the objects. Raises as `write_crates` does."""
    mail = context.configuration["repository.admin_emails"][0]
    user = {"name": "sheaf", "address": f"mailto:{mail}"}
    with _open(context) as (opened, datasets):
        sources: Iterator[OcflSource] = iter(())
        count = 0
        by = context.arguments.by
        if opened and by:
            sources = series_objects.list_sources(context.store, opened[1], by)
            count = series_objects.count_objects(opened[1], by)
        if opened:
            kinds = (FILE,) if by else obi_source.KINDS
            stored = obi_source.list_objects(opened[1], kinds)
            sources = chain(sources, obi_objects.list_sources(context.store, stored))
            count += obi_source.count_objects(opened[1], kinds)
        if datasets:
            sources = chain(sources, _list_objects(datasets))
            count += len(datasets.versions)
        with ProgressBar("exporting", count, " objects") as advance:
            done = root.export(sources, target, user, advance)
        return done, _count_elsewhere(context, datasets)


def _list_objects(datasets: DatasetSource) -> Iterator[DatasetObject]:
    for dataset, versions in datasets.versions.items():
        yield DatasetObject(dataset, versions, datasets.pack)


@contextmanager
def _open(
    context: Context, *, obi: bool = True, runs: Sequence[int] | None = None
) -> Iterator[tuple[Opened | None, DatasetSource | None]]:
    """Open the obi store and the datasets, as far as there are such and the arguments want them.

    Raises NothingPublished if there is neither.
    """
    arguments, store = context.arguments, context.published_store()
    asked = bool(arguments.set or arguments.datasets)
    if runs and asked:
        raise UsageError("--run is about runs of ingest and gather: leave out --set and --dataset")
    opened = datasets = None
    with ExitStack() as stack:
        if obi and not asked and history(store):
            opened = stack.enter_context(open_runs(context))
        if not runs and Catalogue(store).pointer().newest() is not None:
            datasets = stack.enter_context(open_source(context, arguments.set, arguments.datasets))
        if not opened and not (datasets and datasets.count):
            what = "templates, files or datasets" if obi else "datasets"
            raise NothingPublished(f"{store.address}: this store has no archived {what} yet")
        yield opened, datasets
