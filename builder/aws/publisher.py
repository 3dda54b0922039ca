"""Lambda function that publishes (builder.aws.publisher.handler).

It runs the command `sheaf publish` on the store that SHEAF_STORE_URI names, with a sheaf.toml in
the zip's root. It may be called by a timer, by a committed run of the intake, or by a person. If
nothing is new it does nothing, so that it may be called too often. An event with `"redate": true`
is the option `--redate`. An event with a `task` makes it retire snapshots or check the store
instead (builder.aws.maintenance).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from builder.aws import maintenance
from builder.aws.invocation import find_surroundings, open_invocation
from builder.errors import UsageError
from builder.publish.publish import NothingToPublish
from builder.publish.rebuild import publish_formats
from builder.publish.report import report_document
from builder.store.context import Context
from functions.config.configuration import Configuration
from functions.snapshot.errors import DamagedStore, NothingPublished

_SCRATCH = "sheaf-publisher"

_PROGRAM = 900
"""Megabytes that a publish needs beside the database's (docs/reference/store.md, Publishing)."""

_LEAST = 256  # megabytes, as publish.memory has it


def handler(event: object, context: object = None) -> dict[str, object]:
    """Publish what was ingested, and return the report as `sheaf publish --json` prints it.

    The `task` of an event may be another one; `context` is ignored. Raises SheafError: Lambda
    retries, and puts an event that failed every time into the failure queue.
    """
    return run(event, *find_surroundings())


def run(
    event: object, environment: Mapping[str, str], root: Path, temporary: Path
) -> dict[str, object]:
    """Carry out the event's task on the store that `environment` names, by default a publish.

    A sheaf.toml may be in the folder `root`. Nothing else may publish in this process meanwhile.
    Temporary files go into a folder below `temporary`. Raises SheafError, after printing it as a
    line on standard error; DamagedStore if a check finds damage, which is in the printed report.
    """
    with open_invocation(environment, root, temporary, _SCRATCH) as (context, _):
        report = _carry_out(context, event if isinstance(event, Mapping) else {})
        print(json.dumps(report), flush=True)
        if report.get("damage"):
            raise DamagedStore(f"{context.store.address} is damaged; the report is in the log")
    return report


def _carry_out(context: Context, event: Mapping[str, Any]) -> dict[str, object]:
    """Return the report of the event's task."""
    settings = fit_memory(context.configuration, context.environment)
    task = event.get("task", "publish")
    try:
        if task == "expire":
            return maintenance.expire_snapshots(context, event)
        if task == "verify":
            return maintenance.verify_part(context, event, settings)
    except NothingPublished as error:
        return {"task": task, "message": str(error)}
    if task != "publish":
        raise UsageError(f"the event's task is none of publish, expire, verify: {task!r}")
    redate = event.get("redate") is True
    try:
        built = publish_formats(context.store, settings, context.runtime(), redate=redate)
    except NothingToPublish as error:
        return {"snapshot": None, "records": 0, "message": str(error)}
    return report_document(built)


def fit_memory(settings: Configuration, environment: Mapping[str, str]) -> Configuration:
    """Return the settings with the function's memory, less the program's, for the database.

    A variable of Lambda gives the megabytes; without it the settings are unchanged.
    """
    memory = environment.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
    if not memory:
        return settings
    megabytes = max(_LEAST, int(memory) - _PROGRAM)
    return settings.having("publish.memory", megabytes)
