"""Lambda function that publishes (builder.aws.publisher.handler).

It runs the command `sheaf publish` on the store that SHEAF_STORE_URI names, with a sheaf.toml in
the zip's root. It may be called by a timer, by a committed run of the intake, or by a person. If
nothing is new it does nothing, so that it may be called too often.
"""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from builder.aws.invocation import context_of, scratch_in
from builder.context import Context
from builder.publish.publish import NothingToPublish, publish
from builder.publish.report import report_document
from builder.store.s3 import S3Store
from functions.config.configuration import Configuration
from functions.oai.render import check
from functions.snapshot.errors import SheafError

_ROOT = Path(__file__).parents[2]
_SCRATCH = "sheaf-publisher"

_PROGRAM = 900
"""Megabytes that a publish needs beside the database's (docs/reference/store.md, Publishing)."""

_LEAST = 256  # megabytes, as publish.memory has it


def handler(event: object, context: object = None) -> dict[str, object]:
    """Publish what was ingested, and return the report as `sheaf publish --json` prints it.

    `event` and `context` are ignored. Raises SheafError: Lambda retries, and puts an event that
    failed every time into the failure queue.
    """
    root = Path(os.environ.get("LAMBDA_TASK_ROOT") or _ROOT)
    return run(dict(os.environ), root, Path(tempfile.gettempdir()))


def run(environment: Mapping[str, str], root: Path, temporary: Path) -> dict[str, object]:
    """Publish to the store that `environment` names; a sheaf.toml may be in the folder `root`.

    Nothing else may publish in this process meanwhile. Temporary files go into a folder below
    `temporary`. Raises SheafError, after printing it as a line on standard error.
    """
    with scratch_in(temporary, _SCRATCH):
        try:
            told = _publish(context_of(environment, root))
        except SheafError as error:
            print(f"sheaf: {error}", file=sys.stderr, flush=True)
            raise
    print(json.dumps(told), flush=True)
    return told


def _publish(context: Context) -> dict[str, object]:
    settings = fit_memory(context.configuration, context.environment)
    store = context.store
    try:
        built = publish(store, settings, context.runtime(), check.digests(settings))
    except NothingToPublish as error:
        return {"snapshot": None, "records": 0, "message": str(error)}
    finally:
        if isinstance(store, S3Store):
            store.close()
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
