"""What the store archives: RePEc's runs and objects, and datasets; with its common options.

Without a choice, bags and OCFL have both, as far as the store has them.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from builder.arguments import declare
from builder.errors import UsageError
from builder.exports.dataset_source import DatasetSource, open_source
from builder.exports.obi_source import Opened, open_runs
from builder.obi.run import history
from builder.store.context import Context
from builder.text import tally
from functions.snapshot.errors import NothingPublished
from functions.store.catalog import Catalogue


def add_datasets(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select datasets."""
    meanings = {
        "--set SPEC": "only datasets of this set and its subsets",
        "--dataset NAME... as datasets": "only this dataset, by its DOI or identifier; may be "
        "repeated",
    }
    declare(parser.add_argument_group("selection of datasets"), meanings)


@contextmanager
def open_content(
    context: Context, *, obi: bool = True, runs: Sequence[int] | None = None
) -> Iterator[tuple[Opened | None, DatasetSource | None]]:
    """Open the obi store and the datasets, as far as there are such and the arguments want them.

    Raises NothingPublished if there is neither.
    """
    arguments, store = context.arguments, context.published_store()
    is_chosen = bool(arguments.set or arguments.datasets)
    if runs and is_chosen:
        raise UsageError("--run is about runs of ingest and gather: leave out --set and --dataset")
    opened = datasets = None
    with ExitStack() as stack:
        if obi and not is_chosen and history(store):
            opened = stack.enter_context(open_runs(context))
        if not runs and Catalogue(store).pointer().newest() is not None:
            datasets = stack.enter_context(open_source(context, arguments.set, arguments.datasets))
        if not opened and not (datasets and datasets.count):
            what = "templates, files or datasets" if obi else "datasets"
            raise NothingPublished(f"{store.address}: this store has no archived {what} yet")
        yield opened, datasets


def report_folders(
    context: Context,
    name: str,
    target: Path,
    text: str,
    counts: Mapping[str, int],
    datasets: DatasetSource | None,
) -> int:
    """Report an export to a folder; return its exit status, 1 if files are at archive.org.

    `counts` has at least the numbers `bytes` and `there`.
    """
    document = {"store": context.store.address, name: str(target), **counts}
    there = tally(counts["there"], "was there", "were there")
    text += f" ({tally(counts['bytes'], 'byte')}); {there}"
    if datasets is not None and datasets.missing:
        what = tally(datasets.missing, "file of a dataset is", "files of datasets are")
        context.say(f"{what} not archived; ro-crate-metadata.json names the missing ones")
    elsewhere = datasets.elsewhere if datasets else 0
    if elsewhere:
        text += f"; {tally(elsewhere, 'file')} of datasets at archive.org left out"
        document["elsewhere"] = elsewhere
    context.result(f"{target}: {text}", document)
    return 1 if elsewhere else 0
