"""Weight: what Lambda hands over has a limit, and no answer goes beyond it."""

import base64
import json
import random

import pytest

from functions.http import aws
from functions.http.http_message import HttpResponse
from functions.oai.application import Application
from tests.functions.oai.client import START, Page, configured, content, event, respond
from tests.functions.oai.conftest import holding
from tests.functions.oai.gateways import KINDS
from tests.functions.oai.validity import valid
from tests.functions.reading.memory import capture

GZIP = {"accept-encoding": "gzip"}
ESCAPED = "ř\"\n\\'&<>"
"""Characters that JSON or XML writes with more."""
NOISE = "".join(map(chr, random.Random(6).choices(range(0x4E00, 0x9FFF), k=1_000_000)))
"""A text that hardly gets smaller by compression."""


def application(titles: list[str], largest: int = aws.LARGEST, **settings) -> Application:
    items = {
        f"oai:example.org:{number:03}": capture("http://a.cz/", "mime:a", title=title)
        for number, title in enumerate(titles)
    }
    return Application(holding(items), configured(**settings), lambda: START, largest=largest)


def handed_over(reply) -> int:
    """Return the size of the JSON in which Lambda hands an answer over."""
    encoded = base64.b64encode(reply["body"].encode()).decode()
    body = reply["body"] if reply["isBase64Encoded"] else encoded
    return len(json.dumps({**reply, "body": body, "isBase64Encoded": True}))


def harvested(asked: Application, headers=None, verb: str = "ListRecords") -> list[str]:
    """Return the numbers of what a list gives, each page of which Lambda would hand over."""
    found: list[str] = []
    query = f"verb={verb}&metadataPrefix=oai_dc"
    while query:
        reply = respond(asked, event(query, headers=headers))
        assert reply["statusCode"] == 200, reply
        assert handed_over(reply) <= aws.LARGEST
        page = Page(valid(content(reply)))
        found += [name[-3:] for name in page.identifiers]
        query = f"verb={verb}&resumptionToken={page.next}" if page.next else ""
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("headers", [None, GZIP], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    "title", ["x" * 99_000, ESCAPED * 9_000, NOISE[:60_000]], ids=["plain", "escaped", "noise"]
)
def test_no_page_is_too_large(title, headers):
    found = harvested(application([title] * 80), headers)
    assert found == [f"{number:03}" for number in range(80)]


@pytest.mark.parametrize("size", [999_000, 1_000_000, 1_001_000, 3_990_000])
@pytest.mark.parametrize("character", ['"', "\n", "ř", "😀", "漢"])
def test_a_body_of_any_characters_is_handed_over(size, character):
    body = (character * size).encode()[:size].decode("utf-8", "ignore").encode()
    assert aws.weigh(HttpResponse(200, {"x": "y" * 2000}, body)) <= aws.LARGEST


@pytest.mark.sampled(3)
@pytest.mark.parametrize("headers", [None, GZIP], ids=["plain", "gzip"])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_record_that_is_too_large_is_left_out(place, headers, caplog):
    titles = ["x"] * 5
    titles[place] = NOISE * 3
    found = harvested(application(titles), headers)
    assert found == [f"{number:03}" for number in range(5) if number != place]
    name = f"oai:example.org:{place:03}"
    assert f"{name} is left out: 90" in caplog.text
    assert harvested(application(titles), headers, "ListIdentifiers") == [
        f"{number:03}" for number in range(5)
    ]


def test_where_all_records_are_too_large_there_is_nothing():
    asked = application([NOISE * 3] * 3)
    reply = respond(asked, event("verb=ListRecords&metadataPrefix=oai_dc"))
    assert Page(valid(content(reply))).codes == ["noRecordsMatch"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_asking_for_a_record_that_is_too_large(kind, caplog):
    asked = application([NOISE * 3, "z" * 7_000_000])
    query = "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:example.org:00"
    for number, headers, codes in (
        (0, None, ["cannotDisseminateFormat"]),
        (0, GZIP, ["cannotDisseminateFormat"]),
        (1, None, ["cannotDisseminateFormat"]),
        (1, GZIP, []),  # 7 MB of the same letter are few when they are compressed
    ):
        reply = respond(asked, kind(f"{query}{number}", headers=headers))
        assert handed_over(reply) <= aws.LARGEST
        assert Page(valid(content(reply))).codes == codes
    assert "oai:example.org:000 is left out" in caplog.text


def test_a_server_of_one_s_own_has_no_such_limit():
    asked = application([NOISE * 3], largest=None)
    reply = respond(
        asked, event("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:example.org:000")
    )
    assert len(content(reply)) > 9_000_000


def test_what_is_too_large_and_no_record_is_a_503(caplog):
    huge = [f"<x xmlns='urn:x'>{'y' * 2_000_000}</x>"] * 3
    asked = application(["x"], identify_descriptions=huge)
    reply = respond(asked, event("verb=Identify"))
    assert (reply["statusCode"], reply["headers"]["Retry-After"]) == (503, "30")
    assert reply["body"] == "The response is too large.\n"
    assert "an answer of 60" in caplog.text
    assert respond(asked, event("verb=Identify", headers=GZIP))["statusCode"] == 200
    assert respond(asked, event("verb=Identify", "HEAD"))["statusCode"] == 200
