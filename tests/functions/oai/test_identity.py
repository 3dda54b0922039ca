"""Identify by the configuration: every container, none, several, and hostile texts in each."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from functions.config import check, configuration, keys
from functions.oai import provider
from functions.oai.answer import Answer, Identify
from functions.oai.render.render import Renderer
from functions.snapshot.manifest import Manifest
from tests.functions.oai.client import BASE, START, Client, Page, configured, content
from tests.functions.oai.conftest import holding
from tests.functions.oai.validity import OWN, valid
from tests.functions.reading.memory import MemoryRepository, capture

KEYS = {key.name: key for key in keys.KEYS}
SNAPSHOT = "{urn:x-sheaf:snapshot:1}"
SCHEMA = (
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:schemaLocation="urn:a http://a.cz/a.xsd"'
)
FRIENDS = "{http://www.openarchives.org/OAI/2.0/friends/}"
BRANDING = "{http://www.openarchives.org/OAI/2.0/branding/}"
EPRINTS = "{http://www.openarchives.org/OAI/1.1/eprints}"
RIGHTS = "{http://www.openarchives.org/OAI/2.0/rights/}"
DC_RIGHTS = "{http://purl.org/dc/elements/1.1/}rights"
NASTY = "]]><!-- &amp; <a href='x'>\"quoted\"</a> --> {{ 7 * 7 }} {% x %} \u202e\U0001f600 a\u00a0b"
LICENCE = "https://creativecommons.org/licenses/by/4.0/?a=1&b='2'#deed"


RENDERER = Renderer()


def rendered(told: Identify) -> Page:
    return Page(valid(RENDERER.document(Answer(START, BASE, (("verb", "Identify"),), told))))


def configured_so(**values) -> Page:
    """Return what `identified` does for a snapshot of nothing, without an application."""
    manifest = Manifest(1, START, "example.org", (), {})
    return rendered(provider.identify(configured(**values), manifest))


def identified(repository: MemoryRepository, **values) -> Page:
    for name, value in values.items():
        assert KEYS[name.replace("_", ".", 1)].test(value), name
    return Client(repository, **values).get("Identify")


def described(page: Page) -> list[str]:
    """Return the element in each description, in order."""
    return [str(d[0].tag) for d in page.root.iter("{*}description") if len(d)]


def texts(page: Page, tag: str) -> list[tuple[str, str | None]]:
    found = next(page.root.iter(tag))
    return [(etree.QName(e).localname, (e.text or "").strip() or None) for e in found.iter("*")][1:]


def test_what_is_always_told(repository):
    page = identified(repository)
    assert described(page) == [
        "{http://www.openarchives.org/OAI/2.0/oai-identifier}oai-identifier",
        f"{SNAPSHOT}snapshot",
    ]


def test_everything_at_once(repository):
    page = identified(
        repository,
        identify_friends=["http://a.cz/oai"],
        identify_branding={"icon": "http://a.cz/i.png"},
        identify_eprints={"content": "Pages"},
        identify_descriptions=[f'<a xmlns="urn:a" {SCHEMA}/>', f'<b:b xmlns:b="urn:a" {SCHEMA}/>'],
        rights_statement="Free",
    )
    assert described(page)[2:] == [
        f"{FRIENDS}friends",
        f"{BRANDING}branding",
        f"{EPRINTS}eprints",
        f"{RIGHTS}rightsManifest",
        "{urn:a}a",
        "{urn:a}b",
    ]


def test_the_snapshot_is_told_by_number_instant_and_size(repository):
    (element,) = identified(repository).root.iter(f"{SNAPSHOT}snapshot")
    del element.attrib["{http://www.w3.org/2001/XMLSchema-instance}schemaLocation"]
    told = {"number": "2", "effective": "2026-03-01T11:30:00Z", "records": "10"}
    assert dict(element.attrib) == told
    assert len(element) == 0


@pytest.mark.parametrize(
    "root", ["https://data.example.org/store", "https://data.example.org/store/", "s3://bucket/x/"]
)
def test_the_snapshot_is_told_with_its_addresses(repository, root):
    page = identified(repository, identify_data_url=root)
    below = root.rstrip("/") + "/"
    assert texts(page, f"{SNAPSHOT}snapshot") == [
        ("parquet", f"{below}records/"),
        ("views", f"{below}snapshots/2/views.sql"),
    ]


def test_the_schema_of_the_snapshot_lies_beside_the_base_url(repository):
    for values, url in (
        ({}, "https://oai.example.org/schema/snapshot.xsd"),
        ({"repository_base_url": "http://a.cz/x/oai"}, "http://a.cz/x/schema/snapshot.xsd"),
    ):
        (element,) = identified(repository, **values).root.iter(f"{SNAPSHOT}snapshot")
        (location,) = (v for k, v in element.attrib.items() if k.endswith("schemaLocation"))
        assert location == f"urn:x-sheaf:snapshot:1 {url}"


@pytest.mark.parametrize("root", ["", "https://a.cz/"])
def test_the_published_schema_accepts_the_snapshot_and_refuses_less(repository, root):
    schema = etree.XMLSchema(etree.parse(str(OWN / "snapshot.xsd")))
    page = identified(repository, identify_data_url=root)
    (element,) = page.root.iter(f"{SNAPSHOT}snapshot")
    assert schema.validate(element), schema.error_log
    for name in ("number", "effective", "records"):
        broken = etree.fromstring(etree.tostring(element))
        del broken.attrib[name]
        assert not schema.validate(broken)


def test_an_empty_snapshot(clock):
    (element,) = identified(holding({})).root.iter(f"{SNAPSHOT}snapshot")
    assert element.get("records") == "0"


@pytest.mark.parametrize(
    ("configured_", "told"),
    [
        ("", "2026-03-01T11:00:00Z"),
        ("2000-01-01T12:00:00Z", "2000-01-01T12:00:00Z"),
        ("2026-03-01T11:00:00Z", "2026-03-01T11:00:00Z"),
        ("2026-03-01T11:00:01Z", "2026-03-01T11:00:00Z"),
        ("2999-01-01T00:00:00Z", "2026-03-01T11:00:00Z"),
    ],
)
def test_an_earliest_datestamp_is_told_where_it_is_a_floor(repository, configured_, told):
    page = identified(repository, repository_earliest_datestamp=configured_)
    assert page.text("earliestDatestamp") == [told]


def test_friends(repository):
    urls = ["http://a.cz/oai", "https://b.cz:8443/x/request", "http://a.cz/oai/2;x='&y"]
    page = identified(repository, identify_friends=urls)
    assert texts(page, f"{FRIENDS}friends") == [("baseURL", url) for url in urls]


def test_branding(repository):
    page = identified(
        repository,
        identify_branding={
            "rendering": [
                {"url": "http://a.cz/a.xsl?a&b", "namespace": "urn:a:b", "type": "text/xsl"},
                {"url": "http://a.cz/b.css", "namespace": "http://a.cz/#", "type": "text/css"},
            ],
            "icon_height": 31,
            "icon_width": 88,
            "icon_title": NASTY,
            "icon_link": "http://a.cz/",
            "icon": "http://a.cz/i.png",
        },
    )
    assert texts(page, f"{BRANDING}branding") == [
        ("collectionIcon", None),
        ("url", "http://a.cz/i.png"),
        ("link", "http://a.cz/"),
        ("title", NASTY),
        ("width", "88"),
        ("height", "31"),
        ("metadataRendering", "http://a.cz/a.xsl?a&b"),
        ("metadataRendering", "http://a.cz/b.css"),
    ]
    styles = [dict(e.attrib) for e in page.root.iter(f"{BRANDING}metadataRendering")]
    assert styles == [
        {"metadataNamespace": "urn:a:b", "mimeType": "text/xsl"},
        {"metadataNamespace": "http://a.cz/#", "mimeType": "text/css"},
    ]


def test_branding_by_style_sheets_alone(repository):
    row = {"url": "http://a.cz/a.xsl", "namespace": "urn:a", "type": "text/xsl"}
    page = identified(repository, identify_branding={"rendering": [row]})
    assert texts(page, f"{BRANDING}branding") == [("metadataRendering", "http://a.cz/a.xsl")]


def test_policies_in_the_order_of_the_schema(repository):
    page = identified(
        repository,
        identify_eprints={
            "comment": "Two\nlines",
            "submission_policy": NASTY,
            "data_policy": LICENCE,
            "metadata_policy": "x" * 100_000,
            "content": "Pages",
        },
    )
    assert texts(page, f"{EPRINTS}eprints") == [
        ("content", None),
        ("text", "Pages"),
        ("metadataPolicy", None),
        ("text", "x" * 100_000),
        ("dataPolicy", None),
        ("URL", LICENCE),
        ("submissionPolicy", None),
        ("text", NASTY),
        ("comment", None),
        ("text", "Two\nlines"),
    ]


def test_what_the_schema_of_policies_asks_for_is_there_whatever_is_said(repository):
    page = identified(repository, identify_eprints={"comment": "A word"})
    names = [name for name, _ in texts(page, f"{EPRINTS}eprints")]
    assert names == ["metadataPolicy", "dataPolicy", "comment", "text"]


def test_the_manifest_of_rights_has_each_statement_once(repository):
    page = identified(
        repository,
        rights_statement=LICENCE,
        rights_sets={"mime": NASTY, "mime:image": LICENCE, "domain:cz": NASTY, "domain": "More"},
    )
    (manifest,) = page.root.iter(f"{RIGHTS}rightsManifest")
    assert manifest.get("appliesTo") == "http://www.openarchives.org/OAI/2.0/entity#metadata"
    assert [e.get("ref") for e in manifest.iter(f"{RIGHTS}rightsReference")] == [LICENCE]
    assert [e.text for e in manifest.iter(DC_RIGHTS)] == [NASTY, "More"]


def test_descriptions_are_given_as_they_are(repository):
    first = (
        f'<a:b xmlns:a="urn:a" {SCHEMA}><!-- why --><c xmlns="">&lt;&#233;</c><![CDATA[<&]]></a:b>'
    )
    page = identified(repository, identify_descriptions=[f"\n  {first}\n"])
    reply = content(
        Client(repository, identify_descriptions=[f"\n  {first}\n"]).raw("verb=Identify")
    )
    assert f"<description>\n{first}\n</description>\n".encode() in reply
    assert described(page)[-1] == "{urn:a}b"


@settings(deadline=None)
@given(
    st.text(max_size=50) | st.text("<>&\"' \n\thtps:/a%0]{}\x00\x7f\x85\ufffe\ud800", max_size=30)
)
def test_every_text_that_is_accepted_reaches_the_harvester_whole(text):
    if not check.is_statement(text):
        return
    page = configured_so(rights_statement=text, identify_eprints={"comment": text})
    found = [e.get("ref") or e.text for e in page.root.iter(f"{RIGHTS}rightsReference", DC_RIGHTS)]
    (comment,) = next(page.root.iter(f"{EPRINTS}comment"))
    assert found == [comment.text] == [text]


_ELEMENT = (
    f'<a:b xmlns:a="urn:a" {SCHEMA} c="d">'
    '<e xmlns="urn:e">&amp;<!-- f --><![CDATA[<]]></e><?g h?></a:b>'
)
_PIECES = st.sampled_from(
    [
        "<",
        ">",
        "/",
        "&",
        ";",
        '"',
        " ",
        "a",
        ":",
        "]]>",
        "--",
        "<b/>",
        "<?xml?>",
        "<!DOCTYPE b>",
        "</description>",
        "\x01",
        "\ufffe",
        "xmlns",
        "=",
    ]
)


@settings(deadline=None)
@given(st.integers(0, len(_ELEMENT)), st.integers(0, 3), _PIECES | st.just(""))
def test_every_element_that_is_accepted_stands_alone_in_its_description(place, length, piece):
    text = _ELEMENT[:place] + piece + _ELEMENT[place + length :]
    if check.is_description(text):
        page = configured_so(identify_descriptions=[text])
        assert len(described(page)) == 3


def test_several_addresses_of_people(repository):
    emails = ["a@b.cz", "o'neill+x@d.cz"]
    assert identified(repository, repository_admin_emails=emails).text("adminEmail") == emails


def test_the_base_url_stays_that_of_the_request(repository):
    page = identified(repository, identify_data_url="https://data.cz/")
    assert page.text("baseURL") == [BASE]


EVERYTHING = {
    "identify_friends": ["http://a.cz/oai"],
    "identify_branding": {
        "icon": "http://a.cz/i.png",
        "icon_width": 88,
        "rendering": [{"url": "http://a.cz/a", "namespace": "urn:a", "type": "text/xsl"}],
    },
    "identify_eprints": {"data_policy": "None"},
    "identify_data_url": "https://a.cz/",
    "rights_statement": "https://a.cz/licence",
    "rights_sets": {"mime": "Free"},
}


def test_no_container_leaves_an_empty_line(repository):
    text = content(Client(repository, **EVERYTHING).raw("verb=Identify")).decode()
    assert "\n\n" not in text


def test_an_item_more_is_a_record_more(repository):
    repository.publish({"oai:example.org:x": capture("http://x.cz/")}, START - timedelta(minutes=1))
    (element,) = identified(repository).root.iter(f"{SNAPSHOT}snapshot")
    assert (element.get("number"), element.get("records")) == ("3", "11")


def test_the_example_in_the_documentation_is_a_configuration_and_does_what_is_said():
    document = (OWN.parents[1] / "docs" / "reference" / "oai-pmh.md").read_text("utf-8")
    section = document.partition("## Identify and about\n")[2]
    example = section.partition("```toml\n")[2].partition("```")[0]
    values = configuration.parse(example, {}).values
    item = capture("http://a.cz/", "collection:press:dailies")
    repository = holding({"oai:example.org:a": item})
    client = Client(repository, **{k.replace(".", "_", 1): v for k, v in values.items()})
    page = client.get("Identify")
    assert len(described(page)) == 7
    assert texts(page, f"{SNAPSHOT}snapshot")[0] == (
        "parquet",
        "https://data.example.org/store/records/",
    )
    record = client.get("ListRecords", metadataPrefix="oai_dc")
    assert [str(e.text)[:17] for e in record.root.iter(DC_RIGHTS)] == ["For research only"]
