"""Lambda function that archives datasets (builder.aws.fileset_worker.handler).

It runs the command `sheaf fileset --queue` on the store that SHEAF_STORE_URI names. Lambda receives
the messages of a queue in batches, and deletes those that this function does not return. Returned
messages come again, until SQS moves them to the dead-letter queue. Files that were archived before
the time limit are not fetched again.
"""

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from builder.aws.invocation import context_of, scratch_in
from builder.context import Context
from builder.filesets import wiring
from builder.filesets.item import IngestOutcome, IngestRequest
from builder.filesets.request import BadLine, invalid_request, is_final, parse_request
from builder.filesets.results import Results, is_kept
from builder.filesets.session import FilesetSession
from builder.filesets.wiring import Materials
from builder.http.secrets import clean_text
from builder.http.settings import http_settings
from builder.store.s3 import S3Store
from functions.snapshot.errors import SheafError

_ROOT = Path(__file__).parents[2]
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
    root = Path(os.environ.get("LAMBDA_TASK_ROOT") or _ROOT)
    seconds = context.get_remaining_time_in_millis() / 1000
    return run(event["Records"], dict(os.environ), root, Path(tempfile.gettempdir()), seconds)


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
    asked = [_parse(record["messageId"], record["body"]) for record in records]
    with scratch_in(temporary, _SCRATCH) as scratch:
        context = context_of(environment, root)
        try:
            found = _ingest_requests(context, [one.request for one in asked], scratch, until)
        except SheafError as error:
            print(f"sheaf: {error}", file=sys.stderr, flush=True)
            raise
    outcomes = [(queued.message, found.get(id(queued.request))) for queued in asked]
    again = [message for message, ended in outcomes if ended is None or not is_final(ended)]
    return {"batchItemFailures": [{"itemIdentifier": message} for message in again]}


@dataclass(frozen=True, slots=True)
class _QueuedRequest:
    message: str
    request: IngestRequest


def _parse(message: str, text: str) -> _QueuedRequest:
    try:
        return _QueuedRequest(message, parse_request(text))
    except BadLine as error:
        return _QueuedRequest(message, invalid_request(f"message {message}: {error}", text))


def _ingest_requests(
    context: Context, requests: Sequence[IngestRequest], scratch: Path, until: float
) -> dict[int, IngestOutcome]:
    """Return the outcomes by request; all but interrupted ones are in a run of the intake.

    The deadline is the same for all, since requests may wait for a thread. It is of time.monotonic.
    """
    settings, store = context.configuration, context.store
    stop = threading.Event()
    found: dict[int, IngestOutcome] = {}
    try:
        materials = Materials(
            store=store,
            settings=settings,
            ways=wiring.ways(settings, stop, scratch, context.now),
            environment=context.environment,
            clock=context.now,
            scratch=scratch,
        )
        ingest = wiring.ingest(materials, stop, settings["fileset.request_seconds"], until)
        results = Results(store, scratch / "rows", context.now)
        session = FilesetSession(
            ingest.process, http_settings(settings, "fileset").concurrent, stop
        )
        for outcome in session.outcomes(requests):
            found[id(outcome.request)] = outcome
            if is_kept(outcome):
                results.add(outcome)
            print(json.dumps(_log_entry(outcome)), flush=True)
        results.commit()
    finally:
        if isinstance(store, S3Store):
            store.close()
    return found


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
