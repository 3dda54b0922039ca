"""Files of selected captures: the options that select them, their records, and the report."""

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from builder.arguments import declare
from builder.errors import UsageError
from builder.exports.chosen_captures import Chosen, choose, read_chosen
from builder.exports.record_copy import cut, cut_request
from builder.exports.staging import beside, target_path
from builder.exports.warcinfo import About
from builder.progress import ProgressBar
from builder.publish.selection import (
    Selection,
    explain_set,
    parse_date,
    parse_option,
    parse_url_prefix,
)
from builder.runtime import Advance
from builder.snapshot import query
from builder.store.context import Context
from builder.store.durable import sync_file
from builder.text import tally
from functions.content import assembly
from functions.content.capture_row import CaptureRow
from functions.content.protocols import Archives, ContentError
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import oai_name
from functions.store import engine
from functions.store.slice import open_reader

_LISTED = 1000
"""Maximum number of missing captures that are listed, with --json."""
_PRINTED = 20
"""Maximum number of missing captures that are listed."""
_OPTIONS = ("set", "url", "as_of", "where")
_CODES = {
    "undated": "no date, which an index needs",
    "unplaced": "no offset in an archive file",
    "not-at-hand": "their archive file is missing",
    "unnamed": "their record has no id",
    "damaged": "the archive file has another record there, or is damaged",
}


@dataclass(frozen=True, slots=True)
class MissingCapture:
    """A chosen capture that could not be exported: the code of its ContentError, and the text.

    The code may also be `undated`: an index line needs a date.
    """

    identifier: str
    url: str
    code: str
    detail: str


@dataclass(slots=True)
class ExportResult:
    """Result: captures chosen, additional originals, pages, bytes, and missing captures.

    `missing` counts all by code, and `examples` has the first of them.
    """

    captures: int = 0
    originals: int = 0
    pages: int = 0
    bytes: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    examples: list[MissingCapture] = field(default_factory=list)

    def miss(self, capture: CaptureRow, code: str, detail: str) -> None:
        """Add a capture that could not be exported."""
        self.missing[code] += 1
        if len(self.examples) < _LISTED:
            self.examples.append(MissingCapture(capture.identifier, capture.url, code, detail))


@dataclass(frozen=True, slots=True)
class ExportRuntime:
    """An export: its metadata, the database with the captures, their files, and the progress."""

    about: About
    connection: engine.Connection
    archives: Archives
    scratch: Path
    advance: Advance

    def read(self, done: ExportResult) -> Iterator[Chosen]:
        """Yield the captures that have a date; the others are missing."""
        for chosen in read_chosen(self.connection):
            self.advance(1)
            capture = chosen.capture
            if capture.stamp:
                yield chosen
            else:
                detail = f"{capture.identifier} ({capture.url}) has no date"
                done.miss(capture, "undated", detail)

    def copy_records(
        self, add: Callable[[Chosen, BinaryIO, BinaryIO | None], None]
    ) -> ExportResult:
        """Give the records of the captures, with their requests, to `add`."""
        done = ExportResult()
        for chosen in self.read(done):
            try:
                with (
                    cut(self.archives, chosen.capture, self.scratch) as record,
                    cut_request(self.archives, chosen.capture, self.scratch) as request,
                ):
                    add(chosen, record, request)
            except ContentError as error:
                done.miss(chosen.capture, error.code, str(error))
            else:
                done.originals += chosen.besides
                done.captures += not chosen.besides
        return done


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


def write_file(
    context: Context,
    write: Callable[[BinaryIO, ExportRuntime], ExportResult],
    *,
    originals: bool,
    pages: bool,
) -> int:
    """Write the captures, and with `originals` those that revisits refer to; return 1 if some lack.

    With `pages`, their number is reported. Raises UsageError, NothingPublished and StoreError.
    """
    arguments = context.arguments
    if arguments.file == "-":
        raise UsageError("-: captures cannot be written to stdout: name a file")
    if arguments.set is not None and not oai_name.is_set(arguments.set):
        raise UsageError(f"--set {arguments.set} is not a set specification")
    prefix = parse_option("--url", arguments.url, parse_url_prefix)
    end = parse_option("--as-of", arguments.as_of, parse_date)
    selection, where = Selection(set=arguments.set, url_prefix=prefix, end=end), arguments.where
    about = _describe(context, selection)
    target = target_path(context.store, arguments.file)
    if target.exists():
        raise UsageError(f"{target} already exists: choose another file")
    with beside(target) as scratch:
        memory = context.configuration["publish.memory"]
        threads = os.cpu_count() or 1
        database = engine.connect(threads=threads, memory_megabytes=memory, scratch=scratch)
        with closing(database) as connection:
            count = choose(connection, context.store, selection, where, originals=originals)
            if not count:
                reason = None
                if (spec := selection.set) is not None:
                    query.prepare_view(connection, context.store, "sets")
                    reason = explain_set(connection, "sets", {"set": spec})
                raise UsageError(reason or "no capture matches")
            with (
                _archives(context) as archives,
                (scratch / "made").open("xb") as out,
                ProgressBar("exporting", count, " captures") as advance,
            ):
                done = write(out, ExportRuntime(about, connection, archives, scratch, advance))
                sync_file(out)
            (scratch / "made").rename(target)
    _report(context, target, done, pages=pages)
    return 1 if done.missing else 0


def _describe(context: Context, selection: Selection) -> About:
    """Return the metadata of the file."""
    arguments, repository = context.arguments, str(context.configuration["repository.name"])
    values = {name.replace("_", "-"): getattr(arguments, name) for name in _OPTIONS}
    conditions = [f"{name} {value}" for name, value in values.items() if value is not None]
    return About(
        title=getattr(arguments, "title", None) or repository,
        description=": ".join(filter(None, (f"Captures of {repository}", ", ".join(conditions)))),
        created=context.now(),
        main=selection.url_prefix,
    )


@contextmanager
def _archives(context: Context) -> Iterator[Archives]:
    """Open the archive files of the store."""
    settings, environment = context.configuration, context.reading_environment
    reader = open_reader(*context.store_uri(), settings, environment)
    with closing(DuckRepository(reader)) as repository:
        base = context.configuration_path.parent
        yield assembly.open_archives(repository, reader.address, base, settings, environment)


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
