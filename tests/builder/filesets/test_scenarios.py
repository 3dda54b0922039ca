"""Scenarios 1, 2, 3 and 17 by the command, from a DOI to what is listed, kept and verified.

They are played with made answers, in each way of keeping files, and with the platform's real ones
where these are at hand.
"""

import hashlib
import json
import zlib
from typing import Any

import pytest

from tests.builder.filesets.command import Command
from tests.builder.filesets.deposits import content, deposit, doi, real_deposit
from tests.builder.filesets.server import served

pytestmark = pytest.mark.shared(2)

BODIES = {"a.csv": b"hive,kg\n1,20\n", "b.jsonl": b"{}\n", "c.xls": bytes(range(256)) * 30}
WAYS: dict[str, dict[str, str]] = {
    "files": {},
    "web": {"fileset__strategy": '"web"'},
    "bundle": {"fileset__strategy": '{ backend = "s3", bundle = "always" }'},
}


def known(command: Command, true: bool) -> tuple[str, dict[str, bytes]]:
    """Have Zenodo know a record; return its DOI, and the bytes of its files."""
    if true:
        return real_deposit(command.server)
    deposit(command.server, 11, BODIES)
    return doi(command.server, 11), BODIES


def rows(command: Command) -> list[dict[str, Any]]:
    out, _ = command("query", "--json", "SELECT * FROM files ORDER BY path")
    return [json.loads(line) for line in out.splitlines()]


def fetched(command: Command) -> list[str]:
    """Return the addresses of bytes that were asked for, in both forms of Zenodo's."""
    urls = [asked.url for asked in command.server.asked("https://zenodo.org/api/")]
    return [url for url in urls if "/files/" in url]


def body(data: bytes, place: int | None, size: int, compression: str | None) -> bytes:
    """Return a file out of the object that has it."""
    if place is None:
        return data
    if compression == "stored":
        return data[place : place + size]
    assert compression == "warc"
    record = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data[place:])
    return record.split(b"\r\n\r\n", 2)[2][:size]


def datasets(command: Command) -> dict[str, bytes]:
    """Return all that is kept of datasets, by key."""
    store = command.store
    keys = [*store.keys("filesets/"), *store.keys("warcs/")]
    return {key: store.read(key) for key in keys}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("true", "settings"),
    [(True, WAYS["files"]), *((False, way) for way in WAYS.values())],
    ids=["real", *WAYS],
)
def test_scenarios_1_and_2_all_files_are_listed_and_kept_and_none_is_fetched_again(
    command: Command, true: bool, settings: dict[str, str]
) -> None:
    command.configure(**settings)
    name, bodies = known(command, true)
    (found,) = command.results(name)
    assert (found["status"], found["file_count"]) == ("success", len(bodies))
    command("publish")
    listed = rows(command)
    assert {row["path"]: row["sha256"] for row in listed} == {
        path: hashlib.sha256(body).hexdigest() for path, body in bodies.items()
    }
    assert {row["status"] for row in listed} == {"verified"}
    kept = datasets(command)
    assert bodies == {
        row["path"]: body(kept[row["key"]], row["place"], row["bytes"], row["compression"])
        for row in listed
    }
    command("verify")
    before = datasets(command)
    command.server.forget()
    (again,) = command.results(name)
    assert again["status"] == "success-existing"
    assert fetched(command) == []
    assert datasets(command) == before
    out, _ = command("publish", "--json")
    assert (json.loads(out)["changed"], rows(command)) == (0, listed)


def test_scenario_3_what_was_deleted_alone_is_fetched_again(command: Command) -> None:
    name, _ = known(command, true=False)
    command.results(name)
    before = datasets(command)
    (lost, *_) = [key for key in before if "/files/" in key]
    command.store.remove(lost)
    command.server.forget()
    (found,) = command.results(name)
    assert found["status"] in {"success", "success-existing"}
    assert len(fetched(command)) == 1
    assert datasets(command) == before


def test_scenario_3_what_was_altered_is_told_and_not_written_over(command: Command) -> None:
    name, _ = known(command, true=False)
    command.results(name)
    (key, *_) = [key for key in datasets(command) if "/files/" in key]
    path = command.folder / "store" / key
    path.chmod(0o644)
    path.write_bytes(b"something else")
    command.server.forget()
    (found,) = command.results(name)
    assert found["status"] == "mismatch-existing"
    assert found["detail"].startswith(
        "altered since it was archived, not overwritten; remove it to"
    )
    assert found["detail"].endswith(key)
    assert not found["hit"]
    assert [f["status"] for f in found["manifest"]].count("mismatch-existing") == 1
    assert fetched(command) == []
    assert path.read_bytes() == b"something else"
    command("publish")
    out, _ = command("verify", code=1)
    assert "fileset-altered" in out


@pytest.mark.sampled(3)
@pytest.mark.parametrize("settings", WAYS.values(), ids=[*WAYS])
def test_scenario_17_one_wrong_byte_spoils_the_dataset_and_nothing_of_it_is_listed(
    command: Command, settings: dict[str, str]
) -> None:
    command.configure(http__tries="2", fileset__partial="false", **settings)
    bodies = dict(zip("abcde", (bytes([65 + n]) * 4000 for n in range(5)), strict=True))
    wrong = served(bodies["c"], wrong=1234)
    url = deposit(command.server, 11, bodies, answers={"c": wrong})
    (found,) = command.results(url)
    assert found["status"] == "mismatch-md5"
    told = {file["path"]: file["status"] for file in found["manifest"]}
    assert told["c"] == "mismatch-md5"
    assert len(command.server.asked(content(11, "c"))) == 2
    assert not [k for k in datasets(command) if k.endswith((".zip", ".gz", "fileset.json"))]
    command("publish")
    assert rows(command) == []
    out, _ = command("query", "SELECT status, hit FROM ingest_fileset_platform")
    assert out.splitlines()[1:] == ["mismatch-md5,False"]
