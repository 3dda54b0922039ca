"""Engines: they read the parts of a planned ingest, in processes of this machine or on a cluster.

An engine maps `carry_out_part` over the numbers of chunks, and yields each number when its part is
there. To add one, write a function here and name it in ENGINES; its package is an extra of Sheaf.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from builder.errors import UsageError
from builder.ingest import pool
from builder.ingest.parts import read_part
from builder.ingest.plan import read_plan
from builder.store.s3 import open_store
from functions.config.configuration import Configuration
from functions.snapshot.errors import StoreError
from functions.store.connection import BucketConnection


@dataclass(frozen=True, slots=True)
class PartTask:
    """What a machine needs to read parts of a run; the credentials are in its environment.

    `folder` is for unfinished files (None: the machine's own for temporary files).
    """

    store: str
    base: Path
    settings: Configuration
    run: str
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Processes on this machine, and the address of a cluster's scheduler ("": none)."""

    jobs: int = 1
    scheduler: str = ""


Engine = Callable[[PartTask, Sequence[int], EngineOptions], Iterator[int]]


def carry_out_part(task: PartTask, index: int) -> int:
    """Read one chunk and return its number. Raises UsageError and StoreError."""
    store = open_store(task.store, task.base, task.settings, os.environ)
    try:
        plan, connection = read_plan(store, task.run), BucketConnection.of(task.settings)
        with tempfile.TemporaryDirectory(prefix="sheaf-part-", dir=task.folder) as folder:
            read_part(store, plan, index, Path(folder), connection)
    finally:
        store.close()
    return index


def _read_locally(task: PartTask, indexes: Sequence[int], options: EngineOptions) -> Iterator[int]:
    tasks = [partial(carry_out_part, task, index) for index in indexes]
    yield from pool.map_tasks(_call, tasks, options.jobs, lambda read, captures: None)


def _call(work: Callable[[], int], advance: pool.Advance) -> int:
    return work()


def _read_on_dask(task: PartTask, indexes: Sequence[int], options: EngineOptions) -> Iterator[int]:
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise UsageError("the engine dask needs `pip install sheaf-archive[dask]`") from error
    # Without a scheduler, Dask starts processes on this machine.
    own = {"n_workers": options.jobs, "threads_per_worker": 1, "dashboard_address": None}
    cluster: dict[str, Any] = {"address": options.scheduler} if options.scheduler else own
    try:
        client = Client(**cluster)
    except (OSError, ValueError) as error:
        raise StoreError(f"Dask at {options.scheduler} cannot be used: {error}") from error
    with client:
        # A part may be read twice, so that a worker that is lost costs its parts only.
        futures = client.map(partial(carry_out_part, task), indexes, pure=False)
        for future in as_completed(futures):
            yield future.result()


ENGINES: Mapping[str, Engine] = {"local": _read_locally, "dask": _read_on_dask}
"""Each engine by the name that --engine gives it."""
