"""The state machine that ingests, in an account that lets ten functions run at once.

A new account of AWS is such an account. The emulator refuses the eleventh call as AWS does.
"""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.aws.cloud import Cloud, running
from tests.aws.cloud import Stack as Deployed
from tests.e2e.conftest import warc

BUCKET = "some-archives"
PARTS = 100
PARAMETERS = {"Namespace": "archive.example.org", "Ingest": "yes", "ArchivesBucket": BUCKET}
NEW_ACCOUNT = {"Concurrency": "0"}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with running(tmp_path_factory.mktemp("cloud") / "home", concurrency=10) as emulator:
        emulator.client("s3").create_bucket(Bucket=BUCKET)
        yield emulator


@pytest.fixture(scope="module")
def stack(cloud: Cloud, artefacts: Path) -> Deployed:
    return cloud.deploy(artefacts, **PARAMETERS, **NEW_ACCOUNT)


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
    draw = random.Random(3)
    for number in range(PARTS):
        bodies = {f"http://new.cz/{number}/{n}": draw.randbytes(120_000) for n in range(10)}
        path = warc(tmp_path / f"{number:03}.warc.gz", bodies)
        cloud.client("s3").put_object(
            Bucket=BUCKET, Key=f"crawl/{path.name}", Body=path.read_bytes()
        )
        path.unlink()
    execution = start(cloud, stack, {"sources": [f"s3://{BUCKET}/crawl"], "chunk": 1})
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    output = json.loads(execution["output"])
    assert (output["files"], output["captures"]) == (PARTS, 10 * PARTS)
    assert (output["faults"], output["failed"]) == (0, 0)
