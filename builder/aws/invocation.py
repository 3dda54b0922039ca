"""Context and scratch folder of a Lambda invocation."""

import shutil
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from builder.context import Context


@contextmanager
def scratch_in(temporary: Path, name: str) -> Iterator[Path]:
    """Create an empty folder in `temporary`, which is meanwhile used for temporary files."""
    scratch = temporary / name
    # An invocation that reached its time limit leaves its files here.
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    before, tempfile.tempdir = tempfile.tempdir, str(scratch)
    try:
        yield scratch
    finally:
        tempfile.tempdir = before
        shutil.rmtree(scratch, ignore_errors=True)


def context_of(environment: Mapping[str, str], root: Path) -> Context:
    """Return the context of a function; a sheaf.toml may be in the folder `root`."""
    arguments = Namespace(config=None, store=environment.get("SHEAF_STORE_URI"))
    context = Context(arguments, environment)
    own = root / context.configuration_path
    if not own.exists():
        return context
    return replace(context, arguments=Namespace(config=str(own), store=arguments.store))
