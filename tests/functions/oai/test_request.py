"""Requests: what is read from pairs, and what is refused with which error."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from functions.oai.request import VERBS, OAIError, parse
from functions.snapshot.oai_name import is_uri
from tests.functions.oai.client import Client

LIST = [("verb", "ListRecords"), ("metadataPrefix", "oai_dc")]
GET = [("verb", "GetRecord"), ("identifier", "oai:a.b:c"), ("metadataPrefix", "oai_dc")]


def refused(*pairs: tuple[str, str]) -> list[str]:
    with pytest.raises(OAIError) as caught:
        parse(pairs)
    return [fault.code for fault in caught.value.faults]


def messages(*pairs: tuple[str, str]) -> str:
    with pytest.raises(OAIError) as caught:
        parse(pairs)
    return str(caught.value)


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [("verb", "")],
        [("verb", "identify")],
        [("verb", "Identify ")],
        [("Verb", "Identify")],
        [("verb", "Identify"), ("verb", "Identify")],
        [("verb", "Nope"), ("foo", "bar")],
    ],
)
def test_a_verb_that_is_missing_unknown_or_repeated_is_bad(pairs):
    assert refused(*pairs) == ["badVerb"]


@pytest.mark.parametrize(
    "pairs",
    [
        [("verb", "Identify"), ("foo", "bar")],
        [("verb", "Identify"), ("metadataPrefix", "oai_dc")],
        [("verb", "ListSets"), ("set", "a")],
        [("verb", "GetRecord"), ("identifier", "oai:a.b:c")],
        [("verb", "GetRecord"), ("metadataPrefix", "oai_dc")],
        [*GET, ("identifier", "oai:a.b:c")],
        [("verb", "GetRecord"), ("identifier", ""), ("metadataPrefix", "oai_dc")],
        [("verb", "ListRecords")],
        [("verb", "ListRecords"), ("from", "2026-01-01")],
        [("verb", "ListRecords"), ("metadataprefix", "oai_dc")],
        [*LIST, ("resumptionToken", "x")],
        [("verb", "ListRecords"), ("resumptionToken", "x"), ("resumptionToken", "x")],
        [("verb", "ListRecords"), ("resumptionToken", "")],
        [("verb", "ListRecords"), ("metadataPrefix", "oai dc")],
        [*LIST, ("set", "a::b")],
        [*LIST, ("set", "a b")],
        [*LIST, ("set", "")],
        [*LIST, ("from", "")],
        [*LIST, ("from", "2026-02-30")],
        [*LIST, ("from", "2026-13-01")],
        [*LIST, ("from", "2026-1-1")],
        [*LIST, ("from", "20260101")],
        [*LIST, ("from", "2026-01-01T00:00:00")],
        [*LIST, ("from", "2026-01-01T00:00Z")],
        [*LIST, ("from", "2026-01-01T00:00:00.5Z")],
        [*LIST, ("from", "2026-01-01T00:00:00+01:00")],
        [*LIST, ("from", "2026-01-01T24:00:00Z")],
        [*LIST, ("from", "2026-01-01T00:00:60Z")],
        [*LIST, ("from", "0000-01-01")],
        [*LIST, ("from", "2026-01-01 00:00:00Z")],
        [*LIST, ("from", "２０２６-01-01")],
        [*LIST, ("until", "2026-01-01\n")],
        [*LIST, ("from", "2026-01-01"), ("until", "2026-01-02T00:00:00Z")],
        [*LIST, ("from", "2026-01-02"), ("until", "2026-01-01")],
        [("verb", "GetRecord"), ("identifier", "oai:a%zz"), ("metadataPrefix", "oai_dc")],
        [("verb", "ListMetadataFormats"), ("identifier", "no\x00uri")],
    ],
)
def test_an_argument_that_is_wrong_is_bad(pairs):
    assert set(refused(*pairs)) == {"badArgument"}


def test_each_thing_that_is_wrong_is_told():
    found = refused(("verb", "ListRecords"), ("from", "x"), ("set", "a b"), ("foo", "1"))
    assert found == ["badArgument"] * 4
    told = messages(("verb", "ListRecords"), ("from", "x"), ("set", "a b"), ("foo", "1"))
    assert all(word in told for word in ("metadataPrefix", '"foo"', '"x"', '"a b"'))


def test_a_flood_of_arguments_is_told_briefly():
    told = messages(("verb", "Identify"), *((f"x{n}" * 99, "") for n in range(999)))
    assert len(told) < 2000


def test_a_message_quotes_no_more_than_a_line():
    assert len(messages(("verb", "x" * 100_000))) < 300


@pytest.mark.parametrize(
    ("first", "last", "start", "end"),
    [
        ("2026-02-27", "2026-02-28", (2026, 2, 27), (2026, 2, 28, 23, 59, 59)),
        ("2026-02-27T01:02:03Z", "2026-02-27T01:02:03Z", *[(2026, 2, 27, 1, 2, 3)] * 2),
        ("0001-01-01", "9999-12-31", (1, 1, 1), (9999, 12, 31, 23, 59, 59)),
    ],
)
def test_dates_are_instants_and_a_day_is_whole(first, last, start, end):
    request = parse([*LIST, ("from", first), ("until", last)])
    assert request.start == datetime(*start, tzinfo=UTC)
    assert request.end == datetime(*end, tzinfo=UTC)


def test_a_request_keeps_its_arguments_as_they_came():
    request = parse(GET[::-1])
    assert request.arguments == (GET[0], GET[2], GET[1])
    assert (request.identifier, request.prefix, request.token) == ("oai:a.b:c", "oai_dc", None)


def test_the_table_is_that_of_the_protocol():
    assert {verb: (v.required, v.optional, v.exclusive) for verb, v in VERBS.items()} == {
        "GetRecord": (("identifier", "metadataPrefix"), (), ""),
        "Identify": ((), (), ""),
        "ListIdentifiers": (("metadataPrefix",), ("from", "until", "set"), "resumptionToken"),
        "ListMetadataFormats": ((), ("identifier",), ""),
        "ListRecords": (("metadataPrefix",), ("from", "until", "set"), "resumptionToken"),
        "ListSets": ((), (), "resumptionToken"),
    }


_ANY_URI = etree.RelaxNG(
    etree.XML(
        '<element name="a" xmlns="http://relaxng.org/ns/structure/1.0" '
        'datatypeLibrary="http://www.w3.org/2001/XMLSchema-datatypes">'
        '<data type="anyURI"/></element>'
    )
)


@given(st.text(st.sampled_from("ab1:/?#%[]@.\"<> é+-~;=\\^{}|'()*,&!")) | st.text())
def test_what_passes_for_a_uri_is_one_to_the_schema(text):
    if is_uri(text):
        element = etree.Element("a")
        element.text = text
        assert _ANY_URI.validate(element)


@pytest.mark.parametrize(
    "text", ["oai:a.b:c", 'invalid"id', "http://a.b/?c=d#e", "oai:a:%41", "a/b:c"]
)
def test_uris_pass(text):
    assert is_uri(text)


@pytest.mark.parametrize("code", [[("verb", "Nope")], [("verb", "Identify"), ("a", "<&>\"'")]])
def test_an_unreadable_request_is_echoed_without_attributes(client: Client, code):
    page = client.ask(code)
    assert set(page.codes) <= {"badVerb", "badArgument"}
    assert page.request == {}
