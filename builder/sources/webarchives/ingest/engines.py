"""Engines: they map a function over the chunks of a planned ingest, here or on a cluster.

To add one, write a function that applies `work` to each number, in any order and on whichever
machine, and yields the results; name it in ENGINES. Its package is an extra of Sheaf.

The engine lambda runs the state machine that infra/template.yaml deploys (`Ingest`). The machine
lists the missing parts, and has a Lambda function read each one (builder.aws.ingester). Progress is
seen in the store, so that it does not depend on the service.
"""

import json
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from builder.errors import UsageError
from builder.intake import pool
from builder.store import aws
from functions.snapshot.errors import SheafError, StoreError

_MACHINE = re.compile(r"arn:[a-z-]+:states:([a-z0-9-]+):\d{12}:stateMachine:[A-Za-z0-9_-]+")
_WAIT = 2.0  # seconds between two looks at the store
_RUNNING = "RUNNING"


Work = Callable[..., int]
"""Reads the chunk of a number, and returns the number. It can be pickled."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Processes on this machine, and the address of a cluster's scheduler ("": none).

    `run` is the name of the run, and `missing` lists the chunks whose part is not there.
    """

    jobs: int = 1
    scheduler: str = ""
    run: str = ""
    missing: Callable[[], Sequence[int]] = tuple
    sleep: Callable[[float], None] = time.sleep


_ATTEMPTS = 4  # of Spark at a part on this machine, as on a cluster
_LONGEST = 300  # characters of another program's message

Engine = Callable[[Work, Sequence[int], EngineOptions], Iterator[int]]


def _read_on_dask(work: Work, indexes: Sequence[int], options: EngineOptions) -> Iterator[int]:
    try:
        from distributed import Client, as_completed
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise UsageError("the engine dask needs `pip install sheaf-archive[dask]`") from error
    import sheaf_archive  # is in no function of Lambda

    # Without a scheduler, Dask starts processes on this machine.
    own = {"n_workers": options.jobs, "threads_per_worker": 1, "dashboard_address": None}
    cluster: dict[str, Any] = {"address": options.scheduler} if options.scheduler else own
    try:
        client = Client(**cluster)
    except (OSError, ValueError) as error:
        raise StoreError(f"Dask at {options.scheduler} cannot be used: {error}") from error
    with client:
        # A part may be read twice, so that a worker that is lost costs its parts only.
        futures = client.map(partial(sheaf_archive.call, work), indexes, pure=False)
        for future in as_completed(futures):
            try:
                yield future.result()
            except KilledWorker as error:
                raise StoreError(
                    "workers of Dask died again and again, perhaps because memory ran out: run "
                    "the command again with a smaller --chunk"
                ) from error


def _read_on_spark(work: Work, indexes: Sequence[int], options: EngineOptions) -> Iterator[int]:
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise UsageError("the engine spark needs `pip install sheaf-archive[spark]`") from error
    import sheaf_archive  # is in no function of Lambda

    builder = SparkSession.builder.appName("sheaf ingest")
    if options.scheduler:
        builder = builder.master(options.scheduler)
    elif "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit, which sets it, has a master
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(f"local[{options.jobs},{_ATTEMPTS}]")
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        place = options.scheduler or "this machine"
        raise StoreError(f"Spark at {place} cannot be used: {_first_cause(error)}") from error
    with session:
        chunks = session.sparkContext.parallelize(indexes, len(indexes))
        try:
            task = partial(sheaf_archive.call, partial(_try_work, work))
            results = chunks.map(task).collect()
        except (PySparkException, Py4JError) as error:
            raise StoreError(
                f"Spark gave up: {_first_cause(error)}. Its workers need Sheaf in the Python that "
                "PYSPARK_PYTHON names, and memory for a --chunk"
            ) from error
    for done in results:
        if isinstance(done, str):
            raise StoreError(done)
        yield done


def _first_cause(error: Exception) -> str:
    """Return the line of Spark's error that says why: Python's last one, or Java's first."""
    lines = str(error).strip().splitlines()
    java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (java or lines[-1:] or [type(error).__name__])[0][:_LONGEST].rstrip(".")


def _try_work(work: Work, index: int) -> int | str:
    """Return the result, or the message of an error: Spark would make a traceback of it."""
    try:
        return work(index)
    except SheafError as error:
        return str(error)


def _read_on_lambda(work: Work, indexes: Sequence[int], options: EngineOptions) -> Iterator[int]:
    match = _MACHINE.fullmatch(options.scheduler)
    if match is None:
        raise UsageError(
            "--engine lambda needs --scheduler ARN, the output IngestMachine of the stack"
        )
    client = aws.connect("stepfunctions", match[1])
    name = f"{options.run}-{secrets.token_hex(4)}"[-80:]
    request = json.dumps({"run": options.run, "commit": False})
    with aws.calling(f"the state machine {match[0]}"):
        answer = client.start_execution(stateMachineArn=match[0], name=name, input=request)
    execution = answer["executionArn"]

    def find_status() -> str:
        with aws.calling(execution):
            return str(client.describe_execution(executionArn=execution)["status"])

    left = set(indexes)
    try:
        while left:
            status, began = find_status(), time.monotonic()
            done = left.difference(options.missing())
            yield from sorted(done)
            left -= done
            if left and status != _RUNNING:
                raise StoreError(
                    f"{execution} ended as {status} before all parts were there: see it in "
                    "the console of Step Functions, then run the command again"
                )
            if left:  # a listing of many parts takes long
                options.sleep(max(_WAIT, 5 * (time.monotonic() - began)))
    finally:
        if find_status() == _RUNNING:  # parts that are there stay
            with aws.calling(execution):
                client.stop_execution(executionArn=execution)


ENGINES: Mapping[str, Engine] = {
    "local": lambda work, indexes, options: pool.map_tasks(
        work, indexes, options.jobs, lambda read, captures: None
    ),
    "dask": _read_on_dask,
    "spark": _read_on_spark,
    "lambda": _read_on_lambda,
}
"""Each engine by the name that --engine gives it."""
