"""The state machine that ingests web archives, deployed into an emulated cloud.

Each function runs with the credentials of its role, and every request is held against its policies.
"""

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.aws.archive import Archive, pages
from tests.aws.cloud import Cloud, running
from tests.aws.cloud import Stack as Deployed
from tests.e2e.conftest import ARCHIVES, warc

BUCKET = "some-archives"
PARAMETERS = {
    "Namespace": "archive.example.org",
    "Ingest": "yes",
    "IngestOnUpload": "yes",
    "IngestConcurrency": "3",
    "ArchivesBucket": BUCKET,
}
FILES = 5


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with running(tmp_path_factory.mktemp("cloud") / "home") as one:
        one.client("s3").create_bucket(Bucket=BUCKET)
        one.client("s3").put_bucket_notification_configuration(
            Bucket=BUCKET, NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
        yield one


@pytest.fixture(scope="module")
def stack(cloud: Cloud, artefacts: Path) -> Deployed:
    return cloud.deploy(artefacts, **PARAMETERS)


@pytest.fixture(scope="module")
def store(cloud: Cloud, stack: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Give the stack's store as a workstation reaches it."""
    environment = cloud.environment() | {"SHEAF_REPOSITORY_NAMESPACE": PARAMETERS["Namespace"]}
    return Archive(stack.outputs["Store"], environment, tmp_path_factory.mktemp("station"))


def put(cloud: Cloud, key: str, path: Path) -> str:
    """Put a file into the bucket of archives; return its address."""
    cloud.client("s3").put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())
    return f"s3://{BUCKET}/{key}"


def executed(cloud: Cloud, execution: str, seconds: float = 120) -> dict[str, Any]:
    """Wait for the end of an execution, and return it."""
    client, end = cloud.client("stepfunctions"), time.monotonic() + seconds
    while time.monotonic() < end:
        found: dict[str, Any] = client.describe_execution(executionArn=execution)
        if found["status"] != "RUNNING":
            return found
        time.sleep(0.5)
    raise AssertionError(f"{execution} does not end")


def start(cloud: Cloud, stack: Deployed, request: dict[str, Any]) -> dict[str, Any]:
    """Run the machine, and return its output."""
    started = cloud.client("stepfunctions").start_execution(
        stateMachineArn=stack.outputs["IngestMachine"], input=json.dumps(request)
    )
    found = executed(cloud, started["executionArn"])
    assert found["status"] == "SUCCEEDED", found
    output: dict[str, Any] = json.loads(found["output"])
    return output


def test_the_engine_gives_what_the_command_gives(
    cloud: Cloud, stack: Deployed, store: Archive, tmp_path: Path
) -> None:
    for number in range(FILES):
        path = warc(tmp_path / f"{number}.warc.gz", pages(40 * number, 40 * number + 50))
        if number == 3:
            path.write_bytes(path.read_bytes()[:-9])
        put(cloud, f"by-hand/{path.name}", path)
    real = [path for path in sorted(ARCHIVES.rglob("*")) if path.is_file()]
    for path in real:  # where they are absent, the others have to do
        put(cloud, f"by-hand/real/{path.relative_to(ARCHIVES)}", path)
    machine = ("--engine", "lambda", "--scheduler", stack.outputs["IngestMachine"])
    folder = f"s3://{BUCKET}/by-hand"
    told = ingest(store, folder, *machine, "--chunk", "1")
    assert len(told["sources"]) == FILES + len(real)
    assert any("gzip-truncated" in source["codes"] for source in told["sources"])
    store.sheaf("publish")
    plain = Archive(f"s3://{stack.outputs['Bucket']}/plain", store.environment, tmp_path)
    assert ingest(plain, folder)["sources"] == told["sources"]
    plain.sheaf("publish")
    for sql in (
        "SELECT * EXCLUDE datestamp FROM records ORDER BY position",
        "SELECT * FROM faults ORDER BY ALL",
        "SELECT * FROM sources ORDER BY ALL",
    ):
        assert store.rows(sql) == plain.rows(sql) != []
    assert records(cloud, stack, "store/") == records(cloud, stack, "plain/") != set()


def ingest(archive: Archive, *arguments: str) -> dict[str, Any]:
    """Ingest, and return the report; some of the real files fail."""
    line = archive.line("ingest", *arguments, "--json")
    done = subprocess.run(line, env=archive.all, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def records(cloud: Cloud, stack: Deployed, prefix: str) -> set[str]:
    """Return the names of a store's data files, which are digests of their content."""
    listed = cloud.client("s3").get_paginator("list_objects_v2")
    pages = listed.paginate(Bucket=stack.outputs["Bucket"], Prefix=f"{prefix}records/")
    return {one["Key"].removeprefix(prefix) for page in pages for one in page.get("Contents", ())}


def test_by_hand_it_commits_as_well(cloud: Cloud, stack: Deployed, store: Archive) -> None:
    before = len(store.rows("FROM sources"))
    address = put(cloud, "later.warc.gz", warc(store.folder / "later.warc.gz", pages(900, 930)))
    output = start(cloud, stack, {"sources": [address], "collections": ["late"]})
    assert (output["files"], output["captures"], output["failed"]) == (1, 30, 0)
    store.sheaf("publish")
    assert len(store.rows("FROM sources")) == before + 1
    assert len(store.rows("FROM captures WHERE list_contains(sets, 'collection:late')")) == 30


def test_a_run_with_an_unread_part_is_not_committed_until_it_is_read(
    cloud: Cloud, stack: Deployed, store: Archive
) -> None:
    path = warc(store.folder / "failing.warc.gz", pages(1100, 1110))
    planned = json.loads(store.sheaf("ingest", "plan", put(cloud, path.name, path), "--json"))
    client, key = cloud.client("s3"), f"store/intake/{planned['run']}/plan.json"
    plan = json.load(client.get_object(Bucket=stack.outputs["Bucket"], Key=key)["Body"])

    def change(reader: list[str]) -> None:
        changed = json.dumps({**plan, "reader": reader})
        client.put_object(Bucket=stack.outputs["Bucket"], Key=key, Body=changed)

    change(["0.0.1", plan["reader"][1]])
    machine = stack.outputs["IngestMachine"]
    begun = cloud.client("stepfunctions").start_execution(
        stateMachineArn=machine, input=json.dumps({"run": planned["run"]})
    )
    ended = executed(cloud, begun["executionArn"])
    assert ended["status"] == "FAILED"
    assert "1 of 1 parts of run" in ended["cause"]
    listed = client.list_objects_v2(
        Bucket=stack.outputs["Bucket"], Prefix=f"store/intake/{planned['run']}/run.json"
    )
    assert listed["KeyCount"] == 0
    change(plan["reader"])
    output = start(cloud, stack, {"run": planned["run"]})
    assert (output["files"], output["captures"], output["failed"]) == (1, 10, 0)


def put_large(cloud: Cloud, folder: str, below: Path) -> str:
    """Put archives into the bucket, each a chunk that takes some time; return their address."""
    draw = random.Random(1)
    for number in range(FILES):
        bodies = {f"http://{folder}.cz/{number}/{n}": draw.randbytes(400_000) for n in range(30)}
        put(cloud, f"{folder}/{number}.warc.gz", warc(below / f"{number}.warc.gz", bodies))
    return f"s3://{BUCKET}/{folder}"


def readers(cloud: Cloud) -> list[int]:
    """Return the functions' processes that are writing the rows of a part, by their numbers."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # another user's, or ended
            if str(cloud.folder).encode() not in (process / "environ").read_bytes():
                continue
            opened = [str(one.readlink()) for one in (process / "fd").iterdir()]
            if any("/part/part-" in path for path in opened):
                found.append(int(process.name))
    return found


@contextmanager
def stopping(cloud: Cloud, count: int, then: signal.Signals | None) -> Iterator[list[int]]:
    """Stop `count` processes while each reads a part, and send all of them a signal `then`."""
    stopped: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while len(stopped) < count and not over.wait(0.001):
            for process in sorted(set(readers(cloud)).difference(stopped))[: count - len(stopped)]:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGSTOP)
                    stopped.append(process)
        for process in stopped if then else ():
            os.kill(process, then or 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield stopped
    finally:
        over.set()
        watcher.join()


@pytest.mark.parametrize("end", ["killed", "timed out"])
def test_a_function_that_ends_while_it_reads_is_called_again(
    cloud: Cloud, stack: Deployed, store: Archive, tmp_path: Path, end: str
) -> None:
    folder = put_large(cloud, end.replace(" ", "-"), tmp_path)
    machine = ("--engine", "lambda", "--scheduler", stack.outputs["IngestMachine"])
    function, client = stack.resources["IngestFunction"], cloud.client("lambda")
    if end == "timed out":
        client.update_function_configuration(FunctionName=function, Timeout=8)
    try:
        with stopping(cloud, 1, signal.SIGKILL if end == "killed" else None) as stopped:
            told = ingest(store, folder, *machine, "--chunk", "1")
    finally:
        client.update_function_configuration(FunctionName=function, Timeout=900)
    assert len(stopped) == 1
    assert not Path(f"/proc/{stopped[0]}").exists()
    check_alike(stack, store, folder, told, tmp_path)


def test_a_part_may_be_read_twice_at_once(
    cloud: Cloud, stack: Deployed, store: Archive, tmp_path: Path
) -> None:
    folder = put_large(cloud, "twice", tmp_path)
    planned = json.loads(store.sheaf("ingest", "plan", folder, "--chunk", "1", "--json"))
    assert planned["chunks"] == FILES
    event = json.dumps({"step": "part", "item": {"run": planned["run"], "index": 0}})

    def invoke(_: int) -> dict[str, Any]:
        done = cloud.client("lambda").invoke(
            FunctionName=stack.resources["IngestFunction"], Payload=event
        )
        answer: dict[str, Any] = json.load(done["Payload"])
        return answer

    with stopping(cloud, 2, signal.SIGCONT) as stopped, ThreadPoolExecutor(2) as pool:
        assert list(pool.map(invoke, range(2))) == [{"index": 0, "captures": 30}] * 2
    assert len(stopped) == 2
    output = start(cloud, stack, {"run": planned["run"]})
    assert (output["files"], output["captures"], output["failed"]) == (FILES, 30 * FILES, 0)
    listed = cloud.client("s3").list_objects_v2(
        Bucket=stack.outputs["Bucket"], Prefix=f"store/intake/{planned['run']}/part-000000-"
    )
    assert listed["KeyCount"] == 1  # the rows of the other one were removed


def check_alike(stack: Deployed, store: Archive, folder: str, told: Any, station: Path) -> None:
    """Hold a run in the store against what one process makes of the same files."""
    name = folder.rpartition("/")[2]
    plain = Archive(f"s3://{stack.outputs['Bucket']}/plain-{name}", store.environment, station)
    assert ingest(plain, folder)["sources"] == told["sources"]
    plain.sheaf("publish")
    store.sheaf("publish")
    sql = f"SELECT * EXCLUDE datestamp FROM captures WHERE url LIKE 'http://{name}.%' ORDER BY ALL"
    assert store.rows(sql) == plain.rows(sql)
    assert len(plain.rows(sql)) == 30 * FILES


def test_an_upload_is_ingested_once(cloud: Cloud, stack: Deployed, store: Archive) -> None:
    """The same upload again gives no run, before a publish and after it."""
    path = warc(store.folder / "upload.warc.gz", pages(1000, 1010))
    seen: set[str] = set()
    assert uploaded(cloud, stack, path, seen)["captures"] == 10
    intake = store.sheaf("status", "--json")
    assert uploaded(cloud, stack, path, seen)["run"] == ""
    assert store.sheaf("status", "--json") == intake
    store.sheaf("publish")
    assert uploaded(cloud, stack, path, seen)["run"] == ""
    again = {"sources": [f"s3://{BUCKET}/archives/{path.name}"], "again": True}
    assert start(cloud, stack, again)["captures"] == 10


def uploaded(cloud: Cloud, stack: Deployed, path: Path, seen: set[str]) -> dict[str, Any]:
    """Upload a file, and return the output of the execution that this starts."""
    put(cloud, f"archives/{path.name}", path)
    machine = stack.outputs["IngestMachine"]
    client, end = cloud.client("stepfunctions"), time.monotonic() + 60
    while time.monotonic() < end:
        listed = client.list_executions(stateMachineArn=machine)["executions"]
        for name in {one["executionArn"] for one in listed} - seen:
            if path.name in client.describe_execution(executionArn=name)["input"]:
                seen.add(name)
                done = executed(cloud, name)
                assert done["status"] == "SUCCEEDED", done
                output: dict[str, Any] = json.loads(done["output"])
                return output
        time.sleep(0.5)
    raise AssertionError("no execution was started")
