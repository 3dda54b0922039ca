"""ReDIF as a source of `sheaf ingest`: trees, and tarballs, each a state at its own time."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from pathlib import Path

from builder.errors import UsageError
from builder.intake.paths import STDIN, is_folder, list_files
from builder.obi.key import DAY_START, parse_tist
from builder.obi.run import ObiRuntime
from builder.progress import ProgressBar
from builder.sources.redif import ingest, tarball
from builder.sources.redif.account import RedifReport
from builder.sources.redif.ingest import RedifJob, RedifRuntime, accept_held, is_done
from builder.sources.redif.spool import FileOrigin, RedifFile
from builder.sources.redif.staging import Acceptance
from builder.sources.redif.tree import other_files, tree_members
from builder.sources.source import Claim, SourceInput, SourceReader, SourceReport, find_home
from builder.store import workdir
from builder.store.context import Context


def claim(context: Context, inputs: Sequence[SourceInput]) -> Claim:
    """Take trees and tarballs, and leave the other files that lie in their folders.

    Tarballs that lie in a folder together are states at their own times.
    """
    arguments, accepted = context.arguments, Acceptance.of(context.arguments.accept_loss)
    rest: list[SourceInput] = []
    origins: list[FileOrigin] = []
    states = list(arguments.file)
    for source in inputs:
        name, path = source.name, Path(source.name)
        if name == STDIN or "://" in name or source.files is not None:
            rest.append(source)
        elif path.is_file() and tarball.holds_redif(path):
            origins.append(FileOrigin(path, name, False))
        elif not is_folder(name):
            rest.append(source)
        elif any(isinstance(member, RedifFile) for member in tree_members(path)):
            origins.append(FileOrigin(path, name, True))
            rest.append(SourceInput(name, tuple(sorted(other_files(path))), is_rest=True))
        else:
            files = list_files([name])
            named = (file for file in files if tarball.NAME.search(file.name))
            dated = {file for file in named if tarball.holds_redif(file)}
            states += (str(file) for file in files if file in dated)
            rest.append(SourceInput(name, tuple(file for file in files if file not in dated)))
    tist = arguments.tist and parse_tist(arguments.tist, "--tist", DAY_START)
    if arguments.tist and len(states) + bool(origins) != 1:
        raise UsageError("--tist expects either one TARBALL or SOURCEs of ReDIF")
    jobs = [RedifJob((origin,), at, accepted) for origin, at in _date_tarballs(states, tist)]
    if origins:
        jobs.append(RedifJob(tuple(origins), tist, accepted))
    return Claim(rest, partial(_read, context, jobs) if jobs else None)


def _find_defaults(context: Context) -> Sequence[str] | None:
    """Return the folder of the configuration; None if there are tarballs."""
    own = context.configuration["redif.directory"]
    Acceptance.of(context.arguments.accept_loss)  # it may have taken a source for an archive
    names = [str(context.configuration_path.parent / own)] if own else []
    return None if context.arguments.file else names


def _date_tarballs(paths: Sequence[str], tist: int | None) -> list[tuple[FileOrigin, int]]:
    """Return tarballs with their times, ascending; `tist` is the time of a single tarball.

    Raises UsageError for a file that is no tarball of ReDIF, or that has no time.
    """
    origins: list[tuple[FileOrigin, int]] = []
    for name in dict.fromkeys(paths):
        path = Path(name)
        if is_folder(name) or not path.is_file():
            raise UsageError(f"{name}: no such file")
        own = tarball.tist_of(path.name) if tist is None else tist
        if own is None:
            raise UsageError(
                f"{name} has no date in its name, such as RePEc_2025-01-05.tar.gz: give --tist"
            )
        if not tarball.holds_redif(path):
            raise UsageError(f"{name} is not a tarball with .rdf or .redif files")
        origins.append((FileOrigin(path, name, False), own))
    origins.sort(key=lambda each: (each[1], each[0].label))
    for (first, at), (other, then) in pairwise(origins):
        if at == then:
            raise UsageError(
                f"{first.label} and {other.label} have the same time: ingest one of them "
                "separately with --tist"
            )
    return origins


def _read(context: Context, jobs: Sequence[RedifJob]) -> SourceReport:
    """Ingest each job as one run of the obi store; replays that were done before are left out."""
    reports = [report for job in jobs if (report := _ingest(context, job))]
    return SourceReport(
        "\n".join(report.text() for report in reports),
        {"redif": [*map(asdict, reports)]},
        faults=sum(sum(report.faults.values()) for report in reports),
        new=sum(report.appearances + report.reappearances for report in reports),
        changed=sum(report.changes for report in reports),
        deleted=sum(report.deletions for report in reports),
    )


def _ingest(context: Context, job: RedifJob) -> RedifReport | None:
    store, report, job = context.store, None, accept_held(context.store, job)
    if not is_done(store, job):
        arguments, home = context.arguments, find_home(context)
        runtime = RedifRuntime(
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
            report = ingest.ingest(store, job, work, runtime)
    if report is None:
        context.say(f"{job.label}: already ingested, as of {job.tist}")
    return report


READER = SourceReader(claim, _find_defaults)
