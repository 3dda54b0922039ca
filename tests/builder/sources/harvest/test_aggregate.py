"""What was harvested is published again: its items, formats, sets, and where it was taken from."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from lxml import etree

from builder.sources.harvest import folder as folders
from builder.sources.harvest.fragment import cut_fragments
from builder.sources.harvest.repository import find_repository
from builder.store.folder import FolderStore
from functions.oai import application
from functions.oai.application import render_document
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import layout
from tests.builder.kinds.records.test_own import publish
from tests.builder.sources.harvest.element import Item
from tests.builder.sources.harvest.provider import NOW, items
from tests.builder.sources.harvest.written import harvest, row
from tests.e2e.conftest import Home, make_home, warc
from tests.functions.oai.validity import OAI, codes, valid

pytestmark = pytest.mark.shared(2)

SOME = items(10)  # the last one is deleted
FIRST = SOME[1]
LATER = "2026-11-23T10:00:00Z"
NEXT = "2026-11-24T10:00:00Z"
PROVENANCE = "{http://www.openarchives.org/OAI/2.0/provenance}"
ORIGIN = f"{PROVENANCE}originDescription"
RECORDS = "verb=ListRecords&metadataPrefix=oai_dc"
MARC21 = "verb=ListIdentifiers&metadataPrefix=marc21"


def published(home: Home, *folders: Path) -> tuple[int, int, int]:
    """Ingest and publish; return how many items are new, changed and deleted."""
    found = home("ingest", *folders)
    assert found.code == 0, found.err
    return publish(home)


def asked(base: str, query: str) -> etree._Element:
    with urlopen(f"{base}?{query}", timeout=60) as answer:
        return valid(answer.read())


def records(root: etree._Element) -> dict[str, etree._Element]:
    return {
        str(one.findtext(f"{OAI}header/{OAI}identifier")): one for one in root.iter(f"{OAI}record")
    }


def identifiers(root: etree._Element) -> list[str]:
    return [str(one.text) for one in root.iter(f"{OAI}identifier")]


def meaning(element: etree._Element) -> bytes:
    return bytes(etree.tostring(etree.fromstring(etree.tostring(element)), method="c14n2"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home in which all that a test published is well."""
    made = make_home(tmp_path / "home")
    yield made
    if (made.folder / "store" / layout.RECORDS).exists():
        assert made("verify").code == 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "harvests"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["parquet", "jsonl", "xml"])
def test_items_keep_identifiers_metadata_and_sets(home: Home, folder: Path, form: str) -> None:
    rows = [row(one) for one in SOME]
    harvest(folder, rows, form=form, sets=[("a", "The first set")])
    assert published(home, folder) == (10, 0, 1)
    with home.served() as base:
        found = records(asked(base, RECORDS))
        assert found.keys() == {one.identifier for one in SOME}
        # Whoever had the deleted one from elsewhere, or before, is told of it.
        (header,) = found[SOME[9].identifier]
        assert header.get("status") == "deleted"
        assert "repository:a.cz" in {e.text for e in header.iter(f"{OAI}setSpec")}
        for came in rows[:9]:
            record, piece = found[came.identifier], cut_fragments(came.record).metadata
            assert piece is not None
            (metadata,) = record.iterfind(f"{OAI}metadata/*")
            assert meaning(metadata) == meaning(etree.fromstring(piece.text))
            sets = {e.text for e in record.iter(f"{OAI}setSpec")}
            assert sets == {"repository:a.cz", *(f"from:a.cz:{s}" for s in came.sets)}
        names = {
            s.findtext(f"{OAI}setSpec"): s.findtext(f"{OAI}setName")
            for s in asked(base, "verb=ListSets").iter(f"{OAI}set")
        }
    assert names["repository:a.cz"] == "Archive A"
    assert names["from:a.cz:a"] == "The first set"
    assert names["from:a.cz:a:b"] == "a.cz: a / b"
    assert names["from"] == "Sets of other repositories"


