"""`sheaf ingest`."""

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from builder import ingest, intake
from builder.context import Context
from builder.errors import UsageError
from builder.progress import Progress
from builder.sources.event import Rules
from builder.sources.fault import CODES
from builder.sources.rule import SetRule
from builder.tally import tally
from functions.snapshot import layout


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "sources", nargs="+", metavar="SOURCE", help="ARC, WARC, WACZ files; folders; - for stdin"
    )
    parser.add_argument(
        "--collection", action="append", default=[], metavar="SPEC",
        help="a collection that all of it belongs to, its levels separated by colons",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N",
        help="files to read side by side (default: the number of processors)",
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
    with tempfile.TemporaryDirectory(prefix="sheaf-stdin-") as scratch:
        sources = [_spooled(Path(scratch)) if s == "-" else s for s in arguments.sources]
        paths = ingest.find(sources)
        total = sum(path.stat().st_size for path in paths)
        with Progress(total, len(paths)) as bar:
            run_ = ingest.ingest(
                context.store,
                paths,
                sets,
                rules,
                arguments.jobs,
                intake.run_name(context.now()),
                bar.advance,
            )
    context.result(_account(run_), {"run": run_.name, "sources": [asdict(s) for s in run_.sources]})
    return 1 if arguments.strict and any(s.faults for s in run_.sources) else 0


def _spooled(folder: Path) -> str:
    path = folder / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return str(path)


def _account(run: intake.Run) -> str:
    skips: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    for source in run.sources:
        skips.update(source.skips)
        codes.update(source.codes)
    captures = sum(source.captures for source in run.sources)
    lines = [
        f"{tally(captures, 'capture')} from {tally(len(run.sources), 'file')}, ready to publish"
    ]
    if skips:
        listed = ", ".join(f"{n:,} {reason}" for reason, n in skips.most_common())
        left_out = tally(skips.total(), "record is not published", "records are not published")
        lines.append(f"{left_out}: {listed}")
    if codes:
        lines.append(
            tally(codes.total(), "fault")
            + ', each a row of `sheaf query "FROM faults"` once published:'
        )
        lines += [f"  {n:,} {code}: {CODES[code]}" for code, n in codes.most_common()]
    return "\n".join(lines)
