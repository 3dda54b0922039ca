"""Export of selected captures, as a WACZ file, a WARC file or an index."""

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from builder.context import Context
from builder.errors import UsageError
from builder.export.obi_source import target_path
from builder.export.staging import beside
from builder.export.wacz import export, package
from builder.export.wacz.export import ExportResult, ExportRuntime, MissingCapture
from builder.export.wacz.package import About
from builder.export.wacz.selection import CaptureChoice, choose
from builder.progress import ProgressBar
from builder.snapshot import query
from builder.store.durable import sync_file
from builder.text import tally
from builder.withdraw.selection import Selection, explain_set, parse_date, parse_url_prefix
from functions.content import assembly
from functions.content.protocols import Archives
from functions.database import engine
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.snapshot import oai_name
from functions.store.slice import open_reader

_TOLD = 20
"""Maximum number of missing captures that are listed."""
_LISTED = 1000
"""The same with --json."""
# Files of one name: an index has names without folders.
_TWINS = (
    "SELECT source FROM sources WHERE captures > 0 "
    "GROUP BY source HAVING count(DISTINCT digest) > 1"
)
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
    asked: tuple[str, ...]
    title: str | None


def is_selected(arguments: argparse.Namespace) -> bool:
    """Return whether an option selects captures."""
    return any(getattr(arguments, name) is not None for name in _OPTIONS)


def excerpt(arguments: argparse.Namespace) -> Excerpt:
    """Return the arguments of `sheaf export wacz`, `warc` or `cdxj`. Raises UsageError."""
    if arguments.file == "-":
        raise UsageError("-: captures cannot be written to stdout: name a file")
    asked = (
        f"{name.replace('_', '-')} {value}"
        for name in _OPTIONS
        if (value := getattr(arguments, name)) is not None
    )
    title = getattr(arguments, "title", None)
    return Excerpt(arguments.file, _choice(arguments), tuple(asked), title)


def export_wacz(context: Context, asked: Excerpt) -> int:
    """Write captures as a WACZ file; return 1 if some are missing.

    Raises UsageError, NothingPublished and StoreError.
    """

    def write(connection: engine.Connection, out: BinaryIO, means: ExportRuntime) -> ExportResult:
        return export.wacz(connection, out, _about(context, asked), means)

    return _export(context, asked, write, originals=True, pages=True)


def export_warc(context: Context, asked: Excerpt) -> int:
    """Write captures as a WARC file; return 1 if some are missing. Raises as `export_wacz` does."""
    if not asked.file.endswith(".gz") or context.arguments.runs:
        raise UsageError("captures are written to a FILE.warc.gz, and without --run")

    def write(connection: engine.Connection, out: BinaryIO, means: ExportRuntime) -> ExportResult:
        name = Path(asked.file).name
        return export.warc(connection, out, _about(context, asked), means, name)

    return _export(context, asked, write, originals=True, pages=False)


def export_cdxj(context: Context, asked: Excerpt) -> int:
    """Write an index of captures; return 1 if some are missing. Raises as `export_wacz` does."""

    def write(connection: engine.Connection, out: BinaryIO, means: ExportRuntime) -> ExportResult:
        query.prepare_view(connection, context.store, "sources")
        twins = {name for (name,) in connection.execute(_TWINS).fetchall()}
        return export.cdxj(connection, out, means, twins, packed=asked.file.endswith(".gz"))

    return _export(context, asked, write, originals=False, pages=False)


_Write = Callable[[engine.Connection, BinaryIO, ExportRuntime], ExportResult]


def _export(
    context: Context, asked: Excerpt, write: _Write, *, originals: bool, pages: bool
) -> int:
    """Write the captures, and with `originals` those that revisits refer to."""
    target = target_path(context.store, asked.file)
    if target.exists():
        raise UsageError(f"{target} already exists: choose another file")
    missing: list[MissingCapture] = []
    with beside(target) as scratch:
        memory = context.configuration["publish.memory"]
        threads = os.cpu_count() or 1
        database = engine.connect(threads=threads, memory_megabytes=memory, scratch=scratch)
        with closing(database) as connection:
            count = choose(connection, context.store, asked.choice, originals=originals)
            if not count:
                reason = None
                if (spec := asked.choice.selection.set) is not None:
                    query.prepare_view(connection, context.store, "sets")
                    reason = explain_set(connection, "sets", {"set": spec})
                raise UsageError(reason or "no capture matches")
            with (
                _archives(context) as archives,
                _replace_file(scratch / "made", target) as out,
                ProgressBar("exporting", count, " captures") as advance,
            ):
                done = write(
                    connection, out, ExportRuntime(archives, scratch, _telling(missing), advance)
                )
    _account(context, target, done, missing, pages=pages)
    return 1 if done.missing else 0


def _choice(arguments: argparse.Namespace) -> CaptureChoice:
    if arguments.set is not None and not oai_name.is_set(arguments.set):
        raise UsageError(f"--set {arguments.set} is not a set specification")
    end = prefix = None
    try:
        if arguments.url is not None:
            prefix = parse_url_prefix(arguments.url)
    except ValueError as error:
        raise UsageError(f"--url {arguments.url}: {error}") from None
    try:
        if arguments.as_of is not None:
            end = parse_date(arguments.as_of)
    except ValueError as error:
        raise UsageError(f"--as-of {arguments.as_of}: {error}") from None
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
def _replace_file(made: Path, target: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces the target when the block ends and the file is synced."""
    with made.open("xb") as out:
        yield out
        sync_file(out)
    made.rename(target)


def _telling(missing: list[MissingCapture]) -> export.Tell:
    def tell(one: MissingCapture) -> None:
        if len(missing) < _LISTED:
            missing.append(one)

    return tell


def _about(context: Context, asked: Excerpt) -> About:
    """Return the metadata of a WACZ file."""
    of = str(context.configuration["repository.name"])
    return About(
        title=asked.title or of,
        description=f"Captures of {of}" + (f": {', '.join(asked.asked)}" if asked.asked else ""),
        software=package.software(),
        created=context.now(),
        main=asked.choice.selection.url_prefix,
    )


def _account(
    context: Context,
    target: Path,
    done: ExportResult,
    missing: list[MissingCapture],
    *,
    pages: bool,
) -> None:
    what = tally(done.captures, "capture")
    if done.originals:
        what += f" and {tally(done.originals, 'original')} of revisits"
    if pages:
        what += f", {tally(done.pages, 'page')}"
    lines = [f"{target}: {what} ({tally(done.bytes, 'byte')})"]
    for code, count in sorted(done.missing.items()):
        lines.append(f"  {tally(count, 'capture')} left out: {_CODES.get(code, code)}")
    lines += [f"    {one.detail}" for one in missing[:_TOLD]]
    if (more := done.missing.total() - _TOLD) > 0:
        lines.append(f"    … and {more:,} more")
    document: dict[str, Any] = {
        "store": context.store.address,
        "file": str(target),
        "captures": done.captures,
        "originals": done.originals,
        "pages": done.pages,
        "bytes": done.bytes,
        "missing": dict(sorted(done.missing.items())),
        "told": [asdict(one) for one in missing],
    }
    context.result("\n".join(lines), document)
