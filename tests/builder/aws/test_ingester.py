"""The function that ingests, called as the state machine calls it, over moto's bucket."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.aws import ingester
from builder.errors import UsageError
from builder.intake import intake
from builder.sources.webarchives.ingest import splits
from builder.store import aws
from functions.snapshot.errors import StoreError
from tests.bucket import Bucket, administrator
from tests.e2e.conftest import make_home, warc
from tests.e2e.test_commands import PAGES

COUNT = 3


@pytest.fixture
def bucket(make_bucket: Callable[..., Bucket], tmp_path: Path, monkeypatch: Any) -> Bucket:
    monkeypatch.setattr(splits, "TOGETHER", 1)
    made = make_bucket()
    archives = Bucket(made.endpoint, made.bucket, "archives")
    for number in range(COUNT):
        path = warc(tmp_path / f"{number}.warc.gz", PAGES)
        with path.open("rb") as source:
            archives.put(path.name, source)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def call(bucket: Bucket, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    environment = {
        **bucket.environment,
        "SHEAF_STORE_URI": bucket.uri,
        "SHEAF_REPOSITORY_NAMESPACE": "a.example.org",
    }

    def made(step: str, **event: Any) -> dict[str, Any]:
        folder = tmp_path / "function"
        told = ingester.run({"step": step, **event}, environment, tmp_path, folder)
        assert list(folder.iterdir()) == []
        return told

    return made


def items(bucket: Bucket, planned: dict[str, Any]) -> Any:
    assert planned["bucket"] == bucket.bucket
    return json.loads(bucket.read(planned["key"].removeprefix("store/")))


def test_a_run_is_planned_read_and_committed(
    bucket: Bucket, call: Callable[..., dict[str, Any]]
) -> None:
    source = f"s3://{bucket.bucket}/archives"
    request = {"sources": [source], "collections": ["news"]}
    planned = call("plan", request=request)
    assert planned["commit"] is True
    listed = items(bucket, planned)
    assert [item["index"] for item in listed] == list(range(COUNT)) == [*range(planned["missing"])]
    for item in listed[:2]:
        assert call("part", item=item) == {"index": item["index"], "captures": 3}
    with pytest.raises(UsageError, match="1 of 3 parts"):
        call("commit", run=planned["run"])
    again = call("plan", request={"run": planned["run"], "commit": False})
    assert (again["missing"], again["commit"]) == (1, False)
    assert items(bucket, again) == listed[2:]
    with pytest.raises(UsageError, match="state machine again with"):  # the workstation commits
        call("commit", run=planned["run"], commit=False)
    assert list(intake.runs(bucket)) == []
    call("part", item=listed[2])
    assert call("commit", run=planned["run"], commit=False) == {"run": planned["run"]}
    done = call("commit", run=planned["run"])
    assert done == {"run": planned["run"], "files": 3, "captures": 9, "faults": 0, "failed": 0}
    assert call("commit", run=planned["run"]) == {"run": planned["run"]}  # its answer was lost
    (run,) = intake.runs(bucket)
    assert {tuple(s.collections) for s in run.sources} == {("collection:news",)}


@pytest.mark.parametrize("published", [False, True])
def test_known_files_are_left_out(
    bucket: Bucket, call: Callable[..., dict[str, Any]], tmp_path: Path, published: bool
) -> None:
    """They are known by the intake, and by the newest snapshot."""
    request = {"sources": [f"s3://{bucket.bucket}/archives"]}
    read(call, request)
    if published:
        home = make_home(tmp_path / "home")
        assert home("publish", "--store", bucket.uri).code == 0
        assert list(intake.runs(bucket)) == []
    before = set(bucket.keys(""))
    told = call("plan", request=request)
    assert (told["run"], told["missing"], told["commit"]) == ("", 0, False)
    assert call("commit", run=told["run"], commit=told["commit"]) == {"run": ""}
    assert set(bucket.keys("")) == before
    other = call("plan", request={**request, "collections": ["news"]})  # read in another way
    assert other["missing"] == COUNT
    assert call("plan", request={**request, "again": True})["missing"] == COUNT
    path = warc(tmp_path / "1.warc.gz", {"http://b.cz/": b"new"})
    administrator(bucket.endpoint).put_object(
        Bucket=bucket.bucket, Key=f"archives/{path.name}", Body=path.read_bytes()
    )
    assert read(call, request)["captures"] == 1


def read(call: Callable[..., dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    """Plan a run, read its parts, and commit it, as the machine does."""
    planned = call("plan", request=request)
    for index in range(planned["missing"]):
        call("part", item={"run": planned["run"], "index": index})
    return call("commit", run=planned["run"])


@pytest.mark.parametrize(
    ("most", "free", "concurrency"),
    [(100, 10, 5), (100, 1000, 100), (100, 150, 75), (3, 1000, 3), (1, 1, 1), (100, None, 5)],
)
def test_parts_take_half_of_the_functions_that_the_account_has_free(
    call: Callable[..., dict[str, Any]],
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    free: int | None,
    concurrency: int,
) -> None:
    class Lambda:
        def get_account_settings(self) -> dict[str, Any]:
            if free is None:
                raise OSError("out of reach")
            return {"AccountLimit": {"UnreservedConcurrentExecutions": free}}

    monkeypatch.setattr(aws, "connect", lambda service, region: Lambda())
    planned = call("plan", most=most, request={"sources": [f"s3://{bucket.bucket}/archives"]})
    assert planned["concurrency"] == concurrency


@pytest.mark.parametrize(
    "key", ["a#1.warc.gz", "a?b=c/x.warc.gz", "a//b.warc.gz", 'a"b%20c.warc.gz']
)
def test_an_uploaded_object_may_have_any_key(
    bucket: Bucket, call: Callable[..., dict[str, Any]], tmp_path: Path, key: str
) -> None:
    path = warc(tmp_path / "x.warc.gz", PAGES)
    administrator(bucket.endpoint).put_object(
        Bucket=bucket.bucket, Key=f"uploads/{key}", Body=path.read_bytes()
    )
    request = {"objects": [{"bucket": bucket.bucket, "key": f"uploads/{key}"}]}
    assert read(call, request)["captures"] == 3
    assert call("plan", request=request)["run"] == ""  # uploaded again
    (run,) = intake.runs(bucket)
    (source,) = run.sources
    assert source.path == f"s3://{bucket.bucket}/uploads/{key}"


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"step": "plan", "request": {"sources": ["/a/b"]}}, "expected addresses"),
        ({"step": "plan", "request": {}}, "expected addresses"),
        ({"step": "plan", "request": {"run": "none"}}, "no run none"),
        ({"step": "plan", "request": {"sources": ["s3://a/b"], "chunk": 8192}}, "from 1 to 4096"),
        ({"step": "other"}, "no step of plan, part, commit"),
    ],
)
def test_what_cannot_be_done_is_said(
    call: Callable[..., dict[str, Any]], event: dict[str, Any], message: str, capsys: Any
) -> None:
    with pytest.raises((UsageError, StoreError), match=message):
        call(**event)
    assert message in capsys.readouterr().err
