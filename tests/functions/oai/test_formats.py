"""The shipped formats, and formats by kind of item."""

import logging
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from functions.kinds import KINDS
from functions.kinds.kind import ItemKind
from functions.oai import application
from functions.oai.application import render_document
from functions.oai.render import check
from functions.reading.repository import PublishedRecord
from functions.snapshot import schema
from functions.snapshot.schema import Column
from tests.functions.oai.client import START, Client, content
from tests.functions.oai.conftest import holding
from tests.functions.oai.validity import OFFICIAL, OWN, official_schema, own_xsd
from tests.functions.reading.memory import Item, MemoryRepository, capture

pytestmark = pytest.mark.shared(2)

XS = "{http://www.w3.org/2001/XMLSchema}"
C = "{urn:x-sheaf:capture:1}"
M = "{http://www.loc.gov/mods/v3}"
WHOLE: dict[str, Any] = {
    "url_bytes": b"http://a.cz/\xff&",
    "url_surtkey": "cz,a)/?<b>",
    "url_host_name": "www.a.cz",
    "url_host_registered_domain": "a.cz",
    "fetch_date": "2007-11-05T12:00:00.5Z",
    "fetch_time": datetime(2007, 11, 5, 12, 0, 0, 500_000),
    "fetch_status": 200,
    "fetch_method": "POST",
    "fetch_body": "a=1&b=<\u00e1>",
    "fetch_redirect": "/there?a&b",
    "content_digest": "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
    "content_length": 5120,
    "content_mime_type": "text/plain",
    "content_mime_detected": "application/pdf",
    "content_charset": "windows-1250",
    "content_charset_source": "declared",
    "content_languages": "cs,en",
    "content_truncated": "length",
    "content_damaged": "checksum",
    "title": 'Zprávy <b> & "věci"',
    "refers_to_url": "http://b.cz/|",
    "refers_to_date": "2006",
    "warc_record_type": "revisit",
    "warc_filename": "crawl 1 & 2.warc.gz",
    "warc_record_offset": 0,
    "warc_record_length": 2048,
    "warc_request_offset": 3072,
    "content_digest_declared": "sha256:9f86d081",
    "refers_to": "oai:example.org:01",
    "inherited": ["title"],
}


def repository_of(*items: Item) -> MemoryRepository:
    return holding({f"oai:example.org:{n:02}": item for n, item in enumerate(items)})


def made(prefix: str, *items: Item, **settings: Any) -> list[etree._Element]:
    client = Client(repository_of(*items), **settings)
    page = client.get("ListRecords", metadataPrefix=prefix)
    assert page.codes == []
    return [element[0] for element in page.root.iter("{*}metadata")]


def texts(element: etree._Element) -> list[tuple[str, str | None]]:
    return [(etree.QName(e).localname, e.text) for e in element.iter() if not len(e)]


def test_every_column_is_in_the_capture_format_and_its_schema():
    """A new column must be given an element: here, in the crosswalk and in the schema."""
    document = etree.parse(str(OWN / "capture.xsd"))
    elements = list(document.iterfind(f"{XS}element/{XS}complexType/{XS}sequence/{XS}element"))
    documented = [
        (e.get("name"), e.findtext(f"{XS}annotation/{XS}documentation")) for e in elements
    ]
    address = ("content_address", "where the archived copy is found")
    assert documented == [*((c.name, c.meaning) for c in schema.CAPTURE), address]
    assert {e.get("minOccurs") for e in elements} == {"0"}
    (one,) = made("capture", capture("http://a.cz/?a&b", **WHOLE))
    assert [e.tag for e in one] == [C + column.name for column in schema.CAPTURE]


def test_a_capture_as_it_is():
    (one,) = made("capture", capture("http://a.cz/?a&b", **WHOLE))
    found = dict(texts(one))
    assert found["url"] == "http://a.cz/?a&b"
    assert found["url_bytes"] == WHOLE["url_bytes"].hex().upper()
    assert found["fetch_time"] == "2007-11-05T12:00:00.500000Z"
    assert found["inherited"] == "title"
    same = WHOLE.keys() - {"url_bytes", "fetch_time", "inherited"}
    assert {name: found[name] for name in same} == {name: str(WHOLE[name]) for name in same}