def test_where_it_was_taken_from_is_told_in_full(home: Home, folder: Path) -> None:
    rights = '<rights xmlns="urn:x-rights">&lt;mine&gt;</rights>'
    earlier = (
        '<p:provenance xmlns:p="http://www.openarchives.org/OAI/2.0/provenance">'
        '<p:originDescription altered="true" harvestDate="2020-01-02T03:04:05Z">'
        "<p:baseURL>http://b.cz/oai</p:baseURL><p:identifier>oai:b.cz:7</p:identifier>"
        "<p:datestamp>2019-01-01</p:datestamp>"
        "<p:metadataNamespace>http://b.cz/</p:metadataNamespace>"
        '<p:originDescription altered="false" harvestDate="2018-01-02">'
        "<p:baseURL>http://c.cz/</p:baseURL><p:identifier>oai:c.cz:7</p:identifier>"
        "<p:datestamp>2017-01-01</p:datestamp><p:metadataNamespace>urn:c</p:metadataNamespace>"
        "</p:originDescription></p:originDescription></p:provenance>"
    )
    plain = row(FIRST)
    told = replace(
        plain,
        record=plain.record.replace(
            "</metadata>", f"</metadata><about>{earlier}</about><about>{rights}</about>"
        ),
    )
    mended = row(SOME[2], fault="a character was mended")
    harvest(folder, [told, mended])
    assert published(home, folder) == (2, 0, 0)
    with home.served() as base:
        found = records(asked(base, RECORDS))
    chain = list(found[FIRST.identifier].iter(ORIGIN))
    assert [
        (
            o.get("harvestDate"),
            o.get("altered"),
            o.findtext(f"{PROVENANCE}baseURL"),
            o.findtext(f"{PROVENANCE}identifier"),
            o.findtext(f"{PROVENANCE}datestamp"),
        )
        for o in chain
    ] == [
        ("2026-11-22T10:00:00Z", "false", "http://a.cz/oai", FIRST.identifier, plain.datestamp),
        ("2020-01-02T03:04:05Z", "true", "http://b.cz/oai", "oai:b.cz:7", "2019-01-01"),
        ("2018-01-02", "false", "http://c.cz/", "oai:c.cz:7", "2017-01-01"),
    ]
    assert chain[2].getparent() is chain[1]
    abouts = found[FIRST.identifier].findall(f"{OAI}about")
    assert [one[0].tag for one in abouts] == [f"{PROVENANCE}provenance", "{urn:x-rights}rights"]
    assert abouts[1][0].text == "<mine>"
    assert [o.get("altered") for o in found[mended.identifier].iter(ORIGIN)] == ["true"]


def test_what_changes_there_changes_here_and_nothing_else_does(home: Home, folder: Path) -> None:
    harvest(folder, [row(one) for one in SOME])
    assert published(home, folder) == (10, 0, 1)
    # The same again, whenever it comes, is no change.
    harvest(folder, [row(one, came=LATER) for one in SOME])
    assert published(home, folder) == (0, 0, 0)
    changed = replace(SOME[2], title="Another", stamp=NOW, sets=("c",))
    gone, back = replace(SOME[3], deleted=True, stamp=NOW), replace(SOME[9], deleted=False)
    harvest(folder, [row(one, came=LATER) for one in (*SOME, changed, gone, back)])
    assert published(home, folder) == (0, 3, 1)
    with home.served() as base:
        found = records(asked(base, RECORDS))
        left = records(asked(base, f"{RECORDS}&set=from:a.cz:a:b"))
    assert len(found) == 10
    titles = [e.text for e in found[changed.identifier].iter("{*}title")]
    assert titles == ["Another"]
    assert left[changed.identifier].find(f"{OAI}header").get("status") == "deleted"
    head = found[gone.identifier].find(f"{OAI}header")
    assert head is not None
    assert head.get("status") == "deleted"
    assert len(found[gone.identifier]) == 1
    # An older copy of a harvest takes nothing that is newer back.
    harvest(folder, [row(SOME[2])])
    assert published(home, folder) == (0, 0, 0)


