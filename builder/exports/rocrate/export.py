"""`sheaf export rocrate`: packages of datasets as folders."""

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path

from builder.arguments import declare
from builder.errors import UsageError
from builder.exports.archived_content import add_datasets, open_content, report_folders
from builder.exports.dataset_package import DatasetPackage
from builder.exports.staging import add_folders, target_path, write_file
from builder.progress import ProgressBar
from builder.store.context import Context
from builder.text import tally


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(parser, {"dir DIR": "folder for the crates"})
    add_datasets(parser)


def run(context: Context) -> int:
    """Write a folder with an RO-Crate for each version of a dataset.

    A repeated run adds the folders that are missing. Each file's content is verified.
    """
    target = target_path(context.store, context.arguments.dir)
    with open_content(context, obi=False) as (_, datasets):
        assert datasets is not None
        folders = map(CrateFolder, datasets.pack_all())
        with ProgressBar("exporting", datasets.count, " datasets") as advance:
            done = add_folders(folders, target, advance)
    text = f"{tally(done.folders, 'crate')} added with {tally(done.files, 'file')}"
    return report_folders(context, "rocrate", target, text, asdict(done), datasets)


@dataclass(frozen=True, slots=True)
class CrateFolder:
    """A package as a folder; implements builder.exports.staging.NewFolder."""

    package: DatasetPackage

    @property
    def name(self) -> str:
        """Its name, which depends on the files."""
        return self.package.name

    def check(self, folder: Path) -> None:
        """Raise UsageError if a file of the dataset is missing, or has another size."""
        for file in self.package.data:
            path = folder / file.path
            if not path.is_file() or path.stat().st_size != file.size:
                raise UsageError(f"{folder} exists and has no intact {file.path}: remove it")

    def write(self, folder: Path) -> tuple[int, int]:
        """Write the files; return the number of those of the dataset, and their bytes."""
        for file in self.package.files:
            write_file(folder / file.path, file.read())
        return len(self.package.data), sum(file.size for file in self.package.data)
