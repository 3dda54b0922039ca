"""The row of an export format: what is known of it before its code is loaded."""

import argparse
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:  # it loads the store, which the help and the version do without
    from builder.store.context import Context


class ExportModule(Protocol):
    """The module `export` in the folder of a format."""

    def add(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        ...

    def run(self, context: "Context") -> int:
        """Write the export, and return the exit status: 1 if something could not be written.

        Raises SheafError.
        """
        ...


@dataclass(frozen=True, slots=True)
class Export:
    """A format: its name on the command line, its package, a summary, and example commands.

    `faults` says when its command exits with 1; if empty, it never does.
    """

    name: str
    package: str
    summary: str
    examples: tuple[str, ...]
    faults: str = ""

    def load(self) -> ExportModule:
        """Import the module with its `add` and `run`."""
        return cast(ExportModule, import_module(f"{self.package}.export"))


ELSEWHERE = "files of datasets are at archive.org, and not in the store"
"""`faults` of exports of datasets."""
UNREAD = "some captures could not be read"
"""`faults` of exports of captures."""
