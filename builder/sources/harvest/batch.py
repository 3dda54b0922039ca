"""Batch of harvests in a thread pool, with a limit for each host, and their reports.

A report is text or JSON.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from urllib.parse import urlsplit

from builder.http.errors import Deferred
from builder.http.secrets import strip_secrets
from builder.sources.harvest.run import HarvestJob, HarvestResult
from builder.sources.harvest.state import COMPLETE, LOST, PARTIAL
from builder.text import tally, visible
from builder.threads import ThreadCrew
from functions.snapshot.errors import SheafError

_TICK = 0.2
_MOST = 32
"""Maximum number of threads, whatever the number of hosts."""
_SHOWN = 10
JobOutcome = tuple[HarvestJob, HarvestResult | SheafError]


@dataclass(slots=True)
class HarvestThreads:
    """Runs harvests by `work`, which raises SheafError; `per_host` at a time from one host.

    `stop` ends the running harvests; they keep the records received.
    """

    work: Callable[[HarvestJob], HarvestResult]
    per_host: int
    stop: threading.Event
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _active: Counter[str] = field(init=False, default_factory=Counter)

    def outcomes(self, jobs: Sequence[HarvestJob]) -> Generator[JobOutcome, None, None]:
        """Yield each harvest with its result, or its error, in the order in which they end.

        Closing the generator early stops all threads; each keeps the records received.
        """
        waiting = deque(jobs)
        crew: ThreadCrew[JobOutcome] = ThreadCrew("harvest", self.stop)
        yield from crew.results(lambda: self._turns(waiting), min(_MOST, len(waiting)))

    def _turns(self, waiting: deque[HarvestJob]) -> Iterator[JobOutcome]:
        while not self.stop.is_set() and waiting:
            with self._lock:
                free = (job for job in waiting if self._active[_host(job)] < self.per_host)
                if (job := next(free, None)) is not None:
                    waiting.remove(job)
                    self._active[_host(job)] += 1
            if job is None:
                self.stop.wait(_TICK)
                continue
            result: HarvestResult | SheafError
            try:
                result = self.work(job)
            except Deferred:
                return
            except SheafError as error:
                result = error
            finally:
                with self._lock:
                    self._active[_host(job)] -= 1
            yield job, result


def _host(job: HarvestJob) -> str:
    return urlsplit(job.base_url).hostname or ""


def report_text(outcome: HarvestResult) -> str:
    """Return the report of one harvest: one line, and more lines for faults and remarks."""
    counts = outcome.counts
    if not outcome.number:
        return visible(f"{outcome.job.named}: nothing came") + f"\n  {visible(outcome.error or '')}"
    changes = [f"{counts.new:,} new", f"{counts.changed + counts.another:,} changed"]
    if counts.same:
        changes.append(f"{counts.same:,} as before")
    if counts.deleted:
        changes.append(f"{counts.deleted:,} of them deleted")
    if counts.mended:
        changes.append(f"{counts.mended:,} mended")
    head = "complete" if outcome.status == COMPLETE else outcome.status
    lines = [
        f"{outcome.job.named}: {head}: {tally(counts.distinct, 'record')} "
        f"({', '.join(changes)}) in {tally(counts.pages, 'page')}, run {outcome.number}"
    ]
    lines += [f"  {note}" for note in outcome.notes]
    if counts.lost:
        lines.append(f"  {tally(counts.lost, 'record')} could not be harvested:")
        lines += [f"    {identifier or '?'}: {why}" for identifier, why in outcome.lost[:_SHOWN]]
        if counts.lost > _SHOWN:
            where = "harvest.json names them" if counts.lost <= LOST else "harvest.json names some"
            lines.append(f"    and {counts.lost - _SHOWN:,} more: {where}")
    for names, what in (
        (outcome.unlisted, "no longer listed"),
        (outcome.bare, "without metadata, which ends the item in this format"),
    ):
        lines += [f"  {what}:"] if names else []
        lines += [f"    {name}" for name in names[:_SHOWN]]
        if len(names) > _SHOWN:
            lines.append(f"    and {len(names) - _SHOWN:,} more: --json names them")
    if outcome.error is not None:
        lines.append(f"  {outcome.error}")
        if outcome.status == PARTIAL:
            lines.append("  run the command again to continue")
    return "\n".join(visible(line) for line in lines)


def report_json(outcome: HarvestResult) -> dict[str, object]:
    """Return the report that --json prints."""
    counts = asdict(outcome.counts)
    counts["changed"] += counts.pop("another")
    return counts | {
        "base_url": strip_secrets(outcome.job.base_url),
        "prefix": outcome.job.prefix,
        "set": outcome.job.set,
        "folder": str(outcome.folder),
        "run": outcome.number,
        "status": outcome.status,
        "records": outcome.counts.distinct,
        "rows": outcome.rows,
        "bare": list(outcome.bare),
        "unlisted": list(outcome.unlisted),
        "missing": [{"identifier": name, "why": why} for name, why in outcome.lost],
        "notes": list(outcome.notes),
        "error": outcome.error,
    }