@pytest.mark.thorough
def test_a_set_that_begins_with_a_deletion_has_begun(home: Home, folder: Path) -> None:
    """It is a set of each publish since: empty, until its record comes back."""
    first, gone = replace(SOME[0], sets=("a",)), replace(SOME[9], sets=("gone",))
    harvest(folder, [row(first), row(gone)])
    assert published(home, folder) == (2, 0, 1)
    changed = replace(first, title="Another", stamp=NOW)
    harvest(folder, [row(one, came=LATER) for one in (changed, gone)])
    assert published(home, folder) == (0, 1, 0)
    assert home("verify").code == 0
    spec = "from:a.cz:gone"
    home.config.write_text(f'{home.config.read_text()}\n[sets.names]\n"{spec}" = "Gone"\n')
    with home.served() as base:
        listed = [e.text for e in asked(base, "verb=ListSets").iter(f"{OAI}setSpec")]
        live = ["from", "from:a.cz", "from:a.cz:a", "repository", "repository:a.cz"]
        assert listed == [*live, spec]
        assert [*records(asked(base, f"{RECORDS}&set={spec}"))] == [gone.identifier]
    back = replace(gone, deleted=False, stamp=NOW)
    harvest(folder, [row(one, came=LATER) for one in (changed, back)])
    assert published(home, folder) == (0, 1, 0)
    with closing(DuckRepository(FolderStore(home.folder / "store"))) as repository:
        assert [repository.manifest(number).emptied for number in (1, 2, 3)] == [1, 1, 0]
        manifest = repository.manifest(3)
        assert repository.births(manifest, [spec]) == {spec: 1}
        # A list that began with an earlier publish has it as that publish had it.
        for number, expected in ((1, [spec]), (2, [spec]), (3, [])):
            rows = repository.sets(manifest, "", 9, number, live=False)
            assert [row.spec for row in rows] == expected


def offer_marc21(home: Home, folder: Path) -> None:
    """Ingest, and offer the format as the message of the ingest says."""
    told = home("ingest", folder)
    lines = told.out.splitlines()
    assert "marc21 is not offered" in told.out
    own = home.folder / "own"
    own.mkdir()
    text = [line.strip() for line in lines[lines.index("  [[format]]") :]]
    shipped = "[format.crosswalks]"
    text = [
        *text[:4],
        shipped,
        *text[4].removeprefix("crosswalks = { ").removesuffix(" }").split(","),
    ]
    (own / "formats.toml").write_text("\n".join(text) + "\n")
    config = home.config.read_text().replace("[formats]", '[formats]\ntemplates = "own"')
    home.config.write_text(config)
    assert "marc21 is not offered" not in home("ingest", folder).out


