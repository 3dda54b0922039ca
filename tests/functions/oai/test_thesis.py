"""The examples of the thesis on the Czech web archive (appendix A), with its mistakes put right.

It printed answers for one record of 2008. The same data, as far as items here permit, give answers
that are right at each point where those were not.
"""

from datetime import UTC, datetime, timedelta

import pytest
from lxml import etree

from tests.functions.oai.client import Client, Clock, Page, content
from tests.functions.oai.memory import MemoryRepository, capture
from tests.functions.oai.validity import DC, OAI, valid

URL = "http://war.webarchiv.cz:8080/OAI/OAI"
TEN = "oai:war.webarchiv.cz:10"
XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
SETS = ("collection:culture:estonia", "domain:ee:etv24:www", "mime:text:html")
ASKED = datetime(2008, 1, 6, 19, 16, 55, tzinfo=UTC)


@pytest.fixture
def archive() -> Client:
    repository = MemoryRepository("war.webarchiv.cz")
    repository.publish(
        {"oai:war.webarchiv.cz:1": capture("http://www.webarchiv.cz/", "mime:text:html")},
        datetime(2000, 1, 1, 12, 0, 0, tzinfo=UTC),
    )
    repository.publish(
        {TEN: capture("http://www.etv24.ee/", *SETS, content_mime_type="text/html")},
        datetime(2008, 1, 6, 16, 21, 20, tzinfo=UTC),
    )
    return Client(
        repository,
        Clock(ASKED + timedelta(seconds=5)),  # the allowance for clocks
        repository_name="WebArchiv",
        repository_admin_emails=["admin@webarchiv.cz"],
        repository_base_url=URL,
    )


def names(element: etree._Element | None) -> list[str]:
    assert element is not None
    return [str(child.tag).removeprefix(OAI) for child in element]


IDENTIFY, FORMATS, RECORD, FAULTY = (
    "verb=Identify",
    "verb=ListMetadataFormats",
    f"verb=GetRecord&identifier={TEN}&metadataPrefix=oai_dc",
    "verb=ListRecords",
)
ANSWERS = [
    IDENTIFY,
    FORMATS,
    RECORD,
    FAULTY,
    "verb=ListSets",
    "verb=ListIdentifiers&metadataPrefix=oai_dc",
    "verb=ListRecords&metadataPrefix=oai_dc&set=domain:ee",
]


def asked(client: Client, query: str) -> Page:
    return Page(valid(content(client.raw(query))))


@pytest.mark.parametrize("query", ANSWERS)
def test_the_root_and_what_every_answer_begins_with(archive: Client, query: str):
    """There: the root OAI, xsi never declared, and line breaks around the base URL."""
    root = asked(archive, query).root
    assert root.tag == "{http://www.openarchives.org/OAI/2.0/}OAI-PMH"
    assert root.get(f"{XSI}schemaLocation") == (
        "http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd"
    )
    assert names(root)[:2] == ["responseDate", "request"]
    assert len(root) == 3
    assert root[0].text == "2008-01-06T19:16:55Z"
    assert root[1].text == URL


def test_identify(archive: Client):
    """There: `url` in place of baseURL, and protocolVersion without its element."""
    page = asked(archive, IDENTIFY)
    assert page.request == {"verb": "Identify"}
    element = page.root.find(f"{OAI}Identify")
    assert [n for n in names(element) if n not in ("compression", "description")] == [
        "repositoryName",
        "baseURL",
        "protocolVersion",
        "adminEmail",
        "earliestDatestamp",
        "deletedRecord",
        "granularity",
    ]
    assert page.text("repositoryName") == ["WebArchiv"]
    assert page.text("baseURL") == [URL]
    assert page.text("protocolVersion") == ["2.0"]
    assert page.text("adminEmail") == ["admin@webarchiv.cz"]
    assert page.text("earliestDatestamp") == ["2000-01-01T12:00:00Z"]
    assert page.text("deletedRecord") == ["persistent"]
    assert page.text("granularity") == ["YYYY-MM-DDThh:mm:ssZ"]


def test_a_record(archive: Client):
    """There: header and metadata straight below GetRecord, and an identifier that is no URI."""
    page = asked(archive, RECORD)
    assert page.request == {"verb": "GetRecord", "identifier": TEN, "metadataPrefix": "oai_dc"}
    got = page.root.find(f"{OAI}GetRecord")
    assert names(got) == ["record"]
    record = page.root.find(f"{OAI}GetRecord/{OAI}record")
    assert names(record)[:2] == ["header", "metadata"]
    header = page.root.find(f"{OAI}GetRecord/{OAI}record/{OAI}header")
    assert names(header) == ["identifier", "datestamp", "setSpec", "setSpec", "setSpec"]
    assert page.text("identifier") == [TEN]
    assert page.text("datestamp") == ["2008-01-06T16:21:20Z"]
    assert page.text("setSpec") == [*SETS]
    metadata = page.root.find(f"{OAI}GetRecord/{OAI}record/{OAI}metadata")
    assert names(metadata) == ["{http://www.openarchives.org/OAI/2.0/oai_dc/}dc"]
    assert [e.text for e in page.root.iter(f"{DC}format")] == ["text/html"]


def test_formats(archive: Client):
    """There: an empty ListMetadataFormats with the formats behind it, and metadataPrefixElement."""
    page = asked(archive, FORMATS)
    element = page.root.find(f"{OAI}ListMetadataFormats")
    assert set(names(element)) == {"metadataFormat"}
    for metadata_format in element:
        assert names(metadata_format) == ["metadataPrefix", "schema", "metadataNamespace"]
    place = page.text("metadataPrefix").index("oai_dc")
    assert page.text("schema")[place] == "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
    assert page.text("metadataNamespace")[place] == "http://www.openarchives.org/OAI/2.0/oai_dc/"


def test_a_request_that_lacks_an_argument(archive: Client):
    """There: the verb was echoed, which badArgument forbids."""
    page = asked(archive, FAULTY)
    assert page.codes == ["badArgument"]
    assert page.request == {}
    assert "metadataPrefix" in page.text("error")[0]


@pytest.mark.parametrize(
    ("query", "inner"),
    [
        ("verb=ListSets", "set"),
        ("verb=ListIdentifiers&metadataPrefix=oai_dc", "header"),
        ("verb=ListRecords&metadataPrefix=oai_dc", "record"),
    ],
)
def test_what_a_list_holds_is_within_it(archive: Client, query: str, inner: str):
    root = asked(archive, query).root
    assert len(root) == 3
    assert len(root[2]) >= 2
    assert set(names(root[2])) == {inner}


def test_a_set_of_the_thesis_selects(archive: Client):
    for spec in ("collection:culture", "domain:ee", "domain:ee:etv24:www", "mime:text:html"):
        assert TEN in dict(archive.listed(set=spec)), spec
    assert dict(archive.listed(set="domain:ee")) == {TEN: False}
