"""The function that publishes: the command `sheaf publish`, started by events."""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from builder.aws import publisher
from builder.intake import intake
from builder.intake.rows import IntakeWriter
from functions.config import configuration
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.snapshot.errors import ConfigurationError, DamagedStore
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

    def run(self) -> dict[str, object]:
        return publisher.run(self.variables, self.root, self.scratch)


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
