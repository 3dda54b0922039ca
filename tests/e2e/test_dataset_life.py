"""A dataset's life: a harvester sees each step exactly once, and all bytes stay by version."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from functions.oai.repository_duckdb.repository import DuckRepository
from tests.builder.export.test_datasets import held
from tests.builder.filesets import command as commands
from tests.builder.filesets.command import Command
from tests.builder.filesets.deposits import ZENODO, content, page, record
from tests.builder.filesets.server import Server, json_of, served, serving, status
from tests.builder.filesets.world import world
from tests.clock import CLOCK
from tests.functions.oai.client import Client

FIRST = "oai:archive.example.org:dataset,zenodo,zenodo.org,10"
SECOND = f"{FIRST},12"
FILES: Mapping[str, Mapping[str, bytes]] = {
    FIRST: {"a.csv": b"weight\n1\n"},
    SECOND: {"a.csv": b"weight\n2\n", "b.csv": b"price\n3\n"},
}


@pytest.fixture
def command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Command]:
    with serving() as server:
        yield commands.made(world(server, tmp_path), tmp_path, capsys, monkeypatch)


def deposit(server: Server, number: int, files: Mapping[str, bytes], **more: Any) -> str:
    """Have the server know a version of the dataset 10; number 11 is the first."""
    index = {"relations": {"version": [{"index": number - 11}]}}
    told = record(number, files, **index, **more)
    told |= {"conceptrecid": "10", "conceptdoi": "10.5281/zenodo.10"}
    if more:
        told["files"] = []
    server.add(f"{ZENODO}/api/records/{number}", json_of(told))
    for path, body in files.items():
        server.add(content(number, path), served(body, etag="strong"))
    return page(number)


class Harvester:
    """Harvests what changed since its last harvest."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._since: dict[str, str] = {}

    def take(self) -> dict[str, etree._Element]:
        """Return the changed records, and check that none is deleted."""
        CLOCK.sleep(60)
        with closing(DuckRepository(self._command.store)) as repository:
            client = Client(repository, CLOCK.now)  # type: ignore[arg-type]
            found = client.get("ListRecords", metadataPrefix="oai_datacite", **self._since)
        assert found.codes in ([], ["noRecordsMatch"])
        self._since = {"from_": found.response_date}
        assert not any(deleted for _, deleted in found.headers)
        return dict(zip(found.identifiers, found.root.iter("{*}metadata"), strict=True))


def relations(of: etree._Element) -> set[tuple[str, str]]:
    return {(str(e.get("relationType")), str(e.text)) for e in of.iter("{*}relatedIdentifier")}


def withdrawn(of: etree._Element) -> list[str]:
    return [str(e.get("dateInformation")) for e in of.iter("{*}date") if e.get("dateInformation")]


def restored(command: Command, identifier: str) -> dict[str, bytes]:
    """Return the files of a version as `sheaf restore` gives them."""
    folder = command.folder / f"restored-{len(list(command.folder.iterdir()))}"
    command("restore", identifier, str(folder))
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name in FILES[identifier]}


@pytest.mark.thorough
def test_a_dataset_has_two_versions_is_restricted_is_gone_and_is_back(command: Command) -> None:
    server, harvester, doi = command.server, Harvester(command), "10.5281/zenodo"

    def step(url: str, expected: str) -> dict[str, etree._Element]:
        """Request the version at `url`, publish, and return what a harvester sees."""
        found, *_ = command.results(url)
        assert found["status"] == expected, found["detail"]
        command("publish")
        told = harvester.take()
        assert harvester.take() == {}
        for identifier in FILES if listed else (FIRST,):
            assert restored(command, identifier) == FILES[identifier]
        command("export", "ocfl", str(command.folder / "root"))
        return told

    listed = False
    told = step(deposit(server, 11, FILES[FIRST]), "success-file")
    assert relations(told.pop(FIRST)) == {("IsVersionOf", f"{doi}.10")}
    assert told == {}

    listed = True
    second = deposit(server, 12, FILES[SECOND])
    told = step(second, "success")
    assert relations(told.pop(FIRST)) == {
        ("IsVersionOf", f"{doi}.10"),
        ("IsPreviousVersionOf", f"{doi}.12"),
    }
    assert relations(told.pop(SECOND)) == {
        ("IsVersionOf", f"{doi}.10"),
        ("IsNewVersionOf", f"{doi}.11"),
    }
    assert told == {}

    closings: list[tuple[str, Callable[[], object]]] = [
        ("platform-restricted", lambda: deposit(server, 12, {}, access_right="restricted")),
        ("platform-gone", lambda: server.add(f"{ZENODO}/api/records/12", status(410))),
    ]
    for name, close in closings:
        close()
        told = step(second, name)
        (line,) = withdrawn(told[SECOND])
        assert line.startswith(f"{name} since {CLOCK.now():%Y-%m-}")
        assert [e.text for e in told.pop(SECOND).iter("{*}size")] == ["17 bytes", "2 files"]
        assert told == {}
        assert step(second, name) == {}

    deposit(server, 12, FILES[SECOND])
    told = step(second, "success-existing")
    assert withdrawn(told.pop(SECOND)) == []
    assert told == {}
    command("verify")
    out, _ = command("export", "ocfl", str(command.folder / "root"))
    assert "0 objects and 0 versions added" in out
    assert held(command.folder / "root", FIRST) == [*FILES.values()]
