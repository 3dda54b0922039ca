"""The function that publishes: the command `sheaf publish`, started by events."""

import json
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from builder.aws import publisher
from builder.errors import UsageError
from builder.intake import intake
from builder.intake.rows import IntakeWriter
from functions.config import configuration
from functions.reading.duck_repository import DuckRepository
from functions.snapshot.errors import ConfigurationError, DamagedStore
from functions.snapshot.fixity import read_reports
from tests.bucket import Bucket
from tests.builder.conftest import World, capture

Make = Callable[..., Bucket]


def settings(store: str, **more: str) -> dict[str, str]:
    return {
        "SHEAF_STORE_URI": store,
        "SHEAF_REPOSITORY_NAMESPACE": "archive.example.org",
        "SHEAF_PUBLISH_LEAD": "1",
        **more,
    }


class Here:
    """The function over a folder store: its variables, its zip's root and its scratch."""

    def __init__(self, world: World, folder: Path) -> None:
        self.variables: Mapping[str, str] = settings(str(world.root))
        self.root, self.scratch = folder / "task", folder / "scratch"
        self.root.mkdir()
        self.scratch.mkdir()

    def run(self, **event: object) -> dict[str, object]:
        return publisher.run(event, self.variables, self.root, self.scratch)


@pytest.fixture
def here(world: World, tmp_path: Path) -> Here:
    return Here(world, tmp_path)


