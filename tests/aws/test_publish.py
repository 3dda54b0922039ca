"""The function that publishes, as AWS runs it, over a bucket that checks signatures.

What it is beside the command in an emulated cloud, with its own role, is in test_deploy.
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.aws.archive import SETTINGS, Archive, pages
from tests.aws.runtime import FunctionError, Runtime, running
from tests.bucket import fresh
from tests.e2e.conftest import warc

HANDLER = "builder.aws.publisher.handler"
EVENT = json.dumps({"source": "aws.s3", "detail-type": "Object Created"}).encode()
Make = Callable[[str], Archive]
Published = AbstractContextManager[Runtime]


@pytest.fixture
def make_archive(weed_server: str, tmp_path: Path) -> Make:
    """Give what makes an archive with the same intake, of two runs, in a bucket of its own."""
    one = warc(tmp_path / "one.warc.gz", pages(0, 240))
    two = warc(tmp_path / "two.warc.gz", pages(200, 300, "Changed"))

    def make(name: str) -> Archive:
        bucket = fresh(weed_server)
        bucket.close()
        folder = tmp_path / name
        folder.mkdir()
        environment = {**bucket.environment, **SETTINGS, "SHEAF_STORE_URI": bucket.uri}
        made = Archive(bucket.uri, environment, folder)
        made.sheaf("ingest", one, "--collection", "serials:harvest_november07")
        made.sheaf("ingest", two)
        return made

    return make


def publisher(archive: Archive, artefacts: Path, timeout: int = 120) -> Published:
    environment = {**archive.environment, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "3008"}
    return running(
        artefacts / "PublishFunction", environment, archive.folder / "runtime", timeout, HANDLER
    )


def test_it_publishes_what_the_command_would(make_archive: Make, artefacts: Path) -> None:
    by_function, by_command = make_archive("function"), make_archive("command")
    expected = json.loads(by_command.sheaf("publish", "--json"))
    with publisher(by_function, artefacts) as runtime:
        told = runtime.invoke(EVENT)
        assert told == expected | {"effective": told["effective"]}
        assert runtime.invoke(EVENT)["snapshot"] is None
        assert not list((by_function.folder / "runtime" / "tmp").iterdir())
    for sql in (
        "SELECT * EXCLUDE datestamp FROM records ORDER BY position",
        "SELECT * FROM sets ORDER BY ALL",
    ):
        assert by_function.rows(sql) == by_command.rows(sql) != []
    by_function.sheaf("verify")
    by_function.sheaf("publish")  # of the same formats: there is nothing new
    assert len(by_function.rows("SELECT * FROM snapshots")) == 1


def test_one_that_runs_out_of_time_leaves_the_store_as_it_was(
    make_archive: Make, artefacts: Path
) -> None:
    archive = make_archive("late")
    late = archive.environment | {"SHEAF_PUBLISH_LEAD": "30"}  # it waits for so long at its end
    archive = Archive(archive.store, late, archive.folder)
    with publisher(archive, artefacts, timeout=10) as runtime, pytest.raises(FunctionError):
        runtime.invoke(EVENT)
    soon = Archive(archive.store, {**late, "SHEAF_PUBLISH_LEAD": "1"}, archive.folder)
    with publisher(soon, artefacts) as runtime:
        told = runtime.invoke(EVENT)
        assert told["records"] > 300
    soon.sheaf("verify")


def test_what_is_wrong_is_a_failure_that_lambda_sees(make_archive: Make, artefacts: Path) -> None:
    archive = make_archive("wrong")
    wrong = archive.environment | {"AWS_SECRET_ACCESS_KEY": "another"}
    with publisher(Archive(archive.store, wrong, archive.folder), artefacts) as runtime:
        with pytest.raises(FunctionError, match=r"StoreError: .*secret access key is wrong"):
            runtime.invoke(EVENT)
        said = runtime.said()
    assert "sheaf: s3://" in said
    assert "another" not in said


def test_a_first_event_without_intake_is_no_failure(
    weed_server: str, artefacts: Path, tmp_path: Path
) -> None:
    bucket = fresh(weed_server)
    bucket.close()
    environment = {**bucket.environment, **SETTINGS, "SHEAF_STORE_URI": bucket.uri}
    with publisher(Archive(bucket.uri, environment, tmp_path), artefacts) as runtime:
        assert "nothing to publish" in runtime.invoke(b"{}")["message"]
