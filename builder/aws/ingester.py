"""Lambda function that ingests web archives in steps (builder.aws.ingester.handler).

A state machine calls it (infra/template.yaml, `Ingest`). Each event names a step:

    {"step": "plan", "request": {"sources": ["s3://..."], "collections": [...], "chunk": 256}}
    {"step": "plan", "request": {"sources": ["s3://..."], "again": true}}     known files, too
    {"step": "plan", "request": {"objects": [{"bucket": ..., "key": ...}]}}   of any key
    {"step": "plan", "request": {"run": RUN}}       goes on with a run that was planned before
    {"step": "part", "item": {"run": RUN, "index": 0}}
    {"step": "commit", "run": RUN}

The plan writes the missing parts as a JSON array, `items.json`, below the run's prefix; the machine
maps over it. The plan also tells how many parts may be read at once, `most` or fewer. If all files
are known, there is no run, and the machine ends. A commit fails while a part is missing. The store
is the one that SHEAF_STORE_URI names, with a sheaf.toml in the zip's root.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from builder.aws.invocation import find_surroundings, open_invocation
from builder.errors import UsageError
from builder.intake import intake
from builder.sources.readings import NOTHING_NEW
from builder.sources.source import SourceInput
from builder.sources.webarchives.ingest import parts
from builder.sources.webarchives.ingest.join import check_parts, commit
from builder.sources.webarchives.ingest.plan import (
    LARGEST,
    IngestJob,
    IngestPlan,
    read_plan,
    write_plan,
)
from builder.sources.webarchives.inputs import collection_sets, find_files, leave_known
from builder.sources.webarchives.remote import bucket_files
from builder.sources.webarchives.rules import DocumentRules
from builder.store import aws
from builder.store.context import Context
from functions.snapshot import layout
from functions.snapshot.errors import StoreError
from functions.snapshot.layout import S3_SCHEME

_SCRATCH = "sheaf-ingester"
_CHUNK = 256
"""Megabytes that an invocation reads: half a minute at 8 MB/s, where its limit is 15 minutes."""
_NEW_ACCOUNT = 10
"""Functions that run at once in a new account of AWS."""


def handler(event: Mapping[str, Any], context: object = None) -> dict[str, object]:
    """Carry out the step of the event; `context` is ignored.

    Raises SheafError: the machine reads a part again, and ends as failed without all parts.
    """
    return run(event, *find_surroundings())


def run(
    event: Mapping[str, Any], environment: Mapping[str, str], root: Path, temporary: Path
) -> dict[str, object]:
    """Carry out the step of the event on the store that `environment` names.

    Temporary files go into a folder below `temporary`. Raises SheafError, after printing it as a
    line on standard error.
    """
    with open_invocation(environment, root, temporary, _SCRATCH) as (context, scratch):
        step = _STEPS.get(str(event.get("step")))
        if step is None:
            raise UsageError(f"the event has no step of {', '.join(_STEPS)}: {event}")
        report = step(context, event, scratch)
    print(json.dumps(report), flush=True)
    return report


def _plan(context: Context, event: Mapping[str, Any], scratch: Path) -> dict[str, object]:
    """Plan a run, or find one, and list its missing parts for the machine; none without a run."""
    request, concurrency = event["request"], _find_concurrency(int(event.get("most", _NEW_ACCOUNT)))
    if "run" in request:
        plan: IngestPlan | None = read_plan(context.store, str(request["run"]))
    else:
        plan = _write_plan(context, request)
    if plan is None:
        return {"run": "", "missing": 0, "commit": False, "note": NOTHING_NEW}
    missing = parts.list_missing(context.store, plan)
    items = json.dumps([{"run": plan.run, "index": index} for index in missing]).encode()
    key = plan.key("items.json")
    context.store.remove(key)  # of an earlier execution
    context.store.put(key, BytesIO(items))
    bucket, _, prefix = context.store.address.removeprefix(S3_SCHEME).partition("/")
    return {
        "run": plan.run,
        "missing": len(missing),
        "bucket": bucket,
        "key": f"{prefix}/{key}" if prefix else key,
        "concurrency": concurrency,
        "commit": request.get("commit", True) is not False,
    }


def _find_concurrency(most: int) -> int:
    """Return how many parts may be read at once, at most `most`.

    The other half of the functions that the account has free is for what answers and publishes.
    """
    try:
        with aws.calling("the limits of this account"):
            limits = aws.connect("lambda", None).get_account_settings()["AccountLimit"]
        free = int(limits["UnreservedConcurrentExecutions"])
    except StoreError as error:
        _say(f"{error}; the limit of a new account is assumed")
        free = _NEW_ACCOUNT
    return max(1, min(most, free // 2))


def _write_plan(context: Context, request: Mapping[str, Any]) -> IngestPlan | None:
    """Return the plan of the sources in a request; None if all of them were read before."""
    sources = [str(source) for source in request.get("sources", ())]
    objects = request.get("objects", ())
    foreign = [source for source in sources if not source.startswith(S3_SCHEME)]
    if foreign or not (sources or objects):
        raise UsageError(f"sources: expected addresses such as s3://bucket/prefix, got {foreign}")
    chunk = int(request.get("chunk", _CHUNK))
    if not 1 <= chunk <= LARGEST:
        raise UsageError(f"chunk: expected megabytes from 1 to {LARGEST}, got {chunk}")
    settings = context.configuration
    inputs = list(map(SourceInput, dict.fromkeys(sources)))
    files, _ = find_files(inputs, settings, context.environment)
    for row in objects:
        bucket, key = str(row["bucket"]), str(row["key"])
        files += bucket_files.find_object(bucket, key, settings, context.environment)
    sets = collection_sets([str(name) for name in request.get("collections", ())])
    rules = DocumentRules.of(settings, sets)
    if request.get("again") is not True:
        files = leave_known(context.store, files, sets, rules, _say, Path())
    name = intake.run_name(datetime.now(UTC))
    job = IngestJob(files, sets, rules)
    return write_plan(context.store, name, job, chunk << 20) if files else None


def _part(context: Context, event: Mapping[str, Any], scratch: Path) -> dict[str, object]:
    """Read one chunk."""
    item = event["item"]
    plan, index = read_plan(context.store, str(item["run"])), int(item["index"])
    part = parts.read_part(context.store, plan, index, scratch / "part", context.configuration)
    return {"index": index, "captures": part.captures}


def _commit(context: Context, event: Mapping[str, Any], scratch: Path) -> dict[str, object]:
    """Make one run of all parts, unless `commit` is false: then see that all are there.

    The step may come twice, if its first answer was lost. Without a run there is nothing to do.
    """
    if not event["run"]:
        return {"run": ""}
    plan = read_plan(context.store, str(event["run"]))
    if event.get("commit") is False:
        check_parts(context.store, plan)
        return {"run": plan.run}
    if context.store.tag(plan.key(layout.RUN_SUMMARY)) is not None:
        return {"run": plan.run}
    done = commit(context.store, plan, scratch / "commit", _say, context.configuration)
    sources = done.run.sources
    return {
        "run": plan.run,
        "files": len(sources),
        "captures": sum(source.captures for source in sources),
        "faults": sum(source.faults for source in sources),
        "failed": sum(source.failed for source in sources),
    }


def _say(text: str) -> None:
    print(text, flush=True)


_STEPS: Mapping[str, Callable[[Context, Mapping[str, Any], Path], dict[str, object]]] = {
    "plan": _plan,
    "part": _part,
    "commit": _commit,
}
