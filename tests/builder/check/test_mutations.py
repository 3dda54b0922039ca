"""Valid answers with one change each: the right check names it, and no other."""

import re
from dataclasses import replace

import pytest

from tests.builder.check.visiting import failures, visiting
from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import Answer, Call, Provider, items

ALL = "."
LISTS = "ListRecords|ListIdentifiers"
FUTURE = "<responseDate>2030-01-01T00:00:00Z<"
MUTATIONS = (
    # verbs, what is replaced, by what, and the checks that name it
    (ALL, r"^<\?xml[^>]*>\s*", "", "E03"),
    (ALL, r'version="1.0"', 'version="1.1"', "E02"),
    (ALL, r'encoding="UTF-8"', 'encoding="ISO-8859-1"', "E02"),
    (ALL, r"</OAI-PMH>", "", "E01"),
    ("ListSets", r"</ListSets>", "</ListSet>", "E01"),
    ("Identify", r"Archive A", "Archive & A", "E01"),
    ("Identify", r"Archive A", "Archive &nbsp; A", "E01"),
    (ALL, r' xmlns="http://www.openarchives.org/OAI/2.0/"', "", "E04"),
    (ALL, r'xmlns="http://www.openarchives.org/OAI/2.0/"', 'xmlns="http://x.org/"', "E04"),
    (ALL, r"OAI/2.0/OAI-PMH.xsd", "OAI/2.0/oai.xsd", "E05"),
    (ALL, r'="http://www.openarchives.org/OAI/2.0/ http:', '="https://a.cz/ http:', "E05"),
    (ALL, r"<responseDate>[^<]*</responseDate>", "", "E06"),
    (ALL, r"(<responseDate>[^<]*)Z", r"\1+01:00", "E06"),
    (ALL, r"<responseDate>[^<T]*T[^<]*", "<responseDate>2026-11-22", "E06"),
    (ALL, r"<responseDate>[^<]*<", FUTURE, "E07"),
    (ALL, r"(<request[^>]*>)[^<]*", r"\1http://b.cz/oai", "E08"),
    (ALL, r"<request [^>]*>", "<request>", "E09"),
    ("ListRecords", r' metadataPrefix="oai_dc"', "", "E09"),
    ("GetRecord", r'(<request [^>]*identifier=")', r"\1x", "E09"),
    ("Identify", r"<baseURL>[^<]*", "<baseURL>http://b.cz/oai", "I01 E08"),
    ("Identify", r"<baseURL>[^<]*</baseURL>", "", "I01 E10"),
    ("Identify", r">2.0<", ">2.1<", "I02"),
    ("Identify", r"a@archive-a.cz", "mailto:a@archive-a.cz", "I03"),
    ("Identify", r"a@archive-a.cz", "root@localhost", "I03"),
    ("Identify", r"(<earliestDatestamp>[^<T]*)T[^<]*", r"\1", "I04"),
    ("Identify", r"<earliestDatestamp>[^<]*", "<earliestDatestamp>2026-11-20T00:00:00Z", "D03 D07"),
    ("Identify", r"persistent", "sometimes", "I06"),
    ("Identify", r"persistent", "no", "X01"),
    ("Identify", r"YYYY-MM-DDThh:mm:ssZ", "YYYY-MM-DDThh:mm:ss", "I05"),
    ("Identify", r"(<Identify>.*</Identify>)", r"\1\1", "E10"),
    ("GetRecord", r"(<GetRecord>.*</GetRecord>)", r"\1\1", "E10"),
    (ALL, r"<responseDate>", '<responseDate xmlns="urn:x">', "E10"),
    ("Identify", r"<granularity>", '<granularity xmlns="">', "E10"),
    ("ListRecords", r"<header", '<header xmlns="urn:x"', "E10"),
    ("Identify", r"(<granularity>.*</granularity>)", r"\1<extra/>", "E10"),
    ("Identify", r"(<deletedRecord>.*?>)(<granularity>.*?</granularity>)", r"\2\1", "E10"),
    ("ListMetadataFormats", r"oai_dc<", "dc<", "F01 F03"),
    ("ListMetadataFormats", r"marc21<", "marc 21<", "F02"),
    ("ListMetadataFormats", r"<schema>[^<]*", "<schema>", "F02"),
    ("ListMetadataFormats", r"<schema>[^<]*</schema>", "", "F02 E10"),
    ("ListSets", r"<setSpec>c<", "<setSpec>c d<", "S01 S03"),
    ("ListSets", r"<setSpec>c<", "<setSpec>a<", "S03 S04"),
    ("ListSets", r"<setName>[^<]*</setName>", "", "E10"),
    (LISTS, r"<setSpec>c</setSpec>", "", "S02"),
    ("ListIdentifiers", r"<setSpec>c</setSpec>", "", "S02 S05"),
    (LISTS, r"<setSpec>c<", "<setSpec>c::d<", "S01"),
    (LISTS, r"(<datestamp>[^<T]*)T[^<]*", r"\1", "D01"),
    (LISTS, r"(<datestamp>[^<]*)Z", r"\1.5Z", "D01"),
    (LISTS, r'status="deleted"', 'status="gone"', "E10"),
    ("ListIdentifiers", r' status="deleted"', "", "X02"),
    (LISTS, r"<datestamp>[^<]*</datestamp>", "", "D01 E10"),
    ("ListRecords", r"(</header>)(</record>)", r"\1<about><x xmlns='urn:x'/></about>\2", "X03"),
    ("ListRecords", r"(<record>)(<header.*?</header>)(<metadata>.*?</metadata>)", r"\1\3\2", "E10"),
    ("ListRecords", r"</metadata>", "<x xmlns='urn:x'/></metadata>", "E10"),
    (LISTS, r"<resumptionToken", "note<resumptionToken", "E10"),
    (LISTS, r"<resumptionToken", '<resumptionToken expiration_date="x"', "E10"),
    (LISTS, r"<resumptionToken", '<resumptionToken expirationDate="2020-01-01T00:00:00Z"', "L14"),
    (LISTS, r'cursor="', 'cursor="1', "L08"),
    (LISTS, r'completeListSize="70"', 'completeListSize="72"', "L03"),
    (LISTS, r'completeListSize="70"', 'completeListSize="90"', "L02"),
    (LISTS, r"<resumptionToken[^>]*></resumptionToken>", "", "L07"),
    ("ListRecords", r"(<ListRecords>)(<record><header>.*?</metadata></record>)", r"\1\2\2", "L10"),
    ("GetRecord", r"<datestamp>[^<]*", "<datestamp>2020-01-01T00:00:00Z", "L13"),
    ("GetRecord", r"<setSpec>.*</setSpec>", "", "S05"),
    ("GetRecord", r'code="idDoesNotExist"', 'code="notFound"', "E11"),
    ("ListSets", r"<ListSets>", '<error code="badArgument">x</error><ListSets>', "E12"),
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("verbs", "old", "new", "checks"), MUTATIONS)
def test_the_right_check_names_a_change(verbs: str, old: str, new: str, checks: str) -> None:
    def mutate(provider: Provider, call: Call, answer: Answer) -> Answer:
        if not re.search(verbs, call.verb or "-"):
            return answer
        return replace(answer, body=re.sub(old, new, answer.body.decode()).encode())

    with serving(items(70)) as provider:
        provider.answers.append(mutate)
        card, _ = visiting(provider.url)
    shown = failures(card)
    assert {*shown} == {*checks.split()}, shown


def test_there_are_fifty_changes() -> None:
    assert len({*MUTATIONS}) >= 50
