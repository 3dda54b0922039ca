"""`sheaf ingest`."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from builder.arguments import declare
from builder.errors import UsageError
from builder.intake import intake
from builder.intake.paths import is_folder
from builder.obi.run import ObiRuntime
from builder.progress import IngestProgress, ProgressBar
from builder.sources.redif import ingest as redif
from builder.sources.redif.account import RedifReport
from builder.sources.redif.job import RedifJob, accept_held, is_done, plan_jobs
from builder.sources.redif.read_files import NOTHING_NEW, leave_known, list_failed
from builder.sources.redif.source import STDIN, Sources, read_list, sort_sources
from builder.sources.redif.staging import Acceptance
from builder.sources.webarchives.ingest import ingest
from builder.sources.webarchives.ingest.commit import commit
from builder.sources.webarchives.ingest.engines import ENGINES, EngineOptions
from builder.sources.webarchives.ingest.ingest import IngestOptions
from builder.sources.webarchives.ingest.parts import (
    PartTask,
    carry_out_part,
    list_missing,
    read_part,
)
from builder.sources.webarchives.ingest.plan import (
    LARGEST,
    IngestJob,
    IngestPlan,
    read_plan,
    write_plan,
)
from builder.sources.webarchives.ingest.result import IngestResult
from builder.sources.webarchives.ingest.splits import ArchiveFile
from builder.sources.webarchives.remote.files import SourceAccess
from builder.sources.webarchives.rules import DocumentRules
from builder.store import workdir
from builder.store.context import Context
from builder.text import tally
from functions.snapshot import layout
from functions.snapshot.layout import S3_SCHEME


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "sources [SOURCE]...": "ARC, WARC, WACZ, CDX, CDXJ files; trees and tarballs of ReDIF; "
            "folders of these, or of `sheaf harvest`; s3://bucket/prefix; URLs; - for stdin "
            "(default: redif.directory)",
            "-f,--file TARBALL...": "a tarball of ReDIF, dated by its name or by --tist; several "
            "are read in the order of their dates, before any SOURCE",
            "--tist TIME": "date of a single TARBALL, or of the ReDIF in the SOURCEs: seconds "
            "since 1970, or a date",
            "--accept-loss [ARCHIVE]...": "delete missing templates, however many. With a name, "
            "such as aaa: those of that ARCHIVE, even if its folder is missing. Without: those of "
            "all archives that were read completely, and those outside archives",
            "--collection SPEC...": "collection of all captures, with levels separated by colons",
            "--jobs N": "files, or ranges of large files, to read in parallel (default: one per "
            "processor)",
            "--work FOLDER": "folder for intermediate results (default: .tmp/ of a store in a "
            "folder; sheaf/ in $XDG_CACHE_HOME or ~/.cache for a bucket)",
            "--files-from FILE": "a list of SOURCEs, one a line",
            "--retry": "read again what could not be read",
            "--again": "read known files, too",
            "--strict": "exit with 1 if there are faults",
            "--run RUN as plan": "with part and commit: the run",
            "--index N": "with part: the chunk, from 0",
            "--chunk MB": "chunk size (256)",
            "--engine": "where parts are read",
            "--scheduler ADDRESS": "of dask, spark, or lambda (ARN)",
        },
        jobs={"default": os.cpu_count() or 1},
        chunk={"default": 256},
        engine={"action": "store", "choices": ENGINES},
    )
    parser.epilog = (
        "A file fails if it cannot be read. It also fails if it should be an archive, by its name, "
        "its content or because you named it, and has faults but no captures.\n\n"
        "Many machines: `ingest plan SOURCE...` divides web archives into chunks and prints the "
        "RUN. `ingest part --run RUN --index N` reads chunk N, on any machine, in any order. "
        "`ingest commit --run RUN` makes one run of all parts. A source named plan is ./plan."
    )


def run(context: Context) -> int:
    """Read web archives, harvests and ReDIF for the next publish.

    Captures and harvested records go into the intake, templates into the obi store.
    """
    arguments = context.arguments
    if arguments.jobs < 1:
        raise UsageError(f"--jobs {arguments.jobs}: expected a number from 1")
    if arguments.sources and arguments.sources[0] in _STEPS:
        return _STEPS[arguments.sources[0]](context)
    if arguments.engine:
        return _run_engine(context)
    if arguments.plan is not None or arguments.index is not None:
        raise UsageError("--run and --index expect `sheaf ingest part` or `sheaf ingest commit`")
    sets, accepted = _sets(context), Acceptance.of(arguments.accept_loss)
    connection = SourceAccess.of(context.configuration)
    names, own = _find_sources(context), context.configuration["redif.directory"]
    if not (names or arguments.file or arguments.retry):
        if not own:
            raise UsageError("nothing to read: name a SOURCE, or set redif.directory to a folder")
        names = [str(context.configuration_path.parent / own)]
    harvests = {source: _find_harvests(source) for source in names}
    others = [source for source, inside in harvests.items() if not inside]
    sources = sort_sources(others, connection, context.environment)
    jobs = plan_jobs(arguments.file, arguments.tist, sources, accepted)
    if arguments.collection and not sources.archives:
        raise UsageError("--collection needs an archive file: ReDIF has series")
    context.store.tag(layout.POINTER)  # an unreachable store is reported now, not after hours
    reports = [report for job in jobs if (report := _redif(context, job))]
    lines = [report.text() for report in reports]
    document: dict[str, Any] = {"redif": [*map(asdict, reports)]} if jobs else {}
    faults = any(report.faults for report in reports)
    failed = False
    if folders := [*dict.fromkeys(folder for inside in harvests.values() for folder in inside)]:
        from builder.sources.harvest import aggregation

        gathered = aggregation.aggregate(context, folders, _home(context), again=arguments.again)
        lines.append(gathered.text(aggregation.list_offered(context)))
        document["harvested"] = asdict(gathered)
        faults = faults or gathered.faults.total() > 0
        failed = not gathered.is_whole
    if done := sources.archives and _archives(context, sources, sets, connection):
        lines.append(done.text())
        document |= done.document()
        faults = faults or any(s.faults for s in done.run.sources)
        failed = failed or any(s.failed for s in done.run.sources)
    lines = lines or ["no file to read again" if arguments.retry else NOTHING_NEW]
    context.result("\n".join(lines), document)
    return 1 if failed or (arguments.strict and faults) else 0


def _find_harvests(source: str) -> tuple[Path, ...]:
    """Return the folders of `sheaf harvest` at a source."""
    if source == STDIN or not is_folder(source):
        return ()
    from builder.sources.harvest.ingest import find  # loads the renderer

    return find(source)


def _sets(context: Context) -> tuple[str, ...]:
    """Return the sets of all captures."""
    if context.arguments.collection and "collection" not in context.configuration["sets.by"]:
        raise UsageError("--collection is given, but sets.by does not name collection")
    return ingest.collection_sets(context.arguments.collection)


def _find_sources(context: Context) -> list[str]:
    """Return the sources of the arguments and of the list, and those that failed."""
    arguments, sources = context.arguments, list(context.arguments.sources)
    if arguments.files_from:
        sources += read_list(arguments.files_from, sys.stdin)
    if arguments.retry:
        sources += list_failed(context.store, context.configuration_path.parent, context.say)
    return sources


def _redif(context: Context, job: RedifJob) -> RedifReport | None:
    """Ingest ReDIF as one run; return None for a replay that was done before."""
    store, report, job = context.store, None, accept_held(context.store, job)
    if not is_done(store, job):
        arguments, home = context.arguments, _home(context)
        runtime = redif.RedifRuntime(
            ObiRuntime(context.now, context.sleep, context.say),
            ProgressBar,
            arguments.jobs,
            context.configuration["redif.largest"] << 20,
            context.configuration["redif.encodings"],
            home,
            arguments.again,
        )
        folder = workdir.folder_of(home, json.dumps([store.address, job.fingerprint()]))
        with workdir.open_workdir(folder) as work:
            report = redif.ingest(store, job, work, runtime)
    if report is None:
        context.say(f"{job.label}: already ingested, as of {job.tist}")
    return report


def _archives(
    context: Context, sources: Sources, sets: tuple[str, ...], connection: SourceAccess
) -> IngestResult | None:
    """Read the web archive files into the intake; return None if all of them are known."""
    job = _job(context, sources, sets)
    if not job.files and STDIN not in sources.archives:
        return None
    fingerprint = replace(job, files=()).fingerprint(sources.archives, context.store.address)
    folder = workdir.folder_of(_home(context), None if STDIN in sources.archives else fingerprint)
    with workdir.open_workdir(folder) as work:
        if STDIN in sources.archives:
            job = replace(
                job,
                files=(
                    *job.files,
                    replace(ArchiveFile.of(work.spool(sys.stdin.buffer), "-"), named=True),
                ),
            )
        jobs, name = context.arguments.jobs, intake.run_name(context.now())
        with IngestProgress(job.bytes, len(job.files)) as bar:
            options = IngestOptions(bar, jobs, context.say, connection=connection)
            return ingest.ingest(context.store, job, work, options, name)


def _job(context: Context, sources: Sources, sets: tuple[str, ...]) -> IngestJob:
    """Return the job for the web archive files, without known ones unless they were asked for."""
    home, rules = context.configuration_path.parent, DocumentRules.of(context.configuration, sets)
    files = tuple(file.relative_to(home) for file in sources.files)
    if not context.arguments.again:
        files = leave_known(context.store, files, sets, rules, context.say, home)
    return IngestJob(files, sets, rules)


def _write_plan(context: Context, names: Sequence[str]) -> IngestPlan | None:
    """Divide web archives into chunks, and keep the plan in the store; None if all are known."""
    arguments, connection = context.arguments, SourceAccess.of(context.configuration)
    if not 1 <= arguments.chunk <= LARGEST:
        raise UsageError(f"--chunk {arguments.chunk}: expected megabytes from 1 to {LARGEST}")
    if STDIN in names:
        raise UsageError("standard input cannot be read in parts: ingest it by itself")
    sources = sort_sources(names, connection, context.environment)
    if sources.redif or sources.dated or not sources.files:
        raise UsageError("expected web archives or indexes: ingest other sources by themselves")
    places = [context.store.address, *(file.address for file in sources.files)]
    if arguments.engine == "lambda" and not all(place.startswith(S3_SCHEME) for place in places):
        raise UsageError("--engine lambda needs a store and sources in buckets: s3://...")
    job, run = _job(context, sources, _sets(context)), intake.run_name(context.now())
    return write_plan(context.store, run, job, arguments.chunk << 20) if job.files else None


def _run_engine(context: Context) -> int:
    """Read all parts by an engine, and commit them."""
    arguments = context.arguments
    plan, (uri, base) = _write_plan(context, _find_sources(context)), context.store_uri()
    if plan is None:
        context.result(NOTHING_NEW, {})
        return 0
    folder = Path(arguments.work).absolute() if arguments.work else None
    task = PartTask(uri, base.absolute(), context.configuration, plan.run, folder)
    left = list_missing(context.store, plan)
    if len(left) < plan.chunks:
        context.say(f"resuming: {plan.chunks - len(left):,} of {plan.chunks:,} parts are there")
    missing = partial(list_missing, context.store, plan)
    with ProgressBar("reading", len(left), " parts") as advance:
        options = EngineOptions(arguments.jobs, arguments.scheduler or "", plan.run, missing)
        work = partial(carry_out_part, task)
        for _ in ENGINES[arguments.engine](work, left, options) if left else ():
            advance(1)
    return _commit(context, plan)


def _plan(context: Context) -> int:
    """Divide web archives into chunks, which `part` reads."""
    text, document = NOTHING_NEW, {"run": "", "chunks": 0, "files": 0}
    if plan := _write_plan(context, _find_sources(context)[1:]):
        text = f"run {plan.run}: {tally(plan.files, 'file')} in {tally(plan.chunks, 'chunk')}"
        document = {"run": plan.run, "chunks": plan.chunks, "files": plan.files}
    context.result(text, document)
    return 0


def _part(context: Context) -> int:
    """Read one chunk."""
    plan, index = _find_plan(context), context.arguments.index
    connection = SourceAccess.of(context.configuration)
    if index is None:
        raise UsageError("ingest part needs --index N, the number of the chunk, from 0")
    with workdir.open_workdir(workdir.folder_of(_home(context), None)) as work:
        part = read_part(context.store, plan, index, work.parts, connection)
    text = f"part {index} of run {plan.run}: {tally(part.captures, 'capture')}"
    context.result(text, {"run": plan.run, "captures": part.captures, "files": list(part.files)})
    return 0


def _commit(context: Context, plan: IngestPlan | None = None) -> int:
    """Make one run of all parts."""
    plan = plan or _find_plan(context)
    connection = SourceAccess.of(context.configuration)
    with workdir.open_workdir(workdir.folder_of(_home(context), None)) as work:
        with work.scratch() as scratch:
            done = commit(context.store, plan, scratch, context.say, connection)
        work.remove()
    context.result(done.text(), done.document())
    return int(any(s.failed or (context.arguments.strict and s.faults) for s in done.run.sources))


def _find_plan(context: Context) -> IngestPlan:
    if context.arguments.plan is None or context.arguments.sources[1:]:
        raise UsageError("ingest part and ingest commit expect --run RUN, and no SOURCE")
    return read_plan(context.store, context.arguments.plan)


_STEPS = {"plan": _plan, "part": _part, "commit": _commit}
"""The steps of an ingest by many machines, by the first argument."""


def _home(context: Context) -> Path:
    """Return the folder for work in progress: from the arguments, else in the store's scratch."""
    return Path(context.arguments.work or context.scratch())
