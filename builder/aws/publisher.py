"""The function of AWS Lambda that publishes: its handler is builder.aws.publisher.handler.

It is the command `sheaf publish` over the store that SHEAF_STORE_URI names, with a sheaf.toml in
the zip's root. What calls it does not matter: a timer, a run of the intake that was committed, or
a person. Where there is nothing new it does nothing, so that it may be called too often.
"""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from builder.aws.invocation import context_of, scratch_in
from builder.context import Context
from builder.publish import summary
from builder.publish.publish import NothingToPublish, publish
from builder.store.s3 import S3Store
from functions.config.configuration import Configuration
from functions.oai.render import check
from functions.snapshot.errors import SheafError

_ROOT = Path(__file__).parents[2]
_SCRATCH = "sheaf-publisher"

_PROGRAM = 900
"""Megabytes that a publish takes beside the database's (docs/reference/store.md, Publishing)."""

_LEAST = 256  # megabytes, as publish.memory has it


def handler(event: object, context: object = None) -> dict[str, object]:
    """Publish what was ingested, and return the account as `sheaf publish --json` prints it.

    `event` and `context` are not looked at. Raises SheafError: Lambda tries again, and keeps what
    failed every time in the queue of failures.
    """
    root = Path(os.environ.get("LAMBDA_TASK_ROOT") or _ROOT)
    return run(dict(os.environ), root, Path(tempfile.gettempdir()))


def run(environment: Mapping[str, str], root: Path, temporary: Path) -> dict[str, object]:
    """Publish to the store that `environment` names; a sheaf.toml may lie in the folder `root`.

    Nothing else may publish in this process meanwhile. What it needs on disk goes into a folder
    below `temporary`. Raises SheafError, after a line about it on standard error.
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
        built = publish(store, settings, context.surroundings(), check.digests(settings))
    except NothingToPublish as error:
        return {"snapshot": None, "records": 0, "message": str(error)}
    finally:
        if isinstance(store, S3Store):
            store.close()
    return summary.document(built)


def fit_memory(settings: Configuration, environment: Mapping[str, str]) -> Configuration:
    """Return the settings with what of the function's memory the program leaves to the database.

    Lambda tells by a variable how many megabytes there are; without it they stay as they are.
    """
    memory = environment.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
    if not memory:
        return settings
    megabytes = max(_LEAST, int(memory) - _PROGRAM)
    return settings.having("publish.memory", megabytes)
