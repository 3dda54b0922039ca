"""`sheaf ingest`."""

import argparse
import os
from collections.abc import Callable, Sequence
from operator import itemgetter

from builder.arguments import declare
from builder.errors import UsageError
from builder.intake.mirror import refuse_beside_replica
from builder.sources import SOURCES
from builder.sources.harvest import HARVEST
from builder.sources.source import Source, SourceInput, SourceReader, SourceReport
from builder.store.context import Context
from functions.snapshot import layout

_READ = [source for source in SOURCES if source.inputs]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    inputs = "; ".join(source.inputs for source in _READ)
    declare(
        parser,
        {
            "sources [SOURCE]...": f"{inputs}; s3://bucket/prefix; URLs; - for stdin "
            "(default: what the configuration names)",
            **{row: text for source in reversed(_READ) for row, text in source.options.items()},
            "--jobs N": "files, or ranges of large files, to read in parallel (default: one per "
            "processor)",
            "--work FOLDER": "folder for intermediate results (default: .tmp/ of a store in a "
            "folder; sheaf/ in $XDG_CACHE_HOME or ~/.cache for a bucket)",
            "--files-from FILE": "a list of SOURCEs, one a line",
            "--retry": "read again what could not be read",
            "--again": "read known files, too",
            "--strict": "exit with 1 if there are faults",
            **{row: text for source in _READ for row, text in source.step_options.items()},
        },
        jobs={"default": os.cpu_count() or 1},
        **dict(option for source in _READ for option in source.parameters.items()),
    )
    parser.epilog = "\n\n".join(source.note for source in _READ if source.note)


def run(context: Context) -> int:
    """Read web archives, harvests and ReDIF for the next publish.

    Captures and harvested records go into the intake, templates into the obi store.
    """
    from builder.sources.readings import NOTHING_NEW, list_names  # they load DuckDB

    arguments = context.arguments
    if arguments.jobs < 1:
        raise UsageError(f"--jobs {arguments.jobs}: expected a number from 1")
    sources = load_sources()
    for _, reader in sources:
        if step := reader.find_step(context):
            return step()
    names = list_names(context)
    if not (names or arguments.retry):
        defaults = [reader.defaults(context) for _, reader in sources]
        names = [name for own in defaults for name in own or ()]
        if not names and None not in defaults:
            raise UsageError("nothing to read: name a SOURCE, or set redif.directory to a folder")
    reads = plan_reads(context, names)
    context.store.tag(layout.POINTER)  # an unreachable store is reported now, not after hours
    reports = [report for read in reads if (report := read())]
    nothing = "no file to read again" if arguments.retry else NOTHING_NEW
    text = "\n".join(report.text for report in reports if report.text)
    context.result(text or nothing, {k: v for r in reports for k, v in r.document.items()})
    return int(any(r.failed or (arguments.strict and r.faults) for r in reports))


def load_sources() -> list[tuple[Source, SourceReader]]:
    """Return the sources that this command reads, in the order in which they are asked."""
    return [(source, source.load()) for source in reversed(_READ)]


def plan_reads(context: Context, names: Sequence[str]) -> list[Callable[[], SourceReport | None]]:
    """Return what reads the named inputs, each by the source that recognises it.

    Sources whose runs have times of their own come first. Raises UsageError.
    """
    inputs = [SourceInput(name) for name in dict.fromkeys(names)]
    claims = []
    for source, reader in load_sources():
        claim = reader.claim(context, inputs)
        if claim.read:
            claims.append((not source.is_dated, claim.read))
            if source is not HARVEST:
                name = inputs[0].name if inputs else "--retry"
                refuse_beside_replica(context.configuration, name)
        inputs = [*claim.rest]
    return [read for _, read in sorted(claims, key=itemgetter(0))]
