"""Opens an obi store for an export: its runs, the replay of their logs, and the target."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from builder.context import Context
from builder.errors import UsageError
from builder.obi.replay import fold
from builder.obi.run import Committed, history
from builder.store.folder import FolderStore
from functions.database import engine
from functions.snapshot.errors import NothingPublished
from functions.snapshot.store import Writer

Opened = tuple[Sequence[Committed], engine.Connection]


@contextmanager
def open_obi(store: Writer, memory_megabytes: int, threads: int) -> Iterator[Opened]:
    """Open the committed runs, ascending, and a connection with the replay tables.

    Data beyond the memory limit is in a temporary folder, removed with the context. Raises
    NothingPublished if there is no run, DamagedStore and StoreError.
    """
    runs = history(store)
    if not runs:
        raise NothingPublished(
            f"{store.address}: this store has no templates or files yet: run `sheaf ingest`"
        )
    with tempfile.TemporaryDirectory(prefix="sheaf-export-") as folder:
        made = engine.connect(
            threads=threads, memory_megabytes=memory_megabytes, scratch=Path(folder)
        )
        with closing(made) as connection:
            fold(connection, store, runs, Path(folder))
            yield runs, connection


def open_runs(context: Context) -> AbstractContextManager[Opened]:
    """Open the runs of a command's store, as `open_obi` does."""
    memory = context.configuration["publish.memory"]
    return open_obi(context.begun_store(), memory, os.cpu_count() or 1)


def choose_runs(runs: Sequence[Committed], asked: Sequence[int] | None) -> Sequence[Committed]:
    """Return the runs that `--run` names, or all without it. Raises UsageError for others."""
    unknown = set(asked or ()) - {run.tist for run in runs}
    if unknown:
        raise UsageError(f"--run {min(unknown)}: the store has no such committed run")
    return [run for run in runs if not asked or run.tist in asked]


def target_path(store: Writer, given: str) -> Path:
    """Return the target of an export. Raises UsageError for a path within the store."""
    target = Path(given).resolve()
    if isinstance(store, FolderStore) and target.is_relative_to(store.root):
        raise UsageError(f"{given} is inside the store: choose another place")
    return target
