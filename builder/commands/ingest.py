"""`sheaf ingest`."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from builder.context import Context
from builder.errors import UsageError
from builder.harvest import ingest as aggregation
from builder.harvest.ingest import Gathered
from builder.ingest import ingest, workdir
from builder.ingest.ingest import IngestOptions
from builder.ingest.result import IngestResult
from builder.ingest.splits import ArchiveFile
from builder.intake import intake
from builder.obi.key import DAY_START, parse_tist
from builder.obi.run import ObiRuntime
from builder.progress import Phase, Progress
from builder.publish.harvested import KIND
from builder.redif import ingest as redif
from builder.redif.account import RedifReport
from builder.redif.ingest import RedifJob, is_done
from builder.redif.source import STDIN, Sources, sort_sources, tarballs
from builder.redif.staging import Acceptance, can_be_named
from builder.sources.events import FAULT_CODES
from builder.sources.rules import DocumentRules, SetRule
from builder.text import tally
from functions.oai.render import check
from functions.snapshot import layout
from functions.store.connection import BucketConnection


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        help="ARC, WARC, WACZ, CDX, CDXJ files; trees and tarballs of ReDIF; folders of "
        "any of these, or of `sheaf harvest`; s3://bucket/prefix; - for stdin "
        "(default: redif.directory)",
    )
    parser.add_argument(
        "-f",
        "--file",
        action="append",
        default=[],
        metavar="TARBALL",
        help="a tarball of ReDIF, dated by its name or by --tist; several are read in the "
        "order of their dates, before any SOURCE",
    )
    parser.add_argument(
        "--tist",
        metavar="TIME",
        help="date of the one TARBALL, or of the ReDIF in the SOURCEs: seconds since 1970, or "
        "a date",
    )
    parser.add_argument(
        "--accept-loss",
        action="append",
        nargs="?",
        default=[],
        metavar="ARCHIVE",
        help="delete missing templates, however many: those of ARCHIVE, such as aaa, even if "
        "its folder or its aaaarch.rdf is missing; without a name, those of all archives "
        "that were read completely, and those outside of archives' folders",
    )
    parser.add_argument(
        "--collection", action="append", default=[], metavar="SPEC",
        help="collection of all captures, with levels separated by colons",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N",
        help="files, or ranges of large files, to read in parallel (default: one per processor)",
    )  # fmt: skip
    parser.add_argument(
        "--work", metavar="FOLDER",
        help="folder for intermediate results (default: .tmp/ of a store in a folder; sheaf/ "
        "in $XDG_CACHE_HOME or ~/.cache for a bucket)",
    )  # fmt: skip
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 if the data has any fault"
    )
    parser.epilog = (
        "A file fails if it cannot be read. It also fails if it has faults and no captures, and "
        "either you named it or its name or content says that it is an archive."
    )


def run(context: Context) -> int:
    """Read web archives, harvests and ReDIF for the next publish.

    Captures and harvested records go into the intake, templates into the obi store.
    """
    arguments, settings = context.arguments, context.configuration
    if arguments.jobs < 1:
        raise UsageError(f"--jobs {arguments.jobs}: expected a number from 1")
    if arguments.collection and "collection" not in settings["sets.by"]:
        raise UsageError("--collection is given, but sets.by does not name collection")
    sets = ingest.collection_sets(arguments.collection)
    accepted = _acceptance(arguments.accept_loss)
    connection = BucketConnection.of(settings)
    asked = _sources(context)
    harvests = {source: aggregation.find(source) for source in asked if source != STDIN}
    rest = [source for source in asked if not harvests.get(source)]
    sources = sort_sources(rest, connection, context.environment)
    orders = _orders(arguments, sources, accepted)
    if arguments.collection and not sources.archives:
        raise UsageError("--collection needs an archive file: ReDIF has series")
    context.store.tag(layout.POINTER)  # an unreachable store is reported now, not after hours
    accounts = [_redif(context, order) for order in orders]
    told = [account.text() for account in accounts if account]
    document: dict[str, Any] = {}
    if orders:
        document["redif"] = [account.document() for account in accounts if account]
    faults, failed = any(account.codes for account in accounts if account), False
    if folders := [*dict.fromkeys(folder for found in harvests.values() for folder in found)]:
        gathered = _harvests(context, folders)
        told.append(_harvest_text(context, gathered))
        document["harvested"] = asdict(gathered)
        faults = faults or gathered.unreadable > 0
    if sources.archives:
        done = _archives(context, sources, sets, connection)
        told.append(done.text())
        document |= done.document()
        faults = faults or any(s.faults for s in done.run.sources)
        failed = any(s.failed for s in done.run.sources)
    context.result("\n".join(told) or "everything was ingested before", document)
    return 1 if failed or (arguments.strict and faults) else 0


def _sources(context: Context) -> list[str]:
    """Return the sources of the arguments, else the configured one."""
    given, own = context.arguments.sources, context.configuration["redif.directory"]
    if given or context.arguments.file:
        return list(given)
    if not own:
        raise UsageError(
            "nothing to read: name a SOURCE, or set redif.directory to a folder of ReDIF"
        )
    return [str(context.configuration_path.parent / own)]


def _orders(
    arguments: argparse.Namespace, sources: Sources, accepted: Acceptance
) -> list[RedifJob]:
    """Return the runs for the ReDIF sources, in order."""
    tist = None if arguments.tist is None else parse_tist(arguments.tist, "--tist", DAY_START)
    if tist is not None and len(arguments.file) + bool(sources.redif) != 1:
        raise UsageError("--tist expects either one TARBALL or SOURCEs of ReDIF")
    replayed = tarballs(arguments.file, tist)
    orders = [RedifJob((origin,), at, accepted) for origin, at in replayed]
    if sources.redif:
        orders.append(RedifJob(sources.redif, tist, accepted))
    return orders


def _acceptance(given: Sequence[str | None]) -> Acceptance:
    archives = [one.lower().removeprefix("repec:") for one in given if one]
    for one in archives:
        if not can_be_named(one):
            raise UsageError(
                f"--accept-loss {one}: expected an archive such as aaa or RePEc:aaa; to accept "
                "all losses, write --accept-loss after the sources"
            )
    return Acceptance(None in given, frozenset(archives))


def _redif(context: Context, order: RedifJob) -> RedifReport | None:
    """Ingest ReDIF as one run; return None for a replay that was done before."""
    store, settings = context.store, context.configuration
    account = None
    if not is_done(store, order):
        means = redif.RedifRuntime(
            ObiRuntime(context.now, context.sleep, context.say),
            Phase,
            context.arguments.jobs,
            settings["redif.largest"] << 20,
        )
        folder = workdir.folder_of(_home(context), json.dumps([store.address, order.fingerprint()]))
        with workdir.open_workdir(folder) as held:
            account = redif.ingest(store, order, held, means)
    if account is None:
        context.say(f"{order.label}: already ingested, as of {order.tist}")
    return account


def _archives(
    context: Context, sources: Sources, sets: tuple[str, ...], connection: BucketConnection
) -> IngestResult:
    """Read the web archive files into the intake."""
    settings = context.configuration
    rules = DocumentRules(
        redirects="redirects" in settings["documents.include"],
        errors="errors" in settings["documents.include"],
        titles=settings["documents.titles"],
        domain_sets="domain" in settings["sets.by"],
        mime_sets="mime" in settings["sets.by"],
        set_rules=tuple(map(SetRule.from_table, settings["sets.rules"])),
        collections=sets,
    )
    home = context.configuration_path.parent
    files = [file.relative_to(home) for file in sources.files]
    asked = ingest.IngestJob((), sets, rules).fingerprint(sources.archives, context.store.address)
    folder = workdir.folder_of(_home(context), None if STDIN in sources.archives else asked)
    with workdir.open_workdir(folder) as held:
        if STDIN in sources.archives:
            files.append(_spool(held.folder))
        with Progress(sum(file.bytes for file in files), len(files)) as bar:
            return ingest.ingest(
                context.store,
                ingest.IngestJob(tuple(files), sets, rules),
                held,
                IngestOptions(bar, context.arguments.jobs, context.say, connection=connection),
                intake.run_name(context.now()),
            )


def _harvests(context: Context, folders: Sequence[Path]) -> Gathered:
    """Read the harvested records into the intake."""
    namespace = str(context.configuration["repository.namespace"])
    with workdir.open_workdir(workdir.folder_of(_home(context), None)) as held:
        with held.scratch() as scratch:
            name = intake.run_name(context.now())
            gathered = aggregation.ingest(context.store, folders, namespace, scratch, name)
        held.remove()
    return gathered


def _harvest_text(context: Context, gathered: Gathered) -> str:
    """Return a summary, with the formats that are not published yet."""
    lines = [
        f"{tally(gathered.records, 'record')} of {tally(gathered.harvests, 'harvest')}, "
        f"{gathered.deleted:,} deleted, ready to publish"
    ]
    if gathered.unreadable:
        left_out = tally(gathered.unreadable, "record is skipped", "records are skipped")
        lines.append(f"{left_out}: {FAULT_CODES[aggregation.UNREADABLE]}")
    formats, _ = check.open_formats(context.configuration)
    for prefix, (schema, namespace) in sorted(gathered.formats.items()):
        row = formats.get(prefix)
        if row is None or KIND not in row.crosswalks:
            lines += [
                f"{prefix} is not offered: add this row to formats.toml in the folder "
                "formats.templates to offer it",
                "  [[format]]",
                *(f"  {name} = {json.dumps(value, ensure_ascii=False)}" for name, value in (
                    ("prefix", prefix), ("schema", schema), ("namespace", namespace))),
                '  crosswalks = { harvested = "harvested-raw.xml" }',
            ]  # fmt: skip
    return "\n".join(lines)


def _home(context: Context) -> Path:
    """Return the folder for work in progress: from the arguments, else in the store's scratch."""
    return Path(context.arguments.work) if context.arguments.work else context.scratch()


def _spool(folder: Path) -> ArchiveFile:
    path = folder / "stdin"
    with intake.writing(folder), path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    return replace(ArchiveFile.of(path, "-"), named=True)
