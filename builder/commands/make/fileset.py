"""`sheaf fileset`."""

import argparse
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.arguments import declare
from builder.errors import UsageError
from builder.http.settings import http_settings
from builder.progress import PartsProgress
from builder.sources.datasets import request, status, wiring
from builder.sources.datasets.ingest import Ingest, by_turns
from builder.sources.datasets.item import IngestOutcome, IngestRequest
from builder.sources.datasets.request import Queue, connect_queue
from builder.sources.datasets.result import describe, results
from builder.sources.datasets.results import Keeping, Results, open_journal
from builder.sources.datasets.strategies.keys import FILESETS, WARCS
from builder.sources.datasets.wiring import Materials
from builder.store.context import Context
from builder.store.s3 import S3Store
from builder.text import tally
from builder.threads import ThreadCrew
from functions.snapshot.errors import StoreError

_STDIN = "-"
_SLACK = timedelta(hours=1)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "request [URL|DOI]...": "landing page or DOI of a dataset; - reads requests from "
            "stdin, one JSON object with a base_url per line. This is the default if stdin is not "
            "a terminal",
            "--dry-run": "show platform, files and strategy; fetch no file, write nothing",
            "--due": "retry datasets whose embargo or restriction has ended",
            "--retry": "retry datasets that failed temporarily",
            "--queue URL": "take requests from an SQS queue until it is empty",
            "--follow": "with --queue, wait for more requests",
            "--strict": "exit with 1 if any dataset is not archived",
        },
    )


def run(context: Context) -> int:
    """Archive datasets of data platforms, with their files.

    Files are fetched, verified and stored, and a result is printed for each dataset. A repeated run
    continues: archived files are not fetched again. With requests from stdin, or with --json, each
    result is a line of JSON. `sheaf publish` then lists the datasets.
    """
    arguments = context.arguments
    _check(arguments)
    stop = threading.Event()
    with ExitStack() as stack:
        if arguments.dry_run:
            scratch = Path(stack.enter_context(TemporaryDirectory(prefix="sheaf-")))
            requests, many = _requests(context, None, stop)
            bar = stack.enter_context(PartsProgress("datasets", many))
            tale = _Tale(bar, _tells_lines(arguments), dry=True)
            process = partial(_ingest(context, scratch, stop, bar).process, dry=True)
            _carry_out(context, process, requests, stop, tale.tell)
        else:
            tale = _archive(context, stack, stop)
    counts = ", ".join(f"{many:,} {name}" for name, many in tale.counts.most_common())
    context.say(tally(tale.counts.total(), "result") + (f": {counts}" if counts else ""))
    return 1 if arguments.strict and tale.failed else 0


def _archive(context: Context, stack: ExitStack, stop: threading.Event) -> "_Tale":
    """Process the requests; results are stored, even after an error."""
    arguments = context.arguments
    queue = connect_queue(arguments.queue) if arguments.queue else None
    journal = stack.enter_context(open_journal(context.scratch(), context.store.address))
    written = Results(context.store, journal.folder / "rows", context.now)
    keeping = Keeping(written, journal, queue.settle if queue else lambda outcome: None)
    _abort_uploads(context)
    if left := keeping.recover():
        context.say(f"ingested {tally(left, 'result')} of an earlier, interrupted process")
    if queue is not None:
        stack.enter_context(queue.beating())
    requests, many = _requests(context, queue, stop)
    bar = stack.enter_context(PartsProgress("datasets", many))
    ingest, tale = _ingest(context, journal.scratch, stop, bar), _Tale(bar, _tells_lines(arguments))

    def take(outcome: IngestOutcome) -> None:
        keeping.add(outcome)
        tale.tell(outcome)

    try:
        _carry_out(context, ingest.process, requests, stop, take, keeping.tick)
    finally:
        keeping.commit()
    if keeping.runs:
        context.say("run `sheaf publish` to publish these results")
    return tale


