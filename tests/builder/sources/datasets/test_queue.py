"""Requests out of a queue: each is answered, given back, or moved to the dead letters."""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from builder.sources.datasets import request as queues
from builder.sources.datasets.ingest import by_turns
from builder.sources.datasets.item import IngestOutcome, IngestRequest
from builder.sources.datasets.request import (
    Queue,
    QueueError,
    connect_queue,
    retry_wait,
)
from builder.threads import ThreadCrew
from tests.bucket import ACCESS_KEY, REGION, SECRET_KEY
from tests.builder.sources.datasets import server
from tests.builder.sources.datasets.command import Command, refuse_runs
from tests.builder.sources.datasets.deposits import deposit

pytestmark = pytest.mark.shared(2)

AT = "20261122100000"


@dataclass
class Sqs:
    """A queue of moto's with one for dead letters, and what is in them."""

    client: Any
    url: str
    dead: str

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.client.send_message(QueueUrl=self.url, MessageBody=body)

    def ask(self, *urls: str) -> None:
        self.send(*(json.dumps({"base_url": url}) for url in urls))

    def queue(self, **more: Any) -> Queue:
        return Queue(self.url, self.client, **{"poll": 0, **more})

    def counts(self, url: str | None = None) -> tuple[int, int]:
        """Return how many messages may be received, and how many somebody has."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.client.get_queue_attributes(QueueUrl=url or self.url, AttributeNames=names)
        one, other = (int(found["Attributes"][name]) for name in names)
        return one, other


@pytest.fixture
def sqs(moto_server: str) -> Iterator[Sqs]:
    client = boto3.client(
        "sqs",
        endpoint_url=moto_server,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name=REGION,
    )
    name = f"filesets-{uuid.uuid4().hex[:8]}"
    dead = client.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])
    policy = {"deadLetterTargetArn": arn["Attributes"]["QueueArn"], "maxReceiveCount": 2}
    url = client.create_queue(QueueName=name, Attributes={"RedrivePolicy": json.dumps(policy)})
    yield Sqs(client, url["QueueUrl"], dead)
    client.close()


def ended(status: str) -> Callable[..., IngestOutcome]:
    def process(request: IngestRequest, *, dry: bool = False) -> IngestOutcome:
        return IngestOutcome(request=request, status=status, at=AT)

    return process


def worked_off(
    queue: Queue, process: Callable[..., IngestOutcome], threads: int = 3
) -> list[IngestOutcome]:
    stop = threading.Event()
    with queue.beating():
        work = by_turns(process, queue.requests(stop), stop)
        found = list(ThreadCrew[IngestOutcome]("fileset", stop).results(work, threads))
        for outcome in found:
            queue.settle(outcome)
    return found


def test_each_message_is_a_request_and_is_removed_once_its_result_is_settled(sqs: Sqs) -> None:
    sqs.ask(*(f"10.5/{n}" for n in range(25)))
    queue = sqs.queue()
    found = worked_off(queue, ended("success"))
    assert sorted(o.request.base_url for o in found) == sorted(f"10.5/{n}" for n in range(25))
    assert sqs.counts() == (0, 0)


def test_nothing_is_removed_before_it_is_settled(sqs: Sqs) -> None:
    sqs.ask("10.5/1")
    queue = sqs.queue()
    stop = threading.Event()
    (request,) = queue.requests(stop)
    assert sqs.counts() == (0, 1)
    queue.settle(ended("success")(request))
    assert sqs.counts() == (0, 0)
    queue.settle(ended("success")(request))  # told twice: nothing more to be done


def test_what_a_worker_had_that_died_is_somebody_else_s(sqs: Sqs) -> None:
    sqs.ask("10.5/1")
    dying = sqs.queue(visibility=1)
    assert len(list(dying.requests(threading.Event()))) == 1
    end = time.monotonic() + 60
    while sqs.counts() != (1, 0) and time.monotonic() < end:
        time.sleep(0.2)
    (found,) = worked_off(sqs.queue(), ended("success-existing"))
    assert found.request.base_url == "10.5/1"
    assert sqs.counts() == (0, 0)


class Refusing:
    """A client of SQS that refuses to change how long a message is hidden (moto never does)."""

    def __init__(self, client: Any, code: str) -> None:
        self.client, self.code = client, code

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def change_message_visibility(self, **given: Any) -> None:
        raise ClientError({"Error": {"Code": self.code}}, "ChangeMessageVisibility")


@pytest.mark.parametrize("code", ["AWS.SimpleQueueService.MessageNotInflight", "AccessDenied"])
def test_a_message_that_came_back_meanwhile_ends_no_worker(sqs: Sqs, code: str) -> None:
    sqs.ask("10.5/1", "10.5/2")
    queue = Queue(sqs.url, Refusing(sqs.client, code), poll=0)
    first, _ = queue.requests(threading.Event())
    with pytest.raises(QueueError) if code == "AccessDenied" else nullcontext():
        queue.settle(ended("stalled")(first))
        queue.release()


def test_a_message_is_kept_for_as_long_as_its_request_takes(sqs: Sqs) -> None:
    sqs.ask("10.5/1")
    queue = sqs.queue(visibility=3)
    with queue.beating():
        (request,) = queue.requests(threading.Event())
        for _ in range(8):
            time.sleep(0.5)
            assert sqs.counts() == (0, 1)
        queue.settle(ended("success")(request))
    assert sqs.counts() == (0, 0)


def test_what_may_go_better_is_tried_again_and_then_is_a_dead_letter(
    sqs: Sqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs.ask("10.5/1")
    rests: list[int] = []
    monkeypatch.setattr(queues, "retry_wait", lambda received: rests.append(received) or 0)
    tries = [len(worked_off(sqs.queue(), ended("stalled"), threads=1)) for _ in range(3)]
    assert sum(tries) == 2
    assert rests == [1, 2]
    assert (sqs.counts(), sqs.counts(sqs.dead)) == ((0, 0), (1, 0))


def test_what_was_cancelled_and_what_was_not_begun_is_there_at_once(sqs: Sqs) -> None:
    sqs.ask("10.5/1", "10.5/2")
    queue = sqs.queue()
    with queue.beating():
        first, _second = queue.requests(threading.Event())
        queue.settle(ended("cancelled")(first))
        assert sqs.counts() == (1, 1)
    assert sqs.counts() == (2, 0)


def test_a_message_that_is_no_request_is_told_and_removed(sqs: Sqs) -> None:
    sqs.send("zenodo", json.dumps({"base_url": ""}))
    seen = []

    def process(request: IngestRequest, *, dry: bool = False) -> IngestOutcome:
        seen.append(request.base_url)
        return IngestOutcome(request=request, status="bad-identifier", at=AT)

    worked_off(sqs.queue(), process)
    assert all(url.startswith("message ") for url in seen)
    assert sorted(url.partition(": ")[2][:8] for url in seen) == ["base_url", "not JSON"]
    assert sqs.counts() == (0, 0)


def test_one_that_follows_waits_for_more_until_it_is_ended(sqs: Sqs) -> None:
    stop = threading.Event()
    queue = sqs.queue()
    asked = queue.requests(stop, lasting=True)
    later = threading.Timer(0.5, sqs.ask, ["10.5/1"])
    later.start()
    assert next(asked).base_url == "10.5/1"
    threading.Timer(0.3, stop.set).start()
    assert list(asked) == []


def test_the_region_is_that_of_the_queue_s_url(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    found = connect_queue("https://sqs.eu-central-1.amazonaws.com/123456789012/filesets")
    assert found.client.meta.region_name == "eu-central-1"
    with pytest.raises(QueueError, match="region"):
        connect_queue("http://127.0.0.1:9/1/filesets")


@pytest.fixture
def cloud(moto_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The surroundings in which boto3 finds the queue."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", moto_server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)


@pytest.mark.usefixtures("cloud")
def test_the_command_works_a_queue_off(sqs: Sqs, command: Command) -> None:
    good = deposit(command.server, 11, {"a.csv": b"a"})
    down = deposit(command.server, 21, {"a.csv": b"a"}, answers={"a.csv": server.status(503)})
    command.configure(http__tries="1")
    sqs.ask(good, down, "10.5281/zenodo.99")
    sqs.send("no request")
    _, err = command("fileset", "--queue", sqs.url)
    assert "4 results: " in err
    assert sqs.counts() == (0, 1)  # of the one that may go better
    command("publish")
    out, _ = command("query", "SELECT status FROM ingest_fileset_platform ORDER BY 1")
    assert out.splitlines()[1:] == [
        "error-platform-download",
        "platform-404",
        "success-file",
    ]


@pytest.mark.usefixtures("cloud")
def test_nothing_is_removed_from_the_queue_where_results_cannot_be_kept(
    sqs: Sqs, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs.ask(deposit(command.server, 11, {"a.csv": b"a"}))

    with monkeypatch.context() as patch:
        refuse_runs(patch, "the disk is full")
        _, err = command("fileset", "--queue", sqs.url, code=2)
    assert err.splitlines()[-1] == "sheaf: the disk is full"
    assert sqs.counts() == (1, 0)
    _, err = command("fileset", "--queue", sqs.url)
    assert "ingested 1 result of an earlier, interrupted process" in err
    assert "1 success-existing" in err
    assert sqs.counts() == (0, 0)


@pytest.mark.usefixtures("cloud")
def test_a_queue_that_is_not_there_is_an_error_of_usage(sqs: Sqs, command: Command) -> None:
    _, err = command("fileset", "--queue", f"{sqs.url}-not", code=2)
    assert err.splitlines()[-1].startswith(f"sheaf: {sqs.url}-not: ")


def test_seconds_of_rest_double_and_have_an_end() -> None:
    assert [retry_wait(n) for n in (0, 1, 2, 3, 7, 100)] == [60, 60, 120, 240, 3600, 3600]
