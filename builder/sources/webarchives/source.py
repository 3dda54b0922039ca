"""Web archives and indexes as a source of `sheaf ingest`, here or by many machines."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from builder.errors import UsageError
from builder.intake import intake
from builder.intake.paths import STDIN
from builder.progress import IngestProgress, ProgressBar
from builder.sources import SOURCES
from builder.sources.readings import NOTHING_NEW, list_names
from builder.sources.source import Claim, SourceInput, SourceReader, SourceReport, find_home
from builder.sources.webarchives.ingest import ingest, parts
from builder.sources.webarchives.ingest.engines import ENGINES, EngineOptions
from builder.sources.webarchives.ingest.ingest import IngestOptions
from builder.sources.webarchives.ingest.join import commit
from builder.sources.webarchives.ingest.plan import (
    LARGEST,
    IngestJob,
    IngestPlan,
    read_plan,
    write_plan,
)
from builder.sources.webarchives.ingest.splits import ArchiveFile
from builder.sources.webarchives.inputs import collection_sets, find_files, leave_known
from builder.sources.webarchives.rules import DocumentRules
from builder.store import workdir
from builder.store.context import Context
from builder.text import tally
from functions.snapshot.layout import S3_SCHEME


def claim(context: Context, inputs: Sequence[SourceInput]) -> Claim:
    """Take all inputs: a file that is no archive is a fault, or has failed."""
    sets = _sets(context)
    files, names = find_files(inputs, context.configuration, context.environment)
    if context.arguments.collection and not names:
        raise UsageError("--collection needs an archive file: ReDIF has series")
    return Claim((), partial(_read, context, files, names, sets) if names else None)


def _sets(context: Context) -> tuple[str, ...]:
    """Return the sets of all captures."""
    if context.arguments.collection and "collection" not in context.configuration["sets.by"]:
        raise UsageError("--collection is given, but sets.by does not name collection")
    return collection_sets(context.arguments.collection)


def _read(
    context: Context,
    files: Sequence[ArchiveFile],
    names: Sequence[str],
    sets: tuple[str, ...],
) -> SourceReport | None:
    """Read the web archive files into the intake; return None if all of them are known."""
    job = _job(context, files, sets)
    if not job.files and STDIN not in names:
        return None
    fingerprint = replace(job, files=()).fingerprint(names, context.store.address)
    folder = workdir.folder_of(find_home(context), None if STDIN in names else fingerprint)
    with workdir.open_workdir(folder) as work:
        if STDIN in names:
            stream = replace(ArchiveFile.of(work.spool(sys.stdin.buffer), STDIN), named=True)
            job = replace(job, files=(*job.files, stream))
        jobs, name = context.arguments.jobs, intake.run_name(context.now())
        with IngestProgress(job.bytes, len(job.files)) as bar:
            options = IngestOptions(bar, jobs, context.say, settings=context.configuration)
            result = ingest.ingest(context.store, job, work, options, name)
    sources = result.run.sources
    return SourceReport(
        result.text(),
        result.document(),
        faults=sum(source.faults for source in sources),
        failed=next((s.source for s in sources if s.failed), "no captures" * result.is_empty),
    )


def _job(context: Context, files: Iterable[ArchiveFile], sets: tuple[str, ...]) -> IngestJob:
    """Return the job for the web archive files, without known ones unless they were asked for."""
    home, rules = context.configuration_path.parent, DocumentRules.of(context.configuration, sets)
    files = tuple(file.relative_to(home) for file in files)
    if not context.arguments.again:
        files = leave_known(context.store, files, sets, rules, context.say, home)
    return IngestJob(files, sets, rules)


def _find_step(context: Context) -> Callable[[], int] | None:
    """Return the step of an ingest by many machines that the arguments name."""
    arguments = context.arguments
    if arguments.sources and arguments.sources[0] in _STEPS:
        return partial(_STEPS[arguments.sources[0]], context)
    if arguments.engine:
        return partial(_run_engine, context)
    if arguments.plan is not None or arguments.index is not None:
        raise UsageError("--run and --index expect `sheaf ingest part` or `sheaf ingest commit`")
    return None


def _write_plan(context: Context, names: Sequence[str]) -> IngestPlan | None:
    """Divide web archives into chunks, and keep the plan in the store; None if all are known."""
    arguments = context.arguments
    if not 1 <= arguments.chunk <= LARGEST:
        raise UsageError(f"--chunk {arguments.chunk}: expected megabytes from 1 to {LARGEST}")
    if STDIN in names:
        raise UsageError("standard input cannot be read in parts: ingest it by itself")
    inputs = [SourceInput(name) for name in dict.fromkeys(names)]
    readers = [source.load() for source in reversed(SOURCES) if source.inputs]
    is_foreign = any(reader.claim(context, inputs).read for reader in readers if reader != READER)
    files, _ = find_files(inputs, context.configuration, context.environment)
    if is_foreign or not files:
        raise UsageError("expected web archives or indexes: ingest other sources by themselves")
    places = [context.store.address, *(file.address for file in files)]
    if arguments.engine == "lambda" and not all(place.startswith(S3_SCHEME) for place in places):
        raise UsageError("--engine lambda needs a store and sources in buckets: s3://...")
    job, run = _job(context, files, _sets(context)), intake.run_name(context.now())
    return write_plan(context.store, run, job, arguments.chunk << 20) if job.files else None


def _run_engine(context: Context) -> int:
    """Read all parts by an engine, and commit them."""
    arguments = context.arguments
    plan, (uri, base) = _write_plan(context, list_names(context)), context.store_uri()
    if plan is None:
        context.result(NOTHING_NEW, {})
        return 0
    folder = Path(arguments.work).absolute() if arguments.work else None
    task = parts.PartTask(uri, base.absolute(), context.configuration, plan.run, folder)
    left = parts.list_missing(context.store, plan)
    if len(left) < plan.chunks:
        context.say(f"resuming: {plan.chunks - len(left):,} of {plan.chunks:,} parts are there")
    missing = partial(parts.list_missing, context.store, plan)
    with ProgressBar("reading", len(left), " parts") as advance:
        options = EngineOptions(arguments.jobs, arguments.scheduler or "", plan.run, missing)
        work = partial(parts.carry_out_part, task)
        for _ in ENGINES[arguments.engine](work, left, options) if left else ():
            advance(1)
    return _commit(context, plan)


def _plan(context: Context) -> int:
    """Divide web archives into chunks, which `part` reads."""
    text, document = NOTHING_NEW, {"run": "", "chunks": 0, "files": 0}
    if plan := _write_plan(context, list_names(context)[1:]):
        text = f"run {plan.run}: {tally(plan.files, 'file')} in {tally(plan.chunks, 'chunk')}"
        document = {"run": plan.run, "chunks": plan.chunks, "files": plan.files}
    context.result(text, document)
    return 0


def _part(context: Context) -> int:
    """Read one chunk."""
    plan, index = _find_plan(context), context.arguments.index
    if index is None:
        raise UsageError("ingest part needs --index N, the number of the chunk, from 0")
    with workdir.open_workdir(workdir.folder_of(find_home(context), None)) as work:
        part = parts.read_part(context.store, plan, index, work.parts, context.configuration)
    text = f"part {index} of run {plan.run}: {tally(part.captures, 'capture')}"
    context.result(text, {"run": plan.run, "captures": part.captures, "files": list(part.files)})
    return 0


def _commit(context: Context, plan: IngestPlan | None = None) -> int:
    """Make one run of all parts."""
    plan = plan or _find_plan(context)
    folder = workdir.folder_of(find_home(context), None)
    with workdir.open_workdir(folder) as work, work.scratch() as scratch:
        done = commit(context.store, plan, scratch, context.say, context.configuration)
    context.result(done.text(), done.document())
    return int(any(s.failed or (context.arguments.strict and s.faults) for s in done.run.sources))


def _find_plan(context: Context) -> IngestPlan:
    if context.arguments.plan is None or context.arguments.sources[1:]:
        raise UsageError("ingest part and ingest commit expect --run RUN, and no SOURCE")
    return read_plan(context.store, context.arguments.plan)


_STEPS = {"plan": _plan, "part": _part, "commit": _commit}
"""The steps of an ingest by many machines, by the first argument."""


READER = SourceReader(claim, find_step=_find_step)
