"""What is said of a record beside its metadata: rights and provenance; never of a deleted one."""

from datetime import timedelta

import pytest
from lxml import etree

from functions.config.check import LONGEST_NOTICE
from functions.kinds.captures import CAPTURE, WARC
from functions.oai.answer import Answer, OneRecord
from functions.oai.format import load
from functions.oai.render import about
from functions.oai.render.about import RecordOrigin
from functions.oai.render.render import Renderer
from functions.reading.repository import PublishedRecord
from tests.functions.oai.client import START, Client, Page, configured
from tests.functions.oai.conftest import holding
from tests.functions.oai.validity import OAI, valid
from tests.functions.reading.memory import EMPTY_CAPTURE, Item, capture

pytestmark = pytest.mark.shared(2)

NASTY = "]]><!-- &amp; <a href='x'>\"quoted\"</a> --> {{ 7 * 7 }} \u202e\U0001f600"
LICENCE = "https://a.cz/licence?a=1&b='2'"
ORIGIN = "https://files.example.org/warc"
RIGHTS = "{http://www.openarchives.org/OAI/2.0/rights/}"
PROVENANCE = "{http://www.openarchives.org/OAI/2.0/provenance}"
NAME = "oai:example.org:a"
LIST = "verb=ListRecords&metadataPrefix=oai_dc"


def got(item: Item, **settings) -> Page:
    client = Client(holding({NAME: item}), **settings)
    page = client.get("GetRecord", identifier=NAME, metadataPrefix="oai_dc")
    listed = client.get("ListRecords", metadataPrefix="oai_dc")
    assert abouts(page) == abouts(listed)
    return page


def abouts(page: Page) -> list[bytes]:
    return [etree.tostring(e) for e in page.root.iter(f"{OAI}about")]


def said(page: Page) -> list[str | None]:
    """Return the statement of each container of rights."""
    return [
        e.get("ref") if e.tag == f"{RIGHTS}rightsReference" else e[0][0].text
        for e in page.root.iter(f"{RIGHTS}rightsReference", f"{RIGHTS}rightsDefinition")
    ]


def origins(page: Page) -> list[dict[str, str | None]]:
    return [
        dict(e.attrib) | {etree.QName(c).localname: c.text for c in e if not len(c)}
        for e in page.root.iter(f"{PROVENANCE}originDescription")
    ]


def located(**fields) -> Item:
    values = {
        "warc_filename": "crawl-1.warc.gz",
        "warc_record_offset": 1024,
        "fetch_date": "2007-11-05T12:00:00Z",
    }
    return capture("http://a.cz/", **(values | fields))


def test_without_a_word_there_is_no_container():
    assert abouts(got(located())) == []
    assert about.containers(configured()) == {}


@pytest.mark.parametrize(
    "statement", [LICENCE, NASTY, "Two\nlines\tand a tab", "x" * LONGEST_NOTICE]
)
def test_a_statement_is_told_with_every_record(statement):
    page = got(capture("http://a.cz/"), rights_statement=statement)
    assert said(page) == [statement]
    tag = "rightsReference" if statement == LICENCE else "rightsDefinition"
    assert [e[0].tag for e in page.root.iter(f"{RIGHTS}rights")] == [RIGHTS + tag]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ((), ["all"]),
        (("collection:x",), ["all"]),
        (("mime:image:png",), ["image"]),
        (("mime:text:html",), ["mime"]),
        (("mime:textile",), ["mime"]),
        (("mime",), ["mime"]),
        (("mimetic:x",), ["all"]),
        (("domain:cz:a:www",), ["a"]),
        (("domain:cz:ab",), ["cz"]),
        (("domain:cz:a:www", "mime:image:png"), ["a", "image"]),
        (("domain:cz:a:www", "domain:cz:b"), ["a"]),
        (("domain:cz:a:www", "domain:cz:a:m", "domain:sk"), ["a"]),
        (("same:x", "mime:text:html"), ["mime"]),
    ],
)
def test_the_most_specific_set_counts_and_of_several_hierarchies_each(sets, expected):
    settings = {
        "rights_statement": "all",
        "rights_sets": {
            "mime": "mime",
            "mime:image": "image",
            "domain:cz": "cz",
            "domain:cz:a": "a",
            "same": "mime",
        },
    }
    assert said(got(capture("http://a.cz/", *sets), **settings)) == expected


def test_rights_of_a_set_alone_leave_other_records_without():
    settings = {"rights_sets": {"mime:image": LICENCE}}
    assert said(got(capture("http://a.cz/", "mime:image:png"), **settings)) == [LICENCE]
    assert abouts(got(capture("http://a.cz/", "mime:text:html"), **settings)) == []


