"""What the engine `lambda` asks of Step Functions; tests/aws has the machine itself."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from builder.errors import UsageError
from builder.sources.webarchives.ingest.engines import ENGINES, EngineOptions
from builder.store import aws
from functions.snapshot.errors import StoreError
from tests.e2e.conftest import make_home, warc
from tests.e2e.test_commands import PAGES, one_line

MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:sheaf-ingest"


class Service:
    """Step Functions, as far as the engine uses it: `states` are told one after the other."""

    def __init__(self, *states: str) -> None:
        self.states = list(states)
        self.started: list[dict[str, Any]] = []
        self.stopped: list[str] = []

    def start_execution(self, **given: Any) -> dict[str, str]:
        self.started.append(given)
        return {"executionArn": f"{given['stateMachineArn']}:{given['name']}"}

    def describe_execution(self, **_: Any) -> dict[str, str]:
        return {"status": self.states.pop(0) if self.states[1:] else self.states[0]}

    def stop_execution(self, **given: str) -> None:
        self.stopped.append(given["executionArn"])


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    made = Service("RUNNING")
    monkeypatch.setattr(aws, "connect", lambda service, region: made)
    return made


def results(*missing: list[int], sleep: Any = lambda seconds: None) -> Iterator[int]:
    """Return what the engine tells; `missing` are the parts that each listing lacks."""
    listings = iter(missing)
    options = EngineOptions(1, MACHINE, "RUN", lambda: next(listings), sleep)
    return ENGINES["lambda"](int, missing[0], options)


def test_parts_are_told_as_they_come(service: Service) -> None:
    waits: list[float] = []
    assert list(results([0, 1, 2], [0, 2], [0], [], sleep=waits.append)) == [1, 2, 0]
    (asked,) = service.started
    assert json.loads(asked["input"]) == {"run": "RUN", "commit": False}
    assert len(waits) == 3
    assert service.stopped == [f"{MACHINE}:{asked['name']}"]


def test_a_machine_that_ends_without_all_parts_is_an_error(service: Service) -> None:
    service.states = ["RUNNING", "ABORTED"]
    parts = results([0, 1], [0])
    assert next(parts) == 1
    with pytest.raises(StoreError, match="ended as ABORTED before all parts were there"):
        list(parts)
    assert service.stopped == []


def test_parts_that_came_just_before_the_end_count(service: Service) -> None:
    service.states = ["SUCCEEDED"]
    options = EngineOptions(scheduler=MACHINE, run="RUN", missing=list)
    assert list(ENGINES["lambda"](int, [0, 1], options)) == [0, 1]


@pytest.mark.parametrize("machine", ["", "sheaf-ingest", MACHINE.replace("states", "lambda")])
def test_another_address_is_refused(machine: str) -> None:
    with pytest.raises(UsageError, match="--scheduler ARN"):
        list(ENGINES["lambda"](int, [0], EngineOptions(scheduler=machine)))


def test_a_refusal_of_the_service_is_one_line(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "StartExecution")

    monkeypatch.setattr(service, "start_execution", refuse)
    with pytest.raises(StoreError, match="AccessDeniedException"):
        list(results([0]))


def test_files_of_this_machine_are_out_of_reach(tmp_path: Any) -> None:
    home = make_home(tmp_path)
    done = home("ingest", warc(tmp_path / "a.warc.gz", PAGES), "--engine", "lambda")
    assert done.code == 2
    assert "needs a store and sources in buckets" in one_line(done.err)
