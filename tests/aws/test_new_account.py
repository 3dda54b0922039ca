"""The stack with its parts, by their defaults, in an account that lets ten functions run at once.

A new account of AWS is such an account. The emulator refuses the eleventh call as AWS does.
"""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.aws.archive import Archive
from tests.aws.cloud import Cloud, running
from tests.aws.cloud import Stack as Deployed
from tests.aws.request import Request, asked
from tests.aws.test_deploy import Endpoint, checked, invoked, known, until
from tests.e2e.conftest import warc

PARTS = 100
PARAMETERS = {
    "Namespace": "archive.example.org",
    "RepositoryName": "Archive",
    "Filesets": "yes",
    "Ingest": "yes",
    "IngestOnUpload": "yes",
    "Content": "yes",
}
UPLOADS = ("plain.warc.gz", "2026/a#1?b=c.warc.gz", "2026//twice.warc.gz", 'an "x".warc.gz')


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with running(tmp_path_factory.mktemp("cloud") / "home", concurrency=10) as emulator:
        yield emulator


@pytest.fixture(scope="module")
def stack(cloud: Cloud, artefacts: Path) -> Deployed:
    return cloud.deploy(artefacts, **PARAMETERS)


@pytest.fixture(scope="module")
def store(cloud: Cloud, stack: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Give the stack's store as a workstation reaches it."""
    environment = cloud.environment() | {
        "SHEAF_REPOSITORY_NAMESPACE": PARAMETERS["Namespace"],
        "SHEAF_REPOSITORY_NAME": PARAMETERS["RepositoryName"],
    }
    return Archive(stack.outputs["Store"], environment, tmp_path_factory.mktemp("station"))


def put(cloud: Cloud, stack: Deployed, key: str, path: Path) -> None:
    """Put an archive into the store's bucket."""
    client = cloud.client("s3")
    client.put_object(Bucket=stack.outputs["Bucket"], Key=key, Body=path.read_bytes())


def start(cloud: Cloud, stack: Deployed, request: dict[str, Any]) -> dict[str, Any]:
    """Run the machine, and return its execution."""
    client, end = cloud.client("stepfunctions"), time.monotonic() + 1500
    name = client.start_execution(
        stateMachineArn=stack.outputs["IngestMachine"], input=json.dumps(request)
    )["executionArn"]
    while time.monotonic() < end:
        execution: dict[str, Any] = client.describe_execution(executionArn=name)
        if execution["status"] != "RUNNING":
            return execution
        time.sleep(1)
    raise AssertionError(f"{name} does not end")


def test_no_part_is_lost_where_most_of_them_are_refused_at_first(
    cloud: Cloud, stack: Deployed, tmp_path: Path
) -> None:
    assert stack.status == "CREATE_COMPLETE"
    draw, events = random.Random(3), cloud.client("events")
    events.disable_rule(Name=stack.resources["UploadRule"])  # one run reads all of them
    for number in range(PARTS):
        bodies = {f"http://new.cz/{number}/{n}": draw.randbytes(120_000) for n in range(10)}
        path = warc(tmp_path / f"{number:03}.warc.gz", bodies)
        put(cloud, stack, f"archives/crawl/{path.name}", path)
        path.unlink()
    events.enable_rule(Name=stack.resources["UploadRule"])
    source = f"s3://{stack.outputs['Bucket']}/archives/crawl"
    began = time.monotonic()
    execution = start(cloud, stack, {"sources": [source], "chunk": 1})
    print(f"ingest of {PARTS} parts: {time.monotonic() - began:.0f} s")
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    output = json.loads(execution["output"])
    assert (output["files"], output["captures"]) == (PARTS, 10 * PARTS)
    assert (output["faults"], output["failed"]) == (0, 0)


def test_what_was_ingested_is_published_harvested_and_found(
    cloud: Cloud, stack: Deployed, store: Archive
) -> None:
    """As the guided path has it: publish, harvest, look up, check."""
    endpoint, seconds = Endpoint(cloud, stack), {}
    began = time.monotonic()
    well, told = invoked(cloud, stack.outputs["PublishFunctionName"], {})
    assert well, told
    assert told["new"] == 10 * PARTS
    seconds["publish"] = time.monotonic() - began
    until(lambda: endpoint.ask(asked("Identify")).status, 200)
    began = time.monotonic()
    assert endpoint.harvest() == known(store)
    seconds["harvest"] = time.monotonic() - began
    began = time.monotonic()
    for number in range(20):
        answer = endpoint.ask(Request(f"url=new.cz/{number}/3", path="/cdx"))
        assert (answer.status, answer.plain.count(b"\n")) == (200, 1)
    seconds["20 look-ups"] = time.monotonic() - began
    began = time.monotonic()
    assert checked(store, endpoint)["facts"]["records"] == 10 * PARTS
    seconds["check"] = time.monotonic() - began
    print(", ".join(f"{name}: {value:.1f} s" for name, value in seconds.items()))


def test_the_bytes_of_uploads_are_served_where_they_were_uploaded(
    cloud: Cloud, stack: Deployed, store: Archive, tmp_path: Path
) -> None:
    bodies = {name: f"<title>{name}</title>".encode() for name in UPLOADS}
    for number, (name, body) in enumerate(bodies.items()):
        path = warc(tmp_path / f"{number}.warc.gz", {f"http://uploads.cz/{number}": body})
        put(cloud, stack, f"archives/{name}", path)
    client, end = cloud.client("stepfunctions"), time.monotonic() + 300
    ended: list[str] = []
    while len(ended) < len(UPLOADS) and time.monotonic() < end:
        listed = client.list_executions(stateMachineArn=stack.outputs["IngestMachine"])
        ended = [
            row["status"]
            for row in listed["executions"]
            if row["status"] != "RUNNING"
            and "objects" in client.describe_execution(executionArn=row["executionArn"])["input"]
        ]
        time.sleep(1)
    assert ended == ["SUCCEEDED"] * len(UPLOADS)
    store.sheaf("publish")
    sql = "SELECT identifier, url FROM captures WHERE url LIKE 'http://uploads.cz/%' ORDER BY url"
    rows = store.rows(sql)
    assert len(rows) == len(UPLOADS)
    endpoint = Endpoint(cloud, stack)
    for row, (name, body) in zip(rows, bodies.items(), strict=True):
        answer = endpoint.ask(Request(path=f"/content/{row['identifier']}"))
        if "//" in name:  # obstore has no such keys
            assert answer.status == 503, name
        else:
            assert (answer.status, answer.body) == (200, body), name
