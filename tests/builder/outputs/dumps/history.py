"""Histories of a store, and readers of dumps that know nothing but their documents."""

import gzip
import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import strategies as st
from lxml import etree

from builder.publish.selection import Selection
from builder.snapshot.transaction import NothingSelectedError
from builder.store.folder import FolderStore
from functions.kinds import KINDS
from tests.builder.conftest import World, capture

OAI = "{http://www.openarchives.org/OAI/2.0/}"
SETS = (("mime:text:html",), ("mime:image:png",), ("domain:cz:a", "mime:text:css"))

numbers = st.lists(st.integers(0, 11), min_size=1, max_size=6, unique=True)
operations = st.one_of(
    st.tuples(st.just("ingest"), numbers, st.integers(0, 2), st.sampled_from("abc")),
    st.tuples(st.just("withdraw"), numbers, st.just(0), st.just("")),
    st.tuples(st.just("reinstate"), numbers, st.just(0), st.just("")),
    st.tuples(st.just("expire"), st.just([]), st.just(0), st.just("")),
)
histories = st.lists(operations, min_size=2, max_size=6)
Operation = tuple[str, list[int], int, str]


def apply(world: World, operation: Operation, **settings: str) -> None:
    """Change the store: new, changed and moved captures, tombstones, and captures brought back."""
    name, chosen, sets, title = operation
    if name == "ingest":
        world.ingest([capture(n, title=title, sets=SETS[sets]) for n in chosen], ("collection:a",))
        world.publish(**settings)
        return
    if name == "expire":
        world.clock.sleep(120)
        world.expire()
        return
    selection = Selection(identifiers=tuple(identify(n) for n in chosen))
    try:
        if name == "withdraw":
            world.withdraw(selection, "x", **settings)
        else:
            world.reinstate(selection, **settings)
    except NothingSelectedError:
        pass


def die_at(
    patch: pytest.MonkeyPatch, prefix: str, number: int, error: BaseException, *names: str
) -> list[str]:
    """Let these methods raise from change `number` below a prefix on; return the changes so far."""
    done: list[str] = []

    def wrap(name: str) -> None:
        whole = getattr(FolderStore, name)

        def change(store: FolderStore, *arguments: Any) -> Any:
            if any(str(argument).startswith(prefix) for argument in arguments):
                if len(done) == number:
                    raise error
                done.append(name)
            return whole(store, *arguments)

        patch.setattr(FolderStore, name, change)

    for name in names:
        wrap(name)
    return done


def identify(number: int) -> str:
    return f"oai:archive.example.org:{capture(number).identity}"


def live(world: World, spec: str = "") -> set[str]:
    """Return the identifiers of live items, of a set and those below it, by SQL of the tables."""
    with world.views() as connection:
        rows = connection.execute("SELECT identifier, sets FROM records WHERE NOT deleted")
        return {
            name
            for name, sets in rows.fetchall()
            if not spec or any(f"{one}:".startswith(f"{spec}:") for one in sets)
        }


def expand(data: bytes, name: str) -> bytes:
    if name.endswith(".gz"):
        return gzip.decompress(data)
    return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()


def contents(folder: Path) -> tuple[dict[str, Any], list[bytes]]:
    """Return the manifest of a dump and the content of its parts, after checking both."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json",
        *(part["name"] for part in manifest["parts"]),
    }
    found = []
    for part in manifest["parts"]:
        data = (folder / part["name"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (part["bytes"], part["sha256"])
        found.append(expand(data, part["name"]))
    for count in ("records", "deleted", "bytes"):
        assert manifest[count] == sum(part[count] for part in manifest["parts"])
    return manifest, found


def lines(parts: Iterable[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for part in parts for line in part.splitlines()]


def headers(parts: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return identifier, datestamp and deletion of the records in OAI-PMH documents."""
    return [
        {
            "identifier": header.findtext(f"{OAI}identifier"),
            "datestamp": header.findtext(f"{OAI}datestamp"),
            "deleted": header.get("status") == "deleted",
        }
        for part in parts
        for header in etree.fromstring(part).iter(f"{OAI}header")
    ]


def merge(state: dict[str, Any], records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a state after a dump was applied to it, each of whose records is of another item."""
    names = [record["identifier"] for record in records]
    assert len(names) == len(set(names))
    return {**state, **{record["identifier"]: record for record in records}}


def shown(state: dict[str, Any]) -> set[str]:
    """Return the identifiers of a state that are not deleted."""
    return {name for name, record in state.items() if not record["deleted"]}


def brief(state: dict[str, Any]) -> dict[str, Any]:
    """Return what a state has in common with one of OAI-PMH headers."""
    keys = ("identifier", "datestamp", "deleted")
    return {name: {key: record[key] for key in keys} for name, record in state.items()}


KEYS = ("identifier", "datestamp", "sets", "kind", "deleted")


def check_keys(record: dict[str, Any]) -> None:
    """Check that a line has its keys in the documented order."""
    own = [] if record["deleted"] else [column.name for column in KINDS[record["kind"]].columns]
    order = [*KEYS, *own]
    assert list(record) == [name for name in order if name in record]
    assert list(record)[:5] == list(KEYS)
