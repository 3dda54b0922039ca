"""The shape of a source: what `sheaf ingest` reads, and what of it waits for a publish."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from builder.intake.intake import IntakeRun
from builder.store.context import Context
from functions.config.configuration import check_namespace
from functions.store.catalog import Catalogue


@dataclass(frozen=True, slots=True)
class SourceInput:
    """A file, folder or address that a user names, or standard input (paths.STDIN).

    `files` are those of a folder that no other source reads; None means all. If they are a `rest`,
    they count only if one of them is recognised.
    """

    name: str
    files: tuple[Path, ...] | None = None
    is_rest: bool = False


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What was read: a summary, and a part of the JSON document.

    `faults` counts those of the data. `failed` says what could not be read, "" if all could. What
    is `new`, `changed` and `deleted` is counted by sources with defaults.
    """

    text: str
    document: Mapping[str, Any]
    faults: int = 0
    failed: str = ""
    new: int = 0
    changed: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """What a source takes of the inputs: those that it leaves, and how the others are read.

    `read` is None if it takes none. It returns None if there is nothing new in them.
    """

    rest: Sequence[SourceInput]
    read: Callable[[], SourceReport | None] | None = None


@dataclass(frozen=True, slots=True)
class SourceReader:
    """The functions of a source. They raise UsageError, and StoreError.

    `claim` recognises inputs by their content, and plans. `defaults` are the names of what is read
    if the user names nothing; None if options of the source do. `find_step` returns what is done
    instead of reading whole sources.
    """

    claim: Callable[[Context, Sequence[SourceInput]], Claim]
    defaults: Callable[[Context], Sequence[str] | None] = lambda context: ()
    find_step: Callable[[Context], Callable[[], int] | None] = lambda context: None


@dataclass(frozen=True, slots=True)
class Source:
    """A source: what is known of it before its code is loaded.

    `inputs` says what `sheaf ingest` may be given; it is empty if another command reads the source.
    The `options` of that command are rows of arguments.declare, and so are `step_options`, which
    `find_step` has; argparse also has their `parameters`. `note` ends the help. If it `is_dated`,
    its runs have a time of their own, so they come first. `count` returns how many of its rows wait
    in a run of the intake: `noun` is for one and for many, `key` for the JSON of `sheaf status`.
    """

    package: str
    inputs: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    step_options: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""
    is_dated: bool = False
    noun: tuple[str, ...] = ()
    count: Callable[[IntakeRun], int] = lambda run: 0
    key: str = ""

    def load(self) -> SourceReader:
        """Import the module `source` of the package, and return its READER."""
        return cast(SourceReader, import_module(f"{self.package}.source").READER)


def find_home(context: Context) -> Path:
    """Return the folder for work in progress: from the arguments, else in the store's scratch."""
    return Path(context.arguments.work or context.scratch())


def find_namespace(context: Context) -> str:
    """Return the namespace of the store, for identifiers that an ingest writes.

    Raises ConfigurationError if it was never set, as a publish would refuse them.
    """
    namespace = str(context.configuration["repository.namespace"])
    if not Catalogue(context.store).pointer().entries:
        check_namespace(namespace)
    return namespace
