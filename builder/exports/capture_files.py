"""Files of selected captures: the options that select them, the file, and the report."""

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from builder.arguments import declare
from builder.errors import UsageError
from builder.exports.capture_records import ExportResult, ExportRuntime
from builder.exports.chosen_captures import CaptureChoice, choose
from builder.exports.staging import beside, target_path
from builder.exports.warcinfo import About, software
from builder.progress import ProgressBar
from builder.publish.selection import (
    Selection,
    explain_set,
    parse_date,
    parse_option,
    parse_url_prefix,
)
from builder.snapshot import query
from builder.store.context import Context
from builder.store.durable import sync_file
from builder.text import tally
from functions.content import assembly
from functions.content.protocols import Archives
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import oai_name
from functions.store import engine
from functions.store.slice import open_reader

_PRINTED = 20
"""Maximum number of missing captures that are listed."""
_OPTIONS = ("set", "url", "as_of", "where")
_CODES = {
    "undated": "no date, which an index needs",
    "unplaced": "no offset in an archive file",
    "not-at-hand": "their archive file is missing",
    "damaged": "the archive file has another record there, or is damaged",
}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The file to write, the selection of captures, and its description for users."""

    file: str
    choice: CaptureChoice
    conditions: tuple[str, ...]
    title: str | None

    @staticmethod
    def of(arguments: argparse.Namespace) -> "Excerpt":
        """Return the excerpt that the arguments of a command select. Raises UsageError."""
        if arguments.file == "-":
            raise UsageError("-: captures cannot be written to stdout: name a file")
        conditions = tuple(
            f"{name.replace('_', '-')} {value}"
            for name in _OPTIONS
            if (value := getattr(arguments, name)) is not None
        )
        title = getattr(arguments, "title", None)
        return Excerpt(arguments.file, _choice(arguments), conditions, title)

    def describe(self, context: Context) -> About:
        """Return the metadata of the file."""
        repository = str(context.configuration["repository.name"])
        conditions = f": {', '.join(self.conditions)}" if self.conditions else ""
        return About(
            title=self.title or repository,
            description=f"Captures of {repository}{conditions}",
            software=software(),
            created=context.now(),
            main=self.choice.selection.url_prefix,
        )


def is_selected(arguments: argparse.Namespace) -> bool:
    """Return whether an option selects captures."""
    return any(getattr(arguments, name) is not None for name in _OPTIONS)


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select captures."""
    meanings = {
        "--set SPEC": "captures of this set and its subsets",
        "--url PREFIX": "captures whose URL has this prefix, including http://",
        "--as-of DATE": "the last capture of each URL up to this date, such as 2007-11-05",
        "--where SQL": "captures that meet a condition over the view `captures`",
    }
    title = "selection of captures (all conditions must hold)"
    declare(parser.add_argument_group(title), meanings)


_Write = Callable[[engine.Connection, BinaryIO, ExportRuntime], ExportResult]


def write_file(
    context: Context, excerpt: Excerpt, write: _Write, *, originals: bool, pages: bool
) -> int:
    """Write the captures, and with `originals` those that revisits refer to; return 1 if some lack.

    With `pages`, their number is reported. Raises UsageError, NothingPublished and StoreError.
    """
    target = target_path(context.store, excerpt.file)
    if target.exists():
        raise UsageError(f"{target} already exists: choose another file")
    with beside(target) as scratch:
        memory = context.configuration["publish.memory"]
        threads = os.cpu_count() or 1
        database = engine.connect(threads=threads, memory_megabytes=memory, scratch=scratch)
        with closing(database) as connection:
            count = choose(connection, context.store, excerpt.choice, originals=originals)
            if not count:
                reason = None
                if (spec := excerpt.choice.selection.set) is not None:
                    query.prepare_view(connection, context.store, "sets")
                    reason = explain_set(connection, "sets", {"set": spec})
                raise UsageError(reason or "no capture matches")
            with (
                _archives(context) as archives,
                _replace_file(scratch / "made", target) as out,
                ProgressBar("exporting", count, " captures") as advance,
            ):
                done = write(connection, out, ExportRuntime(archives, scratch, advance))
    _report(context, target, done, pages=pages)
    return 1 if done.missing else 0


def _choice(arguments: argparse.Namespace) -> CaptureChoice:
    if arguments.set is not None and not oai_name.is_set(arguments.set):
        raise UsageError(f"--set {arguments.set} is not a set specification")
    prefix = parse_option("--url", arguments.url, parse_url_prefix)
    end = parse_option("--as-of", arguments.as_of, parse_date)
    selection = Selection(set=arguments.set, url_prefix=prefix, end=end)
    return CaptureChoice(selection, arguments.where, latest=end is not None)


@contextmanager
def _archives(context: Context) -> Iterator[Archives]:
    """Open the archive files of the store."""
    reader = open_reader(*context.store_uri(), context.configuration, context.reading_environment)
    repository = DuckRepository(reader)
    settings, base = context.configuration, context.configuration_path.parent
    try:
        yield assembly.open_archives(
            repository, reader.address, base, settings, context.reading_environment
        )
    finally:
        repository.close()


@contextmanager
def _replace_file(path: Path, target: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces the target when the block ends and the file is synced."""
    with path.open("xb") as out:
        yield out
        sync_file(out)
    path.rename(target)


def _report(context: Context, target: Path, done: ExportResult, *, pages: bool) -> None:
    what = tally(done.captures, "capture")
    if done.originals:
        what += f" and {tally(done.originals, 'original')} of revisits"
    if pages:
        what += f", {tally(done.pages, 'page')}"
    lines = [f"{target}: {what} ({tally(done.bytes, 'byte')})"]
    for code, count in sorted(done.missing.items()):
        lines.append(f"  {tally(count, 'capture')} left out: {_CODES.get(code, code)}")
    lines += [f"    {capture.detail}" for capture in done.examples[:_PRINTED]]
    if (more := done.missing.total() - _PRINTED) > 0:
        lines.append(f"    … and {more:,} more")
    document: dict[str, Any] = {
        "store": context.store.address,
        "file": str(target),
        "captures": done.captures,
        "originals": done.originals,
        "pages": done.pages,
        "bytes": done.bytes,
        "missing": dict(sorted(done.missing.items())),
        "told": [asdict(capture) for capture in done.examples],
    }
    context.result("\n".join(lines), document)
