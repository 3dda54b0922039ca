"""Context and scratch folder of a Lambda invocation."""

import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from builder.store.context import Context
from builder.store.s3 import S3Store
from functions.snapshot.errors import SheafError


def find_surroundings() -> tuple[dict[str, str], Path, Path]:
    """Return the environment of a function, the root of its zip, and its temporary folder."""
    root = Path(os.environ.get("LAMBDA_TASK_ROOT") or Path(__file__).parents[2])
    return dict(os.environ), root, Path(tempfile.gettempdir())


@contextmanager
def open_invocation(
    environment: Mapping[str, str], root: Path, temporary: Path, name: str
) -> Iterator[tuple[Context, Path]]:
    """Open the context of a function, and an empty folder `name` in `temporary`.

    A sheaf.toml may be in the folder `root`. All temporary files go into the new folder. A
    SheafError is printed as a line on standard error, and raised again.
    """
    scratch = temporary / name
    # An invocation that reached its time limit leaves its files here.
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    arguments = Namespace(config=None, store=environment.get("SHEAF_STORE_URI"), writes=True)
    context = Context(arguments, environment)
    own = root / context.configuration_path
    if own.exists():
        context = replace(
            context, arguments=Namespace(config=str(own), store=arguments.store, writes=True)
        )
    before, tempfile.tempdir = tempfile.tempdir, str(scratch)
    try:
        yield context, scratch
    except SheafError as error:
        print(f"sheaf: {error}", file=sys.stderr, flush=True)
        raise
    finally:
        if isinstance(store := vars(context).get("store"), S3Store):  # if it was opened
            store.close()
        tempfile.tempdir = before
        shutil.rmtree(scratch, ignore_errors=True)