def test_what_is_not_known_is_left_out():
    (one,) = made("capture", capture("http://a.cz/"))
    assert texts(one) == [("url", "http://a.cz/")]
    (one,) = made("mods", capture("http://a.cz/"), repository_name="A & B")
    assert texts(one) == [
        ("digitalOrigin", "born digital"),
        ("url", "http://a.cz/"),
        ("identifier", "http://a.cz/"),
        ("recordContentSource", "A & B"),
        ("recordIdentifier", "oai:example.org:00"),
    ]
    (one,) = made("mods", capture("http://a.cz:x/[%zz"))  # no address
    assert [e.tag for e in one if e.tag == f"{M}location"] == []
    assert one.findtext(f"{M}identifier") == "http://a.cz:x/[%zz"


@pytest.mark.parametrize(
    "date",
    [
        "2007",
        "2007-11",
        "2007-11-05",
        "2007-11-05T12:30Z",
        "2007-11-05T12:30:00Z",
        "2007-11-05T12:30:00.123456789Z",
        "0001-01-01T00:00:00Z",
    ],
)
def test_a_date_is_as_exact_as_it_is(date):
    for prefix, name in (("capture", f"{C}fetch_date"), ("mods", f"{M}dateCaptured")):
        (one,) = made(prefix, capture("http://a.cz/", fetch_date=date))
        assert [e.text for e in one.iter(name)] == [date]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("url", "http://a.cz/<b>"),
        ("fetch_date", "2007-11-5"),
        ("fetch_date", "2007-02-30"),
        ("fetch_date", "2007-11-05T12:30:00"),
        ("fetch_date", "2007-11-05T12:30:00+01:00"),
        ("fetch_date", "2007-11-05T24:30Z"),
        ("fetch_time", "2007-11-05T12:30:00"),
        ("fetch_status", "OK"),
        ("content_length", "-1"),
        ("content_mime_type", "Text/HTML; charset=x"),
        ("content_digest", "sha1:?"),
        ("url_bytes", "FFF"),
        ("warc_record_type", "request"),
    ],
)
def test_the_schema_of_captures_is_strict(column, value):
    (one,) = made("capture", capture("http://a.cz/", **{**WHOLE, "title": "x"}))
    one = etree.fromstring(etree.tostring(one))
    assert own_xsd()["urn:x-sheaf:capture:1"].validate(one)
    element = one.find(C + column)
    assert element is not None
    element.text = value
    assert not own_xsd()["urn:x-sheaf:capture:1"].validate(one)


