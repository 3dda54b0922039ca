"""Jobs: what an ingest of ReDIF makes a run of, and whether it was done."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder.errors import UsageError
from builder.obi import log
from builder.obi.history import history
from builder.obi.key import DAY_START, parse_tist
from builder.sources.redif.source import Sources, tarballs
from builder.sources.redif.spool import FileOrigin
from builder.sources.redif.staging import Acceptance
from functions.snapshot.store import Writer

KIND = "ingest"
"""The kind of these runs."""
_VERSION = 1  # version of the fingerprint

Bar = Callable[[str, int | None, str], AbstractContextManager[Callable[[int], None]]]
"""Opens a progress bar: its label, the total (None if unknown) and the unit."""


@dataclass(frozen=True, slots=True)
class RedifJob:
    """What to ingest as one run: sources, the time if it is given, and accepted losses."""

    origins: tuple[FileOrigin, ...]
    tist: int | None = None
    accepted: Acceptance = field(default_factory=Acceptance)

    @property
    def label(self) -> str:
        """The names of the sources."""
        return ", ".join(origin.label for origin in self.origins)

    def fingerprint(self) -> str:
        """Return a text that identifies the request, but not the content of its files."""
        places = [str(origin.path.absolute()) for origin in self.origins]
        return json.dumps([_VERSION, places, self.tist])


def plan_jobs(
    files: Sequence[str],
    time: str | None,
    sources: Sources,
    accepted: Acceptance,
) -> list[RedifJob]:
    """Return the runs in order: of tarballs at their dates, and one of the other sources.

    `time` dates the one tarball, or else the sources. Raises UsageError.
    """
    tist = None if time is None else parse_tist(time, "--tist", DAY_START)
    states = [*files, *sources.dated]
    if tist is not None and len(states) + bool(sources.redif) != 1:
        raise UsageError("--tist expects either one TARBALL or SOURCEs of ReDIF")
    jobs = [RedifJob((origin,), at, accepted) for origin, at in tarballs(states, tist)]
    return [*jobs, RedifJob(sources.redif, tist, accepted)] if sources.redif else jobs


def is_done(store: Writer, job: RedifJob) -> bool:
    """Return whether the job's single source was ingested as of its time. Raises DamagedStore."""
    if job.tist is None or len(job.origins) != 1:
        return False
    (origin,) = job.origins
    return any(
        (run.time, run.kind, Path(run.source).name) == (job.tist, KIND, origin.path.name)
        for run in history(store)
    )


def accept_held(store: Writer, job: RedifJob) -> RedifJob:
    """Return the job a second later if it was done before and held losses that it now accepts.

    Any other job is returned unchanged. Raises DamagedStore.
    """
    while job.tist is not None and is_done(store, job):
        homes = log.read_held(store, history(store), job.tist)
        if not any(job.accepted.everything or home in job.accepted.archives for home in homes):
            break
        job = replace(job, tist=job.tist + 1)
    return job