def _carry_out(
    context: Context,
    process: Callable[[IngestRequest], IngestOutcome],
    requests: Iterator[IngestRequest],
    stop: threading.Event,
    take: Callable[[IngestOutcome], None],
    idle: Callable[[], None] = lambda: None,
) -> None:
    """Pass on the results of the requests, and after an interruption the remaining ones.

    `idle` is called now and then while none arrives.
    """
    crew: ThreadCrew[IngestOutcome] = ThreadCrew("fileset", stop)
    threads = http_settings(context.configuration, "fileset").concurrent
    try:
        with closing(crew.results(by_turns(process, requests, stop), threads, idle)) as outcomes:
            for outcome in outcomes:
                take(outcome)
    finally:
        with ExitStack() as rest:  # all results are taken, even if reporting one of them fails
            for outcome in reversed(crew.rest):
                rest.callback(take, outcome)


def _abort_uploads(context: Context) -> None:
    """Abort what killed processes left in a bucket; no living request is as old."""
    if not isinstance(context.store, S3Store):
        return
    age = timedelta(seconds=context.configuration["fileset.request_seconds"]) + _SLACK
    with suppress(StoreError):  # the keys may not allow it, and the rest works without
        for prefix in (FILESETS, WARCS):
            context.store.abort_uploads(prefix, context.now() - age)


def _ingest(context: Context, scratch: Path, stop: threading.Event, bar: PartsProgress) -> Ingest:
    settings = context.configuration
    materials = Materials(
        store=context.store,
        settings=settings,
        ways=wiring.ways(settings, stop, context.now),
        environment=context.environment,
        clock=context.now,
        scratch=scratch,
        sleep=time.sleep,
        watch=partial(bar.part, is_new=True),
    )
    return wiring.ingest(materials, stop, settings["fileset.request_seconds"])


def _check(arguments: argparse.Namespace) -> None:
    if arguments.request.count(_STDIN) > 1:
        raise UsageError("-: stdin can be given only once")
    if arguments.follow and not arguments.queue:
        raise UsageError("--follow requires --queue")
    if arguments.queue and arguments.dry_run:
        raise UsageError(
            "--queue cannot be combined with --dry-run: a dry run would remove requests from "
            "the queue"
        )
    if _reads_lines(arguments) and not arguments.request and sys.stdin.isatty():
        raise UsageError("nothing to do: give a URL or a DOI, or JSON lines on stdin")


def _reads_lines(arguments: argparse.Namespace) -> bool:
    other = arguments.request or arguments.due or arguments.retry or arguments.queue
    return _STDIN in arguments.request or not other


def _tells_lines(arguments: argparse.Namespace) -> bool:
    return arguments.json or _reads_lines(arguments)


def _requests(
    context: Context, queue: Queue | None, stop: threading.Event
) -> tuple[Iterator[IngestRequest], int | None]:
    """Return the requests, and their number if it is known."""
    arguments = context.arguments
    listed: list[IngestRequest] = []
    if arguments.due or arguments.retry:
        from builder.sources.datasets import due  # this imports DuckDB, which needs much memory

        listed += due.requests(context.store, context.now(), arguments.due, arguments.retry)
        context.say(f"{tally(len(listed), 'dataset is', 'datasets are')} due for a retry")
    listed += [request.request_of_text(text) for text in arguments.request if text != _STDIN]
    parts: list[Iterable[IngestRequest]] = [listed]
    if _reads_lines(arguments):
        parts.append(request.read_requests(sys.stdin.fileno(), stop))
    if queue is not None:
        parts.append(queue.requests(stop, lasting=arguments.follow))
    return chain.from_iterable(parts), len(listed) if len(parts) == 1 else None


@dataclass(slots=True)
class _Tale:
    """Prints results as they come, as lines of JSON or as text."""

    bar: PartsProgress
    lines: bool
    dry: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    failed: int = 0

    def tell(self, outcome: IngestOutcome) -> None:
        """Print one more result."""
        self.counts[outcome.status] += 1
        self.failed += not (status.of(outcome.status).hit or outcome.status == "pending")
        if self.lines:
            for row in results(outcome):
                self.bar.print(json.dumps(row))
        else:
            self.bar.print(describe(outcome, self.dry))
        self.bar.end_part()
