"""Own records become items: their formats, changes and deletions, without their source."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from lxml import etree

from builder.intake import intake
from builder.intake.intake import TABLES, IntakeRun, part_path
from builder.store.folder import FolderStore
from builder.store.parquet.writer import RowWriter
from functions.store import engine
from tests.e2e.conftest import Home, make_home
from tests.functions.oai.validity import OAI, valid

Parse = Callable[[bytes], etree._Element]
PREFIXES = {"oai_dc": "http://www.openarchives.org/OAI/2.0/oai_dc/", "x": "urn:x"}
_OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc"
XSI = (
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    f'xsi:schemaLocation="{_OAI_DC}/ {_OAI_DC}.xsd"'
)
TITLE = '<title xmlns="http://purl.org/dc/elements/1.1/">Bees</title>'
WHY = ("--reason", "a court order")
NAME = "oai:b.cz:catalogue,{}"


def document(number: int, title: str, *prefixes: str) -> dict[str, Any]:
    records = [
        {"prefix": p, "schema": f"urn:{p}.xsd", "namespace": PREFIXES[p], "metadata": xml}
        for p in prefixes
        for xml in [f'<p:dc xmlns:p="{PREFIXES[p]}" {XSI}>{TITLE}</p:dc>']
    ]
    fields = {"repository": "catalogue", "id": str(number), "title": title, "creators": ["Me"]}
    return {**fields, "records": records, "subjects": [], "digest": title + "".join(prefixes)}


def add_run(home: Home, name: str, rows: dict[int, dict[str, Any] | None]) -> None:
    """Write a run of the intake; None deletes an item that its source no longer names."""
    scratch = home.folder / name
    scratch.mkdir()
    records = RowWriter(part_path(scratch, "own_records", name), TABLES["own_records"])
    for number, content in rows.items():
        prefixes = [r["prefix"] for r in content["records"]] if content else []
        text, digest = (json.dumps(content), content["digest"]) if content else (None, None)
        records.append((NAME.format(number), not content, ["type:a"], prefixes, text, digest))
    records.close()
    tables = RowWriter(part_path(scratch, "own_tables", name), TABLES["own_tables"])
    for prefix, namespace in PREFIXES.items():
        tables.append(("catalogue", "{}", prefix, f"urn:{prefix}.xsd", namespace))
    tables.close()
    intake.commit(FolderStore(home.folder / "store"), IntakeRun(name, (), own=len(rows)), scratch)


def answer(
    base: str, verb: str, parse: Parse = etree.fromstring, **arguments: str
) -> etree._Element:
    with urlopen(f"{base}?{urlencode({'verb': verb, **arguments})}", timeout=60) as reply:
        return parse(reply.read())


def publish(home: Home) -> tuple[int, int, int]:
    """Publish; return how many items are new, changed and deleted."""
    done = home("publish", "--json")
    assert done.code == 0, done.err
    return tuple(done.json[name] for name in ("new", "changed", "deleted"))


def test_items_have_formats_change_and_are_deleted(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    both = [document(number, f"Bees {number}", "oai_dc", "x") for number in range(3)]
    add_run(home, "1", {number: both[number] for number in (2, 0, 1)})
    assert publish(home) == (3, 0, 0)
    # They are not sorted: the order is that of the intake.
    listed = home("query", "SELECT identifier[-1] FROM records ORDER BY position")
    assert listed.out.split()[1:] == ["2", "0", "1"]
    add_run(home, "2", {0: both[0], 1: document(1, "Wasps", "oai_dc"), 2: None, 9: None})
    assert publish(home) == (0, 2, 1)
    add_run(home, "3", {0: both[0]})
    assert publish(home) == (0, 0, 0)
    with home.served() as base:
        formats = answer(base, "ListMetadataFormats", valid)
        assert [e.text for e in formats.iter(f"{OAI}metadataPrefix")] == ["oai_dc", "x"]
        for prefix, live in (("oai_dc", {"0", "1"}), ("x", {"0"})):
            # No schema knows the namespace urn:x.
            records = answer(base, "ListRecords", metadataPrefix=prefix).iter(f"{OAI}record")
            names = {
                str(r.findtext(f"{OAI}header/{OAI}identifier")): r.find(f"{OAI}metadata")
                for r in records
            }
            assert names.keys() == {NAME.format(number) for number in range(3)}
            assert {n[-1] for n, metadata in names.items() if metadata is not None} == live
        one = answer(base, "ListMetadataFormats", valid, identifier=NAME.format(1))
        assert [e.text for e in one.iter(f"{OAI}metadataPrefix")] == ["oai_dc", "x"]
        wanted = {"identifier": NAME.format(0), "metadataPrefix": "oai_dc"}
        record = answer(base, "GetRecord", valid, **wanted)
        assert not [*record.iter(f"{OAI}about")]
    assert home("verify").code == 0


def test_a_withdrawn_item_stays_withdrawn_and_comes_back(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    add_run(home, "1", {1: document(1, "Bees", "oai_dc")})
    publish(home)
    assert home("withdraw", "--identifier", NAME.format(1), *WHY).code == 0
    add_run(home, "2", {1: document(1, "Wasps", "oai_dc")})
    assert publish(home) == (0, 0, 0)
    assert home("reinstate", "--identifier", NAME.format(1)).code == 0
    add_run(home, "3", {1: document(1, "Wasps", "oai_dc")})
    assert publish(home) == (0, 1, 0)
    assert home("verify").code == 0


def test_own_records_alone_take_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, taken, connect = make_home(tmp_path / "home"), list[dict[str, Any]](), engine.connect
    add_run(home, "1", {1: document(1, "Bees", "oai_dc")})

    def note(**own: Any) -> engine.Connection:
        taken.append(own)
        return connect(**own)

    monkeypatch.setattr(engine, "connect", note)
    publish(home)
    assert all(own["memory_megabytes"] <= 512 for own in taken if "scratch" in own)