def test_any_number_of_items_without_the_format_is_passed_over(
    home: Home, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count not as records that could not be rendered, of which a request bears so many."""
    monkeypatch.setattr(application, "render_document", partial(render_document, most=1))
    harvest(folder, [row(one) for one in SOME[:8]])
    chosen = [SOME[2], SOME[3], SOME[6]]
    harvest(folder, [row(one, "marc21") for one in chosen], prefix="marc21")
    offer_marc21(home, folder)
    assert home("publish").code == 0
    expected = [one.identifier for one in chosen]
    for size in ("1", "2"):
        with home.served(SHEAF_PAGES_IDENTIFIERS=size, SHEAF_PAGES_RECORDS=size) as base:
            sets = {"": expected, "&set=repository:a.cz": expected, "&set=from:a.cz": expected[:1]}
            for verb, of in product(("ListIdentifiers", "ListRecords"), sets):
                found, query = list[str](), f"verb={verb}&metadataPrefix=marc21{of}"
                while query:
                    root = asked(base, query)
                    found += identifiers(root)
                    token = root.find(f".//{OAI}resumptionToken")
                    text = token.text if token is not None else None
                    query = f"verb={verb}&resumptionToken={quote(text)}" if text else ""
                assert found == sets[of]


def test_formats_are_offered_to_who_names_them(home: Home, folder: Path) -> None:
    alone = replace(SOME[0], sets=("only",))
    harvest(folder, [row(one) for one in (alone, *SOME[1:4])])
    harvest(folder, [row(one, "marc21") for one in SOME[2:6]], prefix="marc21")
    offer_marc21(home, folder)
    assert home("publish").code == 0
    with home.served() as base:
        plain, marc21 = (asked(base, RECORDS), asked(base, RECORDS.replace("oai_dc", "marc21")))
        assert len(records(plain)) == 6
        assert [*records(marc21)] == [one.identifier for one in SOME[2:6]]
        assert identifiers(asked(base, MARC21)) == [one.identifier for one in SOME[2:6]]
        assert len(identifiers(asked(base, MARC21.replace("marc21", "oai_dc")))) == 6
        for one, prefixes in ((SOME[0], ["oai_dc"]), (SOME[2], ["oai_dc", "marc21"])):
            query = f"verb=ListMetadataFormats&identifier={one.identifier}"
            found = asked(base, query).iter(f"{OAI}metadataPrefix")
            assert [e.text for e in found] == prefixes
        query = f"verb=GetRecord&identifier={SOME[0].identifier}&metadataPrefix=marc21"
        assert codes(asked(base, query)) == ["cannotDisseminateFormat"]
        assert codes(asked(base, f"{MARC21}&set=from:a.cz:only")) == ["noRecordsMatch"]
    # What came in another format alone is told in Dublin Core by what is known of it.
    made = records(plain)[SOME[5].identifier]
    assert [e.text for e in made.iter("{*}source")] == ["http://a.cz/oai"]
    assert [o.get("altered") for o in made.iter(ORIGIN)] == ["true"]
    # A deletion in one format ends that format.
    gone = [replace(one, deleted=True, stamp=NOW) for one in SOME[2:4]]
    harvest(folder, [row(one, came=LATER) for one in gone[:1]])
    harvest(folder, [row(one, "marc21", came=LATER) for one in gone], prefix="marc21")
    assert published(home, folder) == (0, 2, 1)
    with home.served() as base:
        for number, prefix, status in (
            (2, "oai_dc", "deleted"),
            (2, "marc21", "deleted"),
            (3, "oai_dc", None),
            (3, "marc21", "deleted"),
            (4, "marc21", None),
        ):
            name = SOME[number].identifier
            for verb in (f"GetRecord&identifier={name}", "ListRecords", "ListIdentifiers"):
                root = asked(base, f"verb={verb}&metadataPrefix={prefix}")
                heads = {h.findtext(f"{OAI}identifier"): h for h in root.iter(f"{OAI}header")}
                assert heads[name].get("status") == status
    back = replace(SOME[3], title="Again", stamp=NOW)
    harvest(folder, [row(back, "marc21", came=NEXT)], prefix="marc21")
    assert published(home, folder) == (0, 1, 0)
    with home.served() as base:
        listed = records(asked(base, "verb=ListRecords&metadataPrefix=marc21"))
        assert listed[back.identifier].find(f"{OAI}metadata") is not None


def ask(home: Home, sql: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in home("query", "--json", sql).out.splitlines()]


def names(home: Home) -> dict[str, Any]:
    sql = (
        "SELECT identifier, kind, document ->> '$.base_url' AS url "
        "FROM records WHERE NOT deleted ORDER BY identifier"
    )
    return {r["identifier"]: (r["kind"], r["url"]) for r in ask(home, sql)}


def test_nobody_takes_an_item_over_by_its_identifier(home: Home, folder: Path) -> None:
    archive = warc(home.folder / "a.warc.gz", {"http://a.cz/": b"<title>Own</title>"})
    assert home("ingest", archive).code == 0
    assert home("publish").code == 0
    (own,) = [name for name, (kind, _) in names(home).items() if kind == "capture"]
    odd = "http://b.cz/x y:1,é"
    theirs = [replace(SOME[0], identifier=name) for name in (own, own.upper(), odd, "oai:x.cz:1")]
    harvest(folder, [row(one) for one in theirs])
    harvest(folder, [row(theirs[3])], url="http://z.cz/oai")
    assert published(home, folder) == (5, 0, 0)
    found = names(home)
    assert found.pop(own) == ("capture", None)
    assert found == {
        f"oai:b.cz:harvested,a.cz/oai,{own.replace(':', '%3A')}": ("harvested", "http://a.cz/oai"),
        f"oai:b.cz:harvested,a.cz/oai,{own.upper().replace(':', '%3A')}": (
            "harvested",
            "http://a.cz/oai",
        ),
        "oai:b.cz:harvested,a.cz/oai,http%3A//b.cz/x%20y%3A1%2C%C3%A9": (
            "harvested",
            "http://a.cz/oai",
        ),
        "oai:x.cz:1": ("harvested", "http://a.cz/oai"),
        "oai:b.cz:harvested,z.cz/oai,oai%3Ax.cz%3A1": ("harvested", "http://z.cz/oai"),
    }
    assert published(home, folder) == (0, 0, 0)
    with home.served() as base:
        assert len(records(asked(base, RECORDS))) == 6
    # Once the first one is gone the second does not become another item.
    gone = replace(theirs[3], deleted=True, stamp=NOW)
    harvest(folder, [row(gone, came=LATER)])
    assert published(home, folder) == (0, 1, 1)
    assert published(home, folder) == (0, 0, 0)


def test_what_is_withdrawn_stays_so_and_comes_back_when_it_is_restored(
    home: Home, folder: Path
) -> None:
    harvest(folder, [row(one) for one in SOME])
    published(home, folder)
    one = FIRST.identifier
    assert home("withdraw", "--identifier", one, "--reason", "a request").code == 0
    changed = replace(FIRST, title="Another", stamp=NOW)
    harvest(folder, [row(item, came=LATER) for item in (*SOME, changed)])
    assert published(home, folder) == (0, 0, 0)
    assert one not in names(home)
    assert home("reinstate", "--identifier", one).code == 0
    assert one in names(home)
    assert published(home, folder)[1] == 1


def test_a_record_that_is_no_xml_is_told_of(home: Home, folder: Path) -> None:
    broken = replace(row(FIRST), record="<record>")
    harvest(folder, [row(SOME[0]), broken])
    assert home("ingest", folder, "--strict").code == 1
    assert home("publish").code == 0
    assert faults(home) == {("harvest-unreadable", FIRST.identifier)}
    assert [*names(home)] == [SOME[0].identifier]


def faults(home: Home) -> set[tuple[str, str]]:
    return {(row["code"], row["field"]) for row in ask(home, "FROM faults")}


@pytest.mark.parametrize("damage", ["state", "sets"])
def test_a_damaged_folder_is_told_of_in_a_line(home: Home, folder: Path, damage: str) -> None:
    own = harvest(folder, [row(SOME[0])], sets=[("a", "A")])
    {"state": own / "harvest.json", "sets": own / "sets.json"}[damage].write_bytes(b"{")
    found = home("ingest", folder)
    assert found.code == 2
    assert "damaged" in found.err
    assert len(found.err.splitlines()) == 1
    assert home("publish").code == 2


def test_a_damaged_part_is_a_fault_and_ends_that_part_alone(home: Home, folder: Path) -> None:
    own = harvest(folder, [row(SOME[0])])
    part = own / "part-000001-000001.parquet"
    sound = part.read_bytes()
    harvest(folder, [row(SOME[1])], url="http://z.cz/oai")
    for data in (b"{", b"\0" * len(sound)):
        part.write_bytes(data)
        found = home("ingest", folder)
        assert (found.code, found.err) == (1, "")
        assert "1 x a part of a harvest cannot be read" in found.out
    assert home("publish").code == 0
    assert [*names(home)] == [SOME[1].identifier]
    assert faults(home) == {("harvest-damaged", None)}
    part.write_bytes(sound)
    assert published(home, folder) == (1, 0, 0)
    assert "everything was ingested before" in home("ingest", folder).out


@pytest.mark.thorough
def test_repositories_of_one_host_and_by_https_are_told_apart(home: Home, folder: Path) -> None:
    some = [replace(SOME[0], identifier=name) for name in ("1", "oai:x.cz:1")]
    for name in "abc":
        harvest(folder, [row(one) for one in some], url=f"http://h.cz/{name}/oai")
    assert published(home, folder) == (6, 0, 0)
    found = names(home)
    assert {one: url for one, (_, url) in found.items()} == {
        **{f"oai:b.cz:harvested,h.cz/{x}/oai,1": f"http://h.cz/{x}/oai" for x in "abc"},
        **{f"oai:b.cz:harvested,h.cz/{x}/oai,oai%3Ax.cz%3A1": f"http://h.cz/{x}/oai" for x in "bc"},
        "oai:x.cz:1": "http://h.cz/a/oai",
    }
    # One of them is asked by https from now on, and stays the repository that it was.
    own = harvest(folder, [row(one, came=LATER) for one in some], url="https://h.cz/b/oai")
    assert published(home, own) == (0, 0, 0)
    assert names(home) == found
    changed = [replace(one, title="Another") for one in some]
    own = harvest(folder, [row(one, came=NEXT) for one in changed], url="https://h.cz/b/oai")
    assert published(home, own) == (0, 2, 0)
    now = names(home)
    assert now.keys() == found.keys()
    assert sorted(url for _, url in now.values()).count("https://h.cz/b/oai") == 2
    assert published(home, folder) == (0, 0, 0)


def state(home: Home) -> dict[str, tuple[int, bool, str, list[str]]]:
    """Return the sequence of each item, whether it is deleted, its first title, and its sets."""
    sql = (
        "SELECT identifier, sequence, deleted, sets, regexp_extract("
        "document ->> '$.records[0].metadata', 'title>([^<]*)', 1) AS title FROM records"
    )
    return {
        r["identifier"]: (r["sequence"], r["deleted"], r["title"], r["sets"])
        for r in ask(home, sql)
    }


def made(name: str, number: int = 1, **values: Any) -> Item:
    """Return an item of a repository."""
    given = {"stamp": SOME[0].stamp, "title": "One", "sets": (), **values}
    return Item(f"oai:{name}.cz:{number}", **given)


def test_lists_of_a_repository_are_put_together(home: Home, folder: Path) -> None:
    """Each repository is named for what it does between two publishes."""

    def list_(host: str, *items: Item, came: str = LATER, **values: Any) -> None:
        rows = [row(one, came=came) for one in items]
        harvest(folder, rows, url=f"http://{host}.cz/oai", **values)

    first = {"begun": "2026-11-22T10:00:00Z"}
    for name in ("moved", "ended"):
        list_(name, made(name, sets=("a",)), set_="a", **first)
    list_("ended", made("ended", sets=("b",)), set_="b", **first)
    list_("clock", made("clock"), made("clock", 2), came="2031-05-05T05:05:05Z", **first)
    list_("emptied", made("emptied"), made("emptied", 2), **first)
    list_("renamed", made("renamed"), **first)
    list_("twice", made("twice", stamp=NOW), made("twice", deleted=True), **first)
    assert published(home, folder) == (8, 0, 0)
    later = {"begun": "2026-11-23T10:00:00Z"}
    list_("moved", made("moved", sets=("b",), stamp=NOW), set_="b", **later)
    latest = {"begun": "2026-11-23T11:00:00Z"}
    list_("moved", made("moved", sets=("a",), stamp=NOW, deleted=True), set_="a", **latest)
    for set_ in "ab":
        gone = made("ended", sets=(set_,), stamp=NOW, deleted=True)
        list_("ended", gone, set_=set_, **later)
    clock = made("clock", title="Two"), made("clock", 2, deleted=True)
    list_("clock", *clock, came="2026-11-23T10:00:00Z", **later)
    bare = row(made("emptied"), came=LATER)
    start, end = bare.record.index("<metadata>"), bare.record.index("</record>")
    bare = replace(bare, record=bare.record[:start] + bare.record[end:])
    harvest(folder, [bare], url="http://emptied.cz/oai", **later)
    other = {"metadataNamespace": "http://www.openarchives.org/OAI/2.0/oai_dc/"}
    list_("renamed", made("renamed"), name="B", format_={**other, "schema": "http://b/"}, **later)
    assert published(home, folder) == (0, 5, 3)
    assert state(home) == {
        "oai:moved.cz:1": (2, False, "One", ["from:moved.cz:b", "repository:moved.cz"]),
        "oai:ended.cz:1": (2, True, None, ["from:ended.cz:b", "repository:ended.cz"]),
        "oai:clock.cz:1": (2, False, "Two", ["repository:clock.cz"]),
        "oai:clock.cz:2": (2, True, None, ["repository:clock.cz"]),
        "oai:emptied.cz:1": (2, True, None, ["repository:emptied.cz"]),
        "oai:emptied.cz:2": (1, False, "One", ["repository:emptied.cz"]),
        "oai:renamed.cz:1": (1, False, "One", ["repository:renamed.cz"]),
        "oai:twice.cz:1": (1, False, "One", ["repository:twice.cz"]),
    }
    assert faults(home) == {("harvest-emptied", "oai:emptied.cz:1")}


def test_what_is_not_of_its_format_is_named_and_not_served(home: Home, folder: Path) -> None:
    good = row(SOME[0]).record
    start, end = good.index("<metadata>") + 10, good.index("</metadata>")
    metadata = good[start:end]
    others = [
        "<dc><title>x</title></dc>",
        '<html xmlns="http://www.w3.org/1999/xhtml"/>',
        metadata.replace("2.0/oai_dc/", "2.0/oai_dc"),
        metadata + metadata,
    ]
    rows = [
        replace(
            row(replace(SOME[0], identifier=f"oai:a.cz:{number}")),
            record=good[:start].replace(SOME[0].identifier, f"oai:a.cz:{number}")
            + xml
            + good[end:],
        )
        for number, xml in enumerate(others)
    ]
    harvest(folder, [*rows, row(replace(SOME[0], identifier="oai:x.cz:100%"))])
    # Two repositories have different formats under one prefix, and one of them is that of ours.
    for name, namespace in (("d", "http://www.loc.gov/mods/v3"), ("e", "urn:mods")):
        xml = f'<record><metadata><mods xmlns="{namespace}"/></metadata></record>'
        one = replace(row(SOME[0]), identifier=f"oai:{name}.cz:1", record=xml)
        declared = {"metadataNamespace": namespace, "schema": "http://b.cz/x.xsd"}
        harvest(folder, [one], url=f"http://{name}.cz/oai", prefix="mods", format_=declared)
    told = home("ingest", folder).out
    assert 'crosswalks = { capture = "capture-mods.xml", harvested = "harvested-raw.xml" }' in told
    assert home("publish").code == 0
    assert faults(home) == {
        *(("harvest-namespace", f"oai:a.cz:{number}") for number in range(4)),
        ("harvest-namespace", "oai:e.cz:1"),
    }
    assert [*names(home)] == [
        "oai:a.cz:3",
        "oai:b.cz:harvested,a.cz/oai,oai%3Ax.cz%3A100%25",
        "oai:d.cz:1",
    ]
    with home.served() as base:
        asked(base, RECORDS)


def test_identifiers_that_the_schema_forbids_are_escaped_in_the_provenance(
    home: Home, folder: Path
) -> None:
    names = ("oai:a.cz:[1]", "oai:a.cz:a#b#c", "http://a.cz/x[1]", "a b#c", "oai:a.cz:100%")
    harvest(folder, [row(replace(made("a"), identifier=name)) for name in names])
    assert published(home, folder) == (5, 0, 0)
    with home.served() as base:
        text = etree.tostring(asked(base, RECORDS)).decode()
    for shown in ("oai:a.cz:%5B1%5D", "oai:a.cz:a%23b%23c", "/x%5B1%5D", ">a%20b#c<", ":100%25<"):
        assert shown in text


def test_a_repository_that_moved_keeps_its_items(home: Home, folder: Path) -> None:
    old, new = "http://old.cz/oai", "https://new.cz/x"
    some = [made("m"), replace(made("m"), identifier="2")]
    own = harvest(folder, [row(one) for one in some], url=old)
    assert published(home, folder) == (2, 0, 0)
    before = state(home)
    config = home.config.read_text()
    table = f'[[repositories]]\nname = "m"\nurl = "{new}"\nformer = ["{old}"]\n'
    home.config.write_text(f"{config}\n{table}")
    moved = find_repository({"m": [new, old]}, new)
    assert folders.find_folder(folder, moved, new, "oai_dc", None) == own
    assert folders.find_folder(folder, moved, new, "marc21", None).name.startswith("m-marc21-")
    changed = replace(some[1], title="Two")
    harvest(folder, [row(one, came=LATER) for one in (some[0], changed)], url=new)
    assert published(home, folder) == (0, 1, 0)
    after = state(home)
    assert after.keys() == before.keys()
    assert {name: row[3] for name, row in after.items()} == {
        name: row[3] for name, row in before.items()
    }
    assert sorted(row[2] for row in after.values()) == ["One", "Two"]
