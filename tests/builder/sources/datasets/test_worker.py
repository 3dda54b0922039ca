"""The function that archives datasets, started by messages of a queue."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builder.aws import fileset_worker
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreError
from tests.bucket import Bucket
from tests.builder.sources.datasets.command import led_to, refuse_runs
from tests.builder.sources.datasets.deposits import content, deposit
from tests.builder.sources.datasets.server import Answer, Server, served, silent, status
from tests.builder.sources.datasets.world import World

A, B = b"weight\n1\n", b"price\n2\n"


@dataclass
class Function:
    """The function over a store, as Lambda would call it."""

    server: Server
    folder: Path
    variables: dict[str, str]

    def __call__(self, *bodies: str, seconds: float = 600) -> list[str]:
        """Hand it messages, numbered from 0, and return which are to come again."""
        records = [{"messageId": str(n), "body": body} for n, body in enumerate(bodies)]
        task, scratch = self.folder / "task", self.folder / "scratch"
        task.mkdir(exist_ok=True)
        scratch.mkdir(exist_ok=True)
        found: Any = fileset_worker.run(records, self.variables, task, scratch, seconds)
        assert not list(scratch.iterdir())
        return [failure["itemIdentifier"] for failure in found["batchItemFailures"]]


@pytest.fixture
def function(there: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Function:
    led_to(there, monkeypatch)
    variables = {
        "SHEAF_STORE_URI": str(tmp_path / "store"),
        "SHEAF_REPOSITORY_ADMIN_EMAILS": '["bees@archive.example.org"]',
        "SHEAF_FILESET_STRATEGY": "s3",
        "SHEAF_HTTP_HOST_SECONDS": "0",
        "SHEAF_HTTP_BACKOFF_SECONDS": "0",
        "SHEAF_HTTP_TRIES": "1",
    }
    return Function(there.server, tmp_path, variables)


def body(url: str) -> str:
    return json.dumps({"base_url": url})


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {line["base_url"]: line["status"] for line in lines}


def test_what_may_go_better_comes_again_and_all_else_is_done(
    function: Function, capsys: pytest.CaptureFixture[str]
) -> None:
    good = deposit(function.server, 11, {"a.csv": A, "b.csv": B})
    down = deposit(function.server, 21, {"a.csv": A}, answers={"a.csv": status(503)})
    assert function(body(good), body(down), "no request", body("10.5281/zenodo.99")) == ["1"]
    found = told(capsys)
    assert found.pop(good) == "success"
    assert found.pop(down) == "error-platform-download"
    assert sorted(found.values()) == ["bad-identifier", "platform-404"]
    keys = list(FolderStore(function.folder / "store").keys(""))
    assert sum(key.endswith("/fileset.json") for key in keys) == 1
    assert sum(key.endswith("/run.json") for key in keys) == 1


@pytest.mark.parametrize(
    ("answer", "seconds", "outcome"),
    [(status(503), 600, "success-partial"), (silent(), 48, "deadline-exceeded")],
    ids=["failed", "late"],
)
def test_one_file_that_did_not_come_is_asked_for_again_and_no_other(
    function: Function,
    capsys: pytest.CaptureFixture[str],
    answer: Answer,
    seconds: float,
    outcome: str,
) -> None:
    site = deposit(function.server, 11, {"a.csv": A, "b.csv": B}, answers={"b.csv": answer})
    assert function(body(site), seconds=seconds) == ["0"]
    assert told(capsys) == {site: outcome}
    function.server.add(content(11, "b.csv"), served(B))
    assert function(body(site)) == []
    assert told(capsys) == {site: "success"}
    assert len(function.server.asked(content(11, "a.csv"))) == 1


def test_a_message_that_comes_twice_is_archived_once(
    function: Function, capsys: pytest.CaptureFixture[str]
) -> None:
    good = deposit(function.server, 11, {"a.csv": A})
    assert function(body(good)) == []
    function.server.forget()
    capsys.readouterr()
    assert function(body(good)) == []
    assert told(capsys) == {good: "success-existing"}
    assert not function.server.asked(content(11, "a.csv"))


def test_what_waited_for_a_thread_has_no_time_of_its_own(
    function: Function, capsys: pytest.CaptureFixture[str]
) -> None:
    function.variables["SHEAF_HTTP_CONCURRENT"] = "1"
    slow = deposit(function.server, 11, {"a.csv": A}, answers={"a.csv": silent()})
    next_ = deposit(function.server, 21, {"a.csv": A})
    assert function(body(slow), body(next_), seconds=48) == ["0", "1"]
    assert told(capsys) == {slow: "deadline-exceeded", next_: "deadline-exceeded"}
    assert not any("/21" in asked.url for asked in function.server.log)


def test_without_any_time_nothing_is_asked(function: Function) -> None:
    good = deposit(function.server, 11, {"a.csv": A})
    assert function(body(good), seconds=1) == ["0"]
    assert not function.server.log


def test_all_come_again_where_results_could_not_be_kept(
    function: Function, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = deposit(function.server, 11, {"a.csv": A})
    refuse_runs(monkeypatch, "the bucket is away")
    with pytest.raises(StoreError, match="the bucket is away"):
        function(body(good))
    assert capsys.readouterr().err == "sheaf: the bucket is away\n"


def test_it_archives_into_a_bucket(
    function: Function, make_bucket: Callable[..., Bucket], capsys: pytest.CaptureFixture[str]
) -> None:
    bucket = make_bucket()
    function.variables |= {**bucket.environment, "SHEAF_STORE_URI": bucket.uri}
    good = deposit(function.server, 11, {"a.csv": A, "b.csv": B})
    assert function(body(good)) == []
    assert told(capsys) == {good: "success"}
    (key,) = [k for k in bucket.keys("filesets/") if k.endswith("/a.csv")]
    assert bucket.read(key) == A
    assert [k for k in bucket.keys("intake/") if k.endswith("/run.json")]


def test_lambda_hands_over_its_event_and_its_clock(
    function: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Context:
        def get_remaining_time_in_millis(self) -> int:
            return 600_000

    good = deposit(function.server, 11, {"a.csv": A})
    for name, value in function.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LAMBDA_TASK_ROOT", str(function.folder))
    event = {"Records": [{"messageId": "m", "body": body(good), "attributes": {}}]}
    assert fileset_worker.handler(event, Context()) == {"batchItemFailures": []}
