"""The schemas of these tests: that they refuse what the protocol forbids."""

import pytest
from lxml import etree

from tests.functions.oai.client import Client, content
from tests.functions.oai.validity import OFFICIAL, official_schema, own_schema, valid

LIST = "verb=ListRecords&metadataPrefix=oai_dc"


def test_the_official_schemas_are_asked_too():
    if not OFFICIAL.is_dir():
        pytest.skip("the official schemas are not on this machine; ours alone are asked")
    assert official_schema() is not None


@pytest.mark.parametrize(
    ("query", "old", "new"),
    [
        ("verb=Nope", "<request>", '<request verb="Identify">'),
        ("verb=Nope", "badVerb", "badNoun"),
        ("verb=Identify", ' verb="Identify"', ""),
        ("verb=Identify", "<protocolVersion>2.0", "<protocolVersion>2.1"),
        ("verb=Identify", "T11:00:00Z</earliest", "</earliest"),
        ("verb=Identify", "<adminEmail>admin@", "<adminEmail>admin"),
        ("verb=Identify", "<scheme>oai", "<scheme>iao"),
        ("verb=Identify", "OAI/2.0/OAI-PMH.xsd", "OAI/2.0/x.xsd"),
        ("verb=Identify", "<repositoryIdentifier>example.org", "<repositoryIdentifier>example"),
        ("verb=ListSets", "<setSpec>domain<", "<setSpec>dom ain<"),
        ("verb=ListSets", "dc:description>", "dc:note>"),
        ("verb=ListSets", ' deleted="0"', ' deleted="-1"'),
        ("verb=ListSets", ' deleted="0"', ""),
        ("verb=ListSets", ' last="2026', ' end="2026'),
        (
            "verb=ListSets",
            '<statistics xmlns="urn:x-sheaf:set:1"',
            '<count xmlns="urn:x-sheaf:set:1"',
        ),
        (LIST, "55Z</responseDate>", "55.5Z</responseDate>"),
        (LIST, "<header>", '<header status="deleted">'),
        (LIST, "<header>", '<header status="gone">'),
        (LIST, ' metadataPrefix="oai_dc"', ""),
        (LIST, "<dc:title>Page 0<", "<dc:title> <"),
        (LIST, "dc:title>", "dc:heading>"),
        (LIST, "<metadata>", "<metadata><x/>"),
        (LIST, "<identifier>oai:example.org:00", "<identifier>%zz"),
        (LIST, "</ListRecords>", '<resumptionToken completeListSize="0"/></ListRecords>'),
        (LIST, "</ListRecords>", '<resumptionToken cursor="-1"/></ListRecords>'),
        (LIST, "</ListRecords>", '<resumptionToken expiration_date="x"/></ListRecords>'),
    ],
)
def test_what_is_wrong_is_refused(client: Client, query, old, new):
    text = content(client.raw(query)).decode()
    valid(text.encode())
    assert old in text
    assert not own_schema().validate(etree.fromstring(text.replace(old, new).encode()))


def test_every_template_ends_in_one_line_break_and_has_no_empty_lines(client: Client):
    for query in ("verb=Identify", "verb=ListSets", "verb=ListMetadataFormats", LIST, "verb=x"):
        text = content(client.raw(query)).decode()
        assert text.endswith("</OAI-PMH>\n")
        assert "\n\n" not in text