def test_it_publishes_what_was_ingested(
    world: World, here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    world.ingest([capture(number) for number in range(5)])
    told = here.run()
    assert (told["snapshot"], told["records"], told["new"]) == (1, 5, 5)
    assert json.loads(capsys.readouterr().out) == told
    repository = DuckRepository(world.store)
    assert repository.manifest(1).kinds() == {"capture": 5}
    repository.close()
    assert not list(world.store.keys("intake/"))


def test_where_there_is_nothing_new_it_does_nothing(world: World, here: Here) -> None:
    world.ingest([capture(1)])
    here.run()
    before = list(world.store.entries(""))
    told = here.run()
    assert (told["snapshot"], told["records"]) == (None, 1)
    assert list(world.store.entries("")) == before


def test_a_store_without_anything_in_it_is_no_fault(world: World, here: Here) -> None:
    told = here.run()
    assert told["snapshot"] is None
    assert "run `sheaf ingest` first" in str(told["message"])
    assert not list(world.store.keys(""))


def test_a_bucket_is_published_to(
    make_bucket: Make, world: World, here: Here, tmp_path: Path
) -> None:
    bucket = make_bucket()
    part = IntakeWriter(tmp_path, "000000")
    part.capture(capture(1), ("mime:text:html",))
    part.close()
    source = intake.IntakeSource("a.warc.gz", "d", "a.warc.gz", "warc.gz", 1, 1, 0, 0, {}, {})
    intake.commit(bucket, intake.IntakeRun("run-001", (source,)), tmp_path)
    here.variables = settings(bucket.uri, **bucket.environment)
    assert here.run()["new"] == 1
    assert here.run()["snapshot"] is None
    assert not list(here.scratch.iterdir())


def test_what_an_earlier_run_left_is_removed_and_nothing_is_left(world: World, here: Here) -> None:
    """Lambda ends a publish that takes too long, and keeps its disk for the next one."""
    left = here.scratch / "sheaf-publisher" / "sheaf-publish-abc" / "records.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"left")
    other = here.scratch / "somebody-else-s"
    other.write_bytes(b"stays")
    before = tempfile.gettempdir()
    world.ingest([capture(1)])
    here.run()
    assert list(here.scratch.iterdir()) == [other]
    assert tempfile.gettempdir() == before


def test_a_sheaf_toml_beside_it_counts(world: World, here: Here) -> None:
    world.ingest([capture(1)])
    here.variables = {"SHEAF_STORE_URI": str(world.root), "SHEAF_PUBLISH_LEAD": "1"}
    with pytest.raises(ConfigurationError, match="is still example"):
        here.run()
    (here.root / "sheaf.toml").write_text(
        '[repository]\nnamespace = "archive.example.org"\n[store]\nuri = "nowhere"\n', "utf-8"
    )
    assert here.run()["new"] == 1


def test_a_fault_is_told_in_a_line_and_raised(
    world: World, here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lambda tries what was raised again, and keeps it if that does not help."""
    world.root.mkdir()
    (world.root / "current.json").write_bytes(b"{}")
    with pytest.raises(DamagedStore):
        here.run()
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("sheaf: current.json")
    assert found.err.count("\n") == 1
    assert not list(here.scratch.iterdir())


@pytest.mark.parametrize(
    ("variables", "megabytes"),
    [
        ({}, 2048),
        ({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "3008"}, 2108),
        ({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "10240"}, 9340),
        ({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512"}, 256),
    ],
)
def test_the_database_gets_what_the_program_leaves(
    variables: dict[str, str], megabytes: int
) -> None:
    settings = publisher.fit_memory(configuration.parse("", {}), variables)
    assert settings["publish.memory"] == megabytes


def test_the_handler_takes_any_event(
    world: World, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.ingest([capture(1)])
    for name, value in here.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LAMBDA_TASK_ROOT", str(here.root))
    monkeypatch.setattr(tempfile, "tempdir", str(here.scratch))
    assert publisher.handler({"detail-type": "Object Created"})["new"] == 1
    assert publisher.handler(None)["snapshot"] is None


# What keeps a store in order


def test_an_event_retires_old_snapshots_and_keeps_what_it_says(world: World, here: Here) -> None:
    for number in range(4):
        world.ingest([capture(number)])
        world.publish()
        world.clock.sleep(86_400)
    assert here.run(task="expire", keep=1, days=36_500)["retired"] == ()
    told = here.run(task="expire", keep=2)
    assert (told["task"], told["retired"], told["kept"]) == ("expire", (1, 2), (3, 4))


def test_the_days_of_a_timer_check_a_part_each_and_together_everything(
    world: World, here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    world.ingest([capture(number) for number in range(5)])
    world.publish()
    days = [f"2026-12-{day}T03:00:00Z" for day in (30, 31)] + ["2027-01-01T03:00:00Z"]
    told = [here.run(task="verify", parts=3, time=day) for day in days]
    assert {one["part"] for one in told} == {"1/3", "2/3", "3/3"}
    assert [one["read"] for one in told] != [told[0]["files"]] * 3
    assert sum(int(str(one["read"])) for one in told) == told[0]["files"]
    assert here.run(task="verify", parts=3, time=days[0])["part"] == told[0]["part"]
    assert here.run(task="verify")["read"] == told[0]["files"]
    kept = [one.part for one in read_reports(world.store)]
    assert kept == [*(one["part"] for one in told), told[0]["part"], ""]
    (record,) = list(world.store.keys("records/records"))[:1]
    damaged = world.root / record
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    capsys.readouterr()
    with pytest.raises(DamagedStore, match="is damaged; the report is in the log"):
        here.run(task="verify")
    (report, *_) = capsys.readouterr().out.splitlines()
    assert record in {finding["object"] for finding in json.loads(report)["findings"]}


@pytest.mark.parametrize("task", [{"task": "expire", "keep": 1}, {"task": "verify"}])
def test_a_timer_may_come_before_anything_is_published(task: dict[str, object], here: Here) -> None:
    assert "nothing is published" in str(here.run(**task)["message"])


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"task": "purge"}, "none of publish, expire, verify: 'purge'"),
        ({"task": "expire"}, "selects nothing"),
        ({"task": "expire", "keep": 0}, "keep: expected a number from 1, got 0"),
        ({"task": "expire", "days": "30"}, "days: expected a number from 0, got '30'"),
        ({"task": "verify", "part": "4/3"}, "expected K/N"),
        ({"task": "verify", "parts": 0, "time": "2026-12-30T03:00:00Z"}, "parts: expected"),
        ({"task": "verify", "parts": 3, "time": "<aws.scheduler.scheduled-time>"}, "no time"),
        ({"task": "verify", "parts": 3}, "no time"),
    ],
)
def test_an_event_that_makes_no_sense_is_refused(
    event: dict[str, object], said: str, here: Here
) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        here.run(**event)
