"""Lambda function that archives datasets (builder.aws.fileset_worker.handler).

It runs the command `sheaf fileset --queue` on the store that SHEAF_STORE_URI names. Lambda receives
the messages of a queue in batches, and deletes those that this function does not return. Returned
messages come again, until SQS moves them to the dead-letter queue. Files that were archived before
the time limit are not fetched again.
"""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from builder.aws.invocation import find_surroundings, open_invocation
from builder.http.secrets import clean_text
from builder.http.settings import http_settings
from builder.sources.datasets import wiring
from builder.sources.datasets.ingest import by_turns
from builder.sources.datasets.item import IngestOutcome, IngestRequest
from builder.sources.datasets.request import is_final, request_or_mark
from builder.sources.datasets.results import Results, is_kept
from builder.sources.datasets.wiring import Materials
from builder.store.context import Context
from builder.threads import ThreadCrew

_SCRATCH = "sheaf-filesets"
_REST = 45.0
"""Seconds before the end of the call that are reserved for writing results."""


class Clocked(Protocol):
    """The context that Lambda passes to an invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds that are left."""
        ...


def handler(event: Mapping[str, Any], context: Clocked) -> dict[str, object]:
    """Process the requests of an SQS event, and return those that must come again.

    Raises SheafError if results could not be stored: then all come again.
    """
    seconds = context.get_remaining_time_in_millis() / 1000
    return run(event["Records"], *find_surroundings(), seconds)


def run(
    records: Sequence[Mapping[str, Any]],
    environment: Mapping[str, str],
    root: Path,
    temporary: Path,
    seconds: float,
) -> dict[str, object]:
    """Process requests, one a message, for at most the given number of seconds.

    A sheaf.toml may be in the folder `root`. Temporary files go into a folder below `temporary`.
    Each request is logged as a line on standard output, errors as lines on standard error. Raises
    SheafError.
    """
    until = time.monotonic() + max(0.0, seconds - _REST)
    queued: list[tuple[str, IngestRequest]] = []
    for record in records:
        message, text = record["messageId"], record["body"]
        queued.append((message, request_or_mark(f"message {message}", text)))
    with open_invocation(environment, root, temporary, _SCRATCH) as (context, scratch):
        requests = [request for _, request in queued]
        outcomes = _ingest_requests(context, requests, scratch, until)
    again = [
        {"itemIdentifier": message}
        for message, request in queued
        if (outcome := outcomes.get(id(request))) is None or not is_final(outcome)
    ]
    return {"batchItemFailures": again}


def _ingest_requests(
    context: Context, requests: Sequence[IngestRequest], scratch: Path, until: float
) -> dict[int, IngestOutcome]:
    """Return the outcomes by request; all but interrupted ones are in a run of the intake.

    The deadline is the same for all, since requests may wait for a thread. It is of time.monotonic.
    """
    settings, store = context.configuration, context.store
    stop = threading.Event()
    outcomes: dict[int, IngestOutcome] = {}
    materials = Materials(
        store=store,
        settings=settings,
        ways=wiring.ways(settings, stop, context.now),
        environment=context.environment,
        clock=context.now,
        scratch=scratch,
    )
    ingest = wiring.ingest(materials, stop, settings["fileset.request_seconds"], until)
    results = Results(store, scratch / "rows", context.now)
    crew: ThreadCrew[IngestOutcome] = ThreadCrew("fileset", stop)
    work = by_turns(ingest.process, requests, stop)
    for outcome in crew.results(work, http_settings(settings, "fileset").concurrent):
        outcomes[id(outcome.request)] = outcome
        if is_kept(outcome):
            results.add(outcome)
        print(json.dumps(_log_entry(outcome)), flush=True)
    results.commit()
    return outcomes


def _log_entry(outcome: IngestOutcome) -> dict[str, object]:
    """Return the log entry of an outcome, without the manifest, which would be too long."""
    item = outcome.item
    return {
        "status": outcome.status,
        "base_url": clean_text(outcome.request.base_url),
        "detail": outcome.detail,
        "platform": item and [item.platform_name, item.platform_domain, item.platform_id],
        "strategy": outcome.archived.ingest_strategy if outcome.archived else outcome.strategy,
        "files": len(outcome.archived.manifest) if outcome.archived else None,
    }
