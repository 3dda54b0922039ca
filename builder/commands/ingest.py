"""`sheaf ingest`."""

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from builder import ingest, intake, remote, stretch, work
from builder.context import Context
from builder.errors import UsageError
from builder.ingest import Ingested, Means, Order
from builder.progress import Progress
from builder.sources.event import Rules
from builder.sources.fault import CODES
from builder.sources.rule import SetRule
from builder.store import FolderStore
from builder.stretch import File
from builder.tally import tally
from functions.snapshot import layout
from functions.snapshot.address import SCHEME
from functions.store.connection import Connection


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="ARC, WARC, WACZ, CDX, CDXJ files; folders; s3://bucket/prefix; - for stdin",
    )
    parser.add_argument(
        "--collection", action="append", default=[], metavar="SPEC",
        help="a collection that all of it belongs to, its levels separated by colons",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N",
        help="files, or ranges of large ones, to read side by side (default: one a processor)",
    )  # fmt: skip
    parser.add_argument(
        "--work", metavar="FOLDER",
        help="where what was read lies until all is (default: .tmp/ of a store that is a folder, "
        "sheaf/ in $XDG_CACHE_HOME or ~/.cache for a bucket)",
    )  # fmt: skip
    parser.add_argument("--strict", action="store_true", help="exit with 1 if there are faults")


def run(context: Context) -> int:
    """Read web archive files into the intake; `sheaf publish` then publishes them."""
    arguments, settings = context.arguments, context.configuration
    if arguments.jobs < 1:
        raise UsageError(f"--jobs {arguments.jobs}: expected a number from 1")
    if arguments.collection and not settings["sets.collection"]:
        raise UsageError("--collection is given, but sets.collection is false")
    sets = ingest.collection_sets(arguments.collection)
    rules = Rules(
        redirects=settings["documents.redirects"],
        errors=settings["documents.errors"],
        titles=settings["documents.titles"],
        domain_sets=settings["sets.domain"],
        mime_sets=settings["sets.mime"],
        set_rules=tuple(map(SetRule.of, settings["sets.rules"])),
        collections=sets,
    )
    context.store.tag(layout.POINTER)  # a store out of reach is told of now, not after hours
    sources = arguments.sources
    connection = Connection.of(settings)
    files = _found(sources, connection, context.environment)
    asked = Order((), sets, rules).asked(sources, context.store.address)
    folder = work.folder_of(_home(context), None if "-" in sources else asked)
    with work.opened(folder) as held:
        if "-" in sources:
            files.append(_spooled(held.folder))
        with Progress(sum(file.bytes for file in files), len(files)) as bar:
            done = ingest.ingest(
                context.store,
                Order(tuple(files), sets, rules),
                held,
                Means(bar, arguments.jobs, context.say, connection=connection),
                intake.run_name(context.now()),
            )
    run_ = done.run
    document = {
        "run": run_.name,
        "sources": [asdict(s) for s in run_.sources],
        "read_in_one_piece": list(done.whole),
    }
    context.result(_account(done), document)
    return 1 if arguments.strict and any(s.faults for s in run_.sources) else 0


def _found(
    sources: Sequence[str], connection: Connection, environment: Mapping[str, str]
) -> list[File]:
    """Return the files that the sources name, each once, but standard input."""
    found: list[File] = []
    for source in sources:
        if source.startswith(SCHEME):
            found += remote.find(source, connection, environment)
        elif source != "-":
            found += map(File.of, stretch.find([source]))
    return list(dict.fromkeys(found))


def _home(context: Context) -> Path:
    """Return where the work lies: in a folder store with what is not finished, else in a cache."""
    if context.arguments.work:
        return Path(context.arguments.work)
    if isinstance(context.store, FolderStore):
        return context.store.root / layout.TEMPORARY
    environment = context.environment
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"]) / "sheaf"
    if environment.get("HOME"):
        return Path(environment["HOME"]) / ".cache" / "sheaf"
    return Path(tempfile.gettempdir())


def _spooled(folder: Path) -> File:
    path = folder / "stdin"
    with intake.writing(folder), path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    return File.of(path, "-")


def _account(done: Ingested) -> str:
    run = done.run
    skips: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    for source in run.sources:
        skips.update(source.skips)
        codes.update(source.codes)
    captures = sum(source.captures for source in run.sources)
    lines = [
        f"{tally(captures, 'capture')} from {tally(len(run.sources), 'file')}, ready to publish"
    ]
    if done.whole:
        many = tally(len(done.whole), "large file was", "large files were")
        lines.append(
            f"{many} read in one piece, for the ranges did not meet: " + ", ".join(done.whole)
        )
    if skips:
        listed = ", ".join(f"{n:,} {reason}" for reason, n in skips.most_common())
        left_out = tally(skips.total(), "record is not published", "records are not published")
        lines.append(f"{left_out}: {listed}")
    if codes:
        told = sum(source.faults for source in run.sources)
        rows = "each a row" if told == codes.total() else f"told of in {tally(told, 'row')}"
        lines.append(
            f'{tally(codes.total(), "fault")}, {rows} of `sheaf query "FROM faults"` '
            "once published:"
        )
        lines += [f"  {n:,} {code}: {CODES[code]}" for code, n in codes.most_common()]
    return "\n".join(lines)