@pytest.mark.parametrize("origin", [ORIGIN, ORIGIN + "/", "s3://bucket/warc"])
def test_a_capture_tells_where_it_was_taken_from(origin):
    item = located(warc_filename="a b/č#1?<&>%.warc", warc_record_offset=0)
    assert origins(got(item, provenance_origin=origin)) == [
        {
            "harvestDate": "2026-03-01T11:00:00Z",
            "altered": "true",
            "baseURL": origin,
            "identifier": f"{origin.rstrip('/')}/a%20b%2F%C4%8D%231%3F%3C%26%3E%25.warc#0",
            "datestamp": "2007-11-05T12:00:00Z",
            "metadataNamespace": WARC,
        }
    ]


@pytest.mark.parametrize(
    ("date", "told"),
    [
        ("2007-11-05", "2007-11-05"),
        ("2007-11-05T12:34Z", "2007-11-05"),
        ("2007-11-05T12:34:56Z", "2007-11-05T12:34:56Z"),
        ("2007-11-05T12:34:56.789Z", "2007-11-05T12:34:56Z"),
        ("2007-11", None),
        ("2007", None),
        ("", None),
        (None, None),
    ],
)
def test_a_date_is_told_to_the_second_or_the_day(date, told):
    for missing in ("warc_filename", "warc_record_offset"):
        values = {"fetch_date": date, missing: None}
        assert abouts(got(located(**values), provenance_origin=ORIGIN)) == []
    page = got(located(fetch_date=date), provenance_origin=ORIGIN)
    assert [o["datestamp"] for o in origins(page)] == ([told] if told else [])
    assert bool(abouts(page)) == bool(told)


def test_rights_come_before_provenance_and_headers_have_neither(repository):
    both = {"rights_statement": "Free", "provenance_origin": ORIGIN}
    assert abouts(Client(repository, **both).get("ListIdentifiers", metadataPrefix="oai_dc")) == []
    page = got(located(), **both)
    tags = [e[0].tag for e in page.root.iter(f"{OAI}about")]
    assert tags == [f"{RIGHTS}rights", f"{PROVENANCE}provenance"]


def test_a_deleted_record_has_no_container():
    repository = holding({NAME: located()})
    repository.publish({NAME: None}, START - timedelta(minutes=1))
    client = Client(repository, rights_statement="Free", provenance_origin=ORIGIN)
    for page in (
        client.get("GetRecord", identifier=NAME, metadataPrefix="oai_dc"),
        client.get("ListRecords", metadataPrefix="oai_dc"),
    ):
        assert page.headers == [(NAME, True)]
        assert abouts(page) == []


def test_live_and_deleted_ones_side_by_side(repository):
    client = Client(repository, rights_statement="all", rights_sets={"mime:image": "image"})
    page = client.get("ListRecords", metadataPrefix="oai_dc")
    found = {
        str(r.findtext(f".//{OAI}identifier"))[-2:]: [
            e.text for e in r.iter("{http://purl.org/dc/elements/1.1/}rights")
        ]
        for r in page.root.iter(f"{OAI}record")
    }
    expected = {f"{n:02}": ["all"] if n % 2 else ["image"] for n in range(10)}
    assert found == {**expected, "05": []}


def test_an_origin_may_have_origins_of_its_own():
    """What was harvested brings a chain: the last repository is outermost (guidelines)."""
    chain = (
        RecordOrigin("2026-01-01", False, "http://b.cz/oai", "oai:b.cz:1", "2025-01-01", "urn:b"),
        RecordOrigin(
            "2025-01-01T00:00:00Z",
            True,
            "http://c.cz/oai",
            "oai:c.cz:<1>",
            "2024-01-01T00:00:00Z",
            "urn:c",
        ),
    )
    record = PublishedRecord(
        1, NAME, "capture", START, False, (), {**EMPTY_CAPTURE, "url": "http://a.cz/"}
    )
    renderer = Renderer(abouts={"provenance": lambda record: chain})
    arguments = (("verb", "GetRecord"), ("identifier", NAME), ("metadataPrefix", "oai_dc"))
    answer = Answer(START, "http://a/oai", arguments, OneRecord(record, load().rows[0]))
    outer, inner = valid(renderer.document(answer)).iter(f"{PROVENANCE}originDescription")
    assert inner.getparent() is outer
    assert (outer.get("altered"), inner.get("altered")) == ("false", "true")
    assert inner.findtext(f"{PROVENANCE}identifier") == "oai:c.cz:<1>"


def test_a_kind_of_which_no_origin_is_known_has_none():
    (container,) = about.containers(configured(provenance_origin=ORIGIN)).values()
    assert container(PublishedRecord(1, NAME, "other", START, False, ())) == ()


def test_without_containers_the_loop_over_a_page_has_nothing_of_them():
    crosswalk = "crosswalks/capture-oai_dc.xml"
    assert not any(
        "about" in name for name in Renderer().templates.loop(CAPTURE.template, crosswalk).names
    )
    templates = Renderer(abouts={"rights": lambda record: ()}).templates
    assert "about_rights" in templates.loop(CAPTURE.template, crosswalk).names
