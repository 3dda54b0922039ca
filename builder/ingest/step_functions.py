"""Reads the parts of an ingest by the state machine that infra/template.yaml deploys (`Ingest`).

The machine lists the missing parts, has a Lambda function read each one (builder.aws.ingester), and
fails if a part could not be read. Progress is seen in the store, so that it does not depend on the
service.
"""

import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from builder.errors import UsageError
from builder.store import aws
from functions.snapshot.errors import StoreError

_MACHINE = re.compile(r"arn:[a-z-]+:states:([a-z0-9-]+):\d{12}:stateMachine:[A-Za-z0-9_-]+")
_WAIT = 2.0  # seconds between two looks at the store
_RUNNING = "RUNNING"


def start(machine: str, run: str) -> "Execution":
    """Start the machine for a planned run. Raises UsageError and StoreError."""
    match = _MACHINE.fullmatch(machine)
    if match is None:
        raise UsageError(
            "--engine lambda needs --scheduler ARN, the output IngestMachine of the stack"
        )
    client = aws.connect("stepfunctions", match[1])
    name = f"{run}-{secrets.token_hex(4)}"[-80:]
    with aws.calling(f"the state machine {machine}"):
        asked = json.dumps({"run": run, "commit": False})
        told = client.start_execution(stateMachineArn=machine, name=name, input=asked)
    return Execution(client, told["executionArn"])


class Execution:
    """A running execution of the machine."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name
        self._status = _RUNNING

    def results(
        self,
        missing: Callable[[], Iterable[int]],
        indexes: Sequence[int],
        sleep: Callable[[float], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> Iterator[int]:
        """Yield the number of each part once it is not `missing`. Raises StoreError."""
        left = set(indexes)
        while left:
            ended = self._find_status() != _RUNNING
            began = clock()
            done = left.difference(missing())
            yield from sorted(done)
            left -= done
            if ended and left:
                raise StoreError(
                    f"{self._name} ended as {self._status} before all parts were there: see it in "
                    "the console of Step Functions, then run the command again"
                )
            if left:
                sleep(max(_WAIT, 5 * (clock() - began)))  # a listing of many parts takes long

    def stop(self) -> None:
        """Stop the execution if it is still running; parts that are there stay."""
        if self._find_status() == _RUNNING:
            with aws.calling(self._name):
                self._client.stop_execution(executionArn=self._name)

    def _find_status(self) -> str:
        with aws.calling(self._name):
            self._status = self._client.describe_execution(executionArn=self._name)["status"]
        return self._status