def test_mods_with_everything():
    (one,) = made("mods", capture("http://a.cz/?a&b", **WHOLE), repository_name="Archive")
    assert texts(one) == [
        ("title", 'Zprávy <b> & "věci"'),
        ("genre", "Text"),
        ("dateCaptured", "2007-11-05T12:00:00.5Z"),
        ("languageTerm", "cs"),
        ("languageTerm", "en"),
        ("internetMediaType", "text/plain"),
        ("internetMediaType", "application/pdf"),
        ("extent", "5120"),
        ("digitalOrigin", "born digital"),
        ("note", "length"),
        ("note", "checksum"),
        ("url", "http://a.cz/?a&b"),
        ("identifier", "http://a.cz/?a&b"),
        ("identifier", "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
        ("title", "crawl 1 & 2.warc.gz"),
        ("start", "0"),
        ("total", "2048"),
        ("dateCaptured", "2006"),
        ("identifier", "http://b.cz/|"),
        ("identifier", "oai:example.org:01"),
        ("recordContentSource", "Archive"),
        ("recordIdentifier", "oai:example.org:00"),
    ]
    types = [e.get("type") for e in one.iter(f"{M}identifier")]
    assert types == ["uri", "sha1", "uri", "oai"]


def test_the_official_schema_of_mods_is_asked_too():
    if not (OFFICIAL.parent / "common" / "mods.xsd").is_file():
        pytest.skip("the official schemas are not on this machine; ours alone are asked")
    (one,) = made("mods", capture("http://a.cz/", **WHOLE))
    one = etree.fromstring(etree.tostring(one))
    assert official_schema().validate(one)
    one[0].tag = f"{M}heading"
    assert not official_schema().validate(one)


# Schemas beside the base URL


@pytest.mark.parametrize(
    "base", ["", "https://data.example.org/oai", "https://data.example.org/oai/"]
)
def test_schemas_of_our_own_are_told_where_they_are_published(base):
    client = Client(repository_of(capture("http://a.cz/")), repository_base_url=base)
    expected = {
        "": "https://oai.example.org/schema/capture.xsd",
        "https://data.example.org/oai": "https://data.example.org/schema/capture.xsd",
        "https://data.example.org/oai/": "https://data.example.org/oai/schema/capture.xsd",
    }[base]
    told = client.get("ListMetadataFormats").text("schema")
    assert told[1] == expected
    page = client.get("ListRecords", metadataPrefix="capture")
    (one,) = page.root.iter(f"{C}capture")
    xsi = "{http://www.w3.org/2001/XMLSchema-instance}schemaLocation"
    assert one.get(xsi) == f"urn:x-sheaf:capture:1 {expected}"
    path = "/" + expected.partition("//")[2].partition("/")[2]
    reply = client.raw("", path=path)
    assert (reply["statusCode"], content(reply)) == (200, (OWN / "capture.xsd").read_bytes())


def test_schemas_are_there_for_get_and_head():
    client = Client(MemoryRepository())  # nothing is published
    found = client.raw("", path="/schema/capture.xsd")
    assert found["headers"]["Content-Type"] == "application/xml; charset=utf-8"
    assert found["headers"]["ETag"].startswith('W/"')
    head = client.raw("", method="HEAD", path="/schema/capture.xsd")
    assert (head["statusCode"], head["body"]) == (200, "")
    assert head["headers"] == found["headers"]
    assert client.raw("", method="POST", path="/schema/capture.xsd")["statusCode"] == 405
    for path in ("/schema/", "/schema/no.xsd", "/schema/../formats.toml", "/schema/capture.xsd/"):
        assert client.raw("", path=path)["statusCode"] == 404
    for path in OWN.glob("*.xsd"):
        assert client.raw("", path=f"/schema/{path.name}")["statusCode"] == 200
        assert etree.parse(str(path)).getroot().get("targetNamespace") in own_xsd()


# Formats by kind

BOX = (
    Column("label", "VARCHAR", "what is written on it", "Letters"),
    Column("sheets", "BIGINT", "how many sheets it holds", "NULL"),
)
BOX_ROWS = """
[[format]]
prefix = "oai_dc"
schema = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
namespace = "http://www.openarchives.org/OAI/2.0/oai_dc/"
crosswalks.capture = "capture-oai_dc.xml"
crosswalks.collection = "collection-oai_dc.xml"
crosswalks.template = "template-oai_dc.xml"
crosswalks.fileset = "fileset-oai_dc.xml"
crosswalks.file = "file-oai_dc.xml"
crosswalks.box = "box-oai_dc.xml"

[[format]]
prefix = "box"
schema = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
namespace = "http://www.openarchives.org/OAI/2.0/oai_dc/"
crosswalks = { box = "box.xml" }
"""
BOX_DC = """<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xsi:schemaLocation="{{ schema_location }}">
{% if label %}<dc:title>{{ label }}</dc:title>{% endif %}
</oai_dc:dc>
"""
BOX_XML = BOX_DC.replace("label", "sheets")


@pytest.fixture
def boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of templates with formats of a kind of its own."""
    monkeypatch.setitem(KINDS, "box", ItemKind("box", BOX))
    (tmp_path / "crosswalks").mkdir()
    (tmp_path / "formats.toml").write_text(BOX_ROWS)
    (tmp_path / "crosswalks" / "box-oai_dc.xml").write_text(BOX_DC)
    (tmp_path / "crosswalks" / "box.xml").write_text(BOX_XML)
    return tmp_path


def box(label: str, sheets: int | None = 2, *sets: str) -> Item:
    return Item(sets, "box", {"label": label, "sheets": sheets})


ONE, TWO = "oai:example.org:00", "oai:example.org:01"


def mixed(boxes: Path, *more: Item, **settings: Any) -> Client:
    repository = repository_of(capture("http://a.cz/", "mime:text:html"), box("B"), *more)
    return Client(repository, formats_templates=str(boxes), **settings)


def test_an_item_has_the_formats_of_its_kind(boxes):
    client = Client(repository_of(capture("http://a.cz/")), formats_templates=str(boxes))
    assert client.get("ListMetadataFormats").text("metadataPrefix") == ["oai_dc", "capture", "mods"]
    assert client.get("ListRecords", metadataPrefix="box").codes == ["cannotDisseminateFormat"]
    client = mixed(boxes)
    asked = "ListMetadataFormats"
    everything = ["oai_dc", "capture", "mods", "box"]
    assert client.get(asked).text("metadataPrefix") == everything
    assert client.get(asked, identifier=ONE).text("metadataPrefix") == everything[:3]
    assert client.get(asked, identifier=TWO).text("metadataPrefix") == ["oai_dc", "box"]
    for name, prefixes in ((ONE, everything[:3]), (TWO, ["oai_dc", "box"])):
        for prefix in everything:
            page = client.get("GetRecord", identifier=name, metadataPrefix=prefix)
            assert page.codes == ([] if prefix in prefixes else ["cannotDisseminateFormat"])


def test_a_list_holds_the_items_that_have_the_format(boxes):
    client = mixed(boxes)
    for verb in ("ListRecords", "ListIdentifiers"):
        for prefix, names in (("oai_dc", [ONE, TWO]), ("mods", [ONE]), ("box", [TWO])):
            assert sorted(client.get(verb, metadataPrefix=prefix).identifiers) == names
        page = client.get(verb, metadataPrefix="box", set="mime")
        assert page.codes == ["noRecordsMatch"]


def test_a_deleted_item_keeps_the_formats_of_its_kind(boxes):
    client = mixed(boxes)
    client.application._repository.publish({TWO: None}, START - timedelta(minutes=1))
    found = client.get("ListMetadataFormats", identifier=TWO).text("metadataPrefix")
    assert found == ["oai_dc", "box"]
    assert client.get("ListRecords", metadataPrefix="box").headers == [(TWO, True)]
    page = client.get("GetRecord", identifier=TWO, metadataPrefix="mods")
    assert page.codes == ["cannotDisseminateFormat"]


def test_only_what_is_to_be_offered_is_there_in_that_order(boxes):
    client = mixed(boxes, formats_offered=["box", "capture"])
    found = client.get("ListMetadataFormats").text("metadataPrefix")
    assert found == ["oai_dc", "box", "capture"]
    assert client.get("ListRecords", metadataPrefix="mods").codes == ["cannotDisseminateFormat"]
    client = mixed(boxes, formats_offered=["capture", "oai_dc"])
    assert client.get("ListMetadataFormats").text("metadataPrefix") == ["capture", "oai_dc"]


def test_a_token_of_a_format_that_is_offered_no_more_is_refused(boxes):
    client = mixed(boxes, box("C"), pages_records=1)
    token = client.get("ListRecords", metadataPrefix="box").next
    narrowed = Client(client.application._repository, formats_offered=["oai_dc"])
    assert narrowed.get("ListRecords", resumptionToken=token).codes == ["badResumptionToken"]


# A record that its crosswalk cannot make


def spoiled(boxes: Path, *bad: int, count: int = 6, page: int = 3) -> Client:
    text = BOX_XML.replace("{{ sheets }}", "{{ 1000 // (sheets + 1) }}")
    (boxes / "crosswalks" / "box.xml").write_text(text)
    items = [box(str(n), -1 if n in bad else 5) for n in range(count)]
    settings = {"formats_templates": str(boxes), "formats_offered": ["box"]}
    return Client(repository_of(*items), pages_records=page, **settings)


def harvested(client: Client) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Return identifiers' ends, cursors and sizes, and the code that ended the list if one did."""
    names, counts = [], []
    page = client.get("ListRecords", metadataPrefix="box")
    while not page.codes:
        names += [name[-2:] for name in page.identifiers]
        if page.token is not None:
            counts.append((page.token.get("cursor"), page.token.get("completeListSize")))
        if not page.next:
            break
        page = client.get("ListRecords", resumptionToken=page.next)
    return names, counts, page.codes


@pytest.mark.parametrize(("bad", "more"), [((1,), ""), ((1, 2), " (and 1 more)")])
def test_a_bad_record_is_left_out_of_its_page(boxes, caplog, bad, more):
    names = [f"{n:02}" for n in range(6) if n not in bad]
    with caplog.at_level(logging.ERROR):
        assert harvested(spoiled(boxes, *bad)) == (names, [("0", "6"), ("3", "6")], [])
    (line,) = [r.getMessage() for r in caplog.records]
    assert line == (
        "oai:example.org:01 is left out of box: "
        f"{boxes}/crosswalks/box.xml, line 3: "
        f"integer division or modulo by zero{more}"
    )


def test_a_page_of_which_nothing_is_left_gives_place_to_the_next(boxes):
    assert harvested(spoiled(boxes, 0, 1, 2)) == (["03", "04", "05"], [("0", "6")], [])
    names, counts, codes = harvested(spoiled(boxes, 3, 4, 5, count=9))
    assert (names, codes) == (["00", "01", "02", "06", "07", "08"], [])
    assert counts == [("0", "9"), ("3", "9")]
    client = spoiled(boxes, 0, 1, 2)
    first = client.get("ListRecords", metadataPrefix="box")
    assert first.request == {"verb": "ListRecords", "metadataPrefix": "box"}
    kept = client.raw("verb=ListRecords&metadataPrefix=box")["headers"]["Cache-Control"]
    assert kept == "no-cache"


def test_a_list_of_which_nothing_is_left_is_empty(boxes):
    assert harvested(spoiled(boxes, *range(6))) == ([], [], ["noRecordsMatch"])
    names, _, codes = harvested(spoiled(boxes, 3, 4, 5))
    assert (names, codes) == (["00", "01", "02"], ["noRecordsMatch"])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("page", [1, 2, 3])
@pytest.mark.parametrize("last", [11, 12, 30, 38])
def test_many_short_pages_of_which_nothing_is_left_end_no_harvest(boxes, caplog, page, last):
    client = spoiled(boxes, *range(1, last), count=40, page=page)
    names, counts, codes = harvested(client)
    assert (names, codes) == (["00", *(f"{n:02}" for n in range(last, 40))], [])
    assert counts[0] == ("0", "40")
    assert len(caplog.records) < 20


def test_a_crosswalk_that_fails_without_end_is_unavailable(boxes, monkeypatch):
    client = spoiled(boxes, *range(39), count=40, page=1)
    monkeypatch.setattr(application, "render_document", partial(render_document, most=30))
    assert client.raw("verb=ListRecords&metadataPrefix=box")["statusCode"] == 503
    monkeypatch.setattr(application, "render_document", partial(render_document, most=100))
    assert client.get("ListRecords", metadataPrefix="box").identifiers == ["oai:example.org:39"]


def test_a_bad_record_alone_cannot_be_given(boxes):
    client = spoiled(boxes, 1)
    page = client.get("GetRecord", identifier=TWO, metadataPrefix="box")
    assert page.codes == ["cannotDisseminateFormat"]
    assert page.request["identifier"] == TWO
    assert client.get("GetRecord", identifier=TWO, metadataPrefix="oai_dc").codes == []
    assert client.get("ListIdentifiers", metadataPrefix="box").identifiers[1] == TWO


def test_a_table_that_went_away_is_known_to_a_server_that_runs(boxes):
    table = boxes / "tables" / "t.toml"
    table.parent.mkdir()
    table.write_text('"b/*" = "B"\n')
    text = BOX_XML.replace("{{ sheets }}", "{{ sheets and (label | lookup('t')) }}")
    (boxes / "crosswalks" / "box.xml").write_text(text)
    items = [box("a/1", None), box("b/1"), box("c/1", None)]
    client = Client(repository_of(*items), formats_templates=str(boxes))
    table.unlink()
    assert harvested(client) == (["00", "01", "02"], [], [])


def test_the_samples_have_every_column():
    for kind, row in KINDS.items():
        values = {column.name: check.sample(column) for column in row.columns}
        assert None not in values.values(), kind
        assert PublishedRecord(1, "a:b", kind, START, False, (), values)
