"""Scenarios 1 and 2 by the command, from a DOI to what is listed, kept and verified.

They are played with made answers, in each way of keeping files, and with the platform's real ones
where these are at hand. Scenarios 3 and 17 are played with each strategy, in test_strategies.
"""

import hashlib
import json
import zlib
from typing import Any

import pytest

from tests.builder.sources.datasets.command import Command
from tests.builder.sources.datasets.deposits import deposit, doi, real_deposit

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
