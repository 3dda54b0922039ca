"""Caching: what may be kept for how long, and what is answered to those who hold it."""

from urllib.parse import urlencode

import pytest

from functions.http import http_message
from functions.snapshot.errors import StoreError
from tests.functions.oai.client import Client, Clock, Page, content
from tests.functions.oai.conftest import holding
from tests.functions.oai.validity import valid
from tests.functions.reading.memory import MemoryRepository, capture

KEPT = "public, max-age=86400, must-revalidate, immutable"
ASKED = "no-cache"
LISTS = ("ListRecords", "ListIdentifiers", "ListSets")


def small(repository: MemoryRepository, clock: Clock, **settings) -> Client:
    return Client(repository, clock, pages_records=3, pages_identifiers=3, pages_sets=3, **settings)


def begun(verb: str) -> dict[str, str]:
    return {} if verb == "ListSets" else {"metadataPrefix": "oai_dc"}


def resumed(client: Client, verb: str, pages: int = 1) -> str:
    """Return the query with which a list goes on after so many pages."""
    page = client.get(verb, **begun(verb))
    for _ in range(pages - 1):
        page = client.get(verb, resumptionToken=page.next)
    return urlencode({"verb": verb, "resumptionToken": page.next})


def control(client: Client, query: str, method: str = "GET", **call) -> str:
    reply = client.raw(query, method, **call)
    assert reply["statusCode"] == 200
    return reply["headers"]["Cache-Control"]


def changed(repository: MemoryRepository, clock: Clock) -> None:
    items = {"oai:example.org:09": capture("http://www.b9.cz/", "mime:text:html", "domain:cz:b9")}
    repository.publish(items, clock.move(60))
    clock.move(60)


@pytest.mark.parametrize("verb", LISTS)
def test_a_page_between_a_list_s_first_and_last_is_kept(repository, clock, verb):
    client = small(repository, clock)
    assert control(client, urlencode({"verb": verb, **begun(verb)})) == ASKED
    middle = resumed(client, verb)
    assert control(client, middle) == KEPT
    assert control(client, middle, "HEAD") == KEPT
    changed(repository, clock)
    assert control(client, middle) == KEPT
    repository.retire(1, 2)
    assert control(client, middle) == ASKED


@pytest.mark.parametrize("verb", LISTS)
def test_what_is_kept_never_changes(repository, clock, verb):
    client = small(repository, clock)
    query = resumed(client, verb)
    first = client.raw(query)
    changed(repository, clock)
    later = client.raw(query)
    assert later["headers"] == first["headers"]
    date = client.get("Identify").response_date
    assert date not in first["body"]
    assert date in later["body"]
    stamp = "<responseDate>"
    cut = [r["body"].partition(stamp)[2][20:] for r in (first, later)]
    assert cut[0] == cut[1] != ""


@pytest.mark.parametrize("verb", LISTS)
def test_a_page_whose_snapshot_goes_while_it_is_read_is_asked_about(repository, clock, verb):
    client = small(repository, clock)
    query = resumed(client, verb)
    changed(repository, clock)
    manifest, old = repository.manifest, repository.manifest(2)
    repository.manifest = lambda number: old if number == 2 else manifest(number)
    repository.retire(1, 2)
    assert control(client, query) == ASKED


@pytest.mark.parametrize("verb", LISTS)
def test_a_page_that_ends_a_list_is_asked_about(repository, clock, verb):
    client = small(repository, clock)
    page, before = client.get(verb, **begun(verb)), ""
    while page.next:
        before = page.next
        page = client.get(verb, resumptionToken=before)
    assert control(client, urlencode({"verb": verb, "resumptionToken": before})) == ASKED


def test_a_page_after_which_the_list_rolls_on_is_asked_about(repository, clock):
    """What it goes on with is of the moment, though the page itself is not."""
    client = small(repository, clock)
    query = resumed(client, "ListRecords", 3)
    assert content(client.raw(query)).count(b"<record>") == 1
    changed(repository, clock)
    rolled = client.raw(query)
    assert Page(valid(content(rolled))).next
    assert rolled["headers"]["Cache-Control"] == ASKED


@pytest.mark.parametrize(
    "query",
    [
        "verb=Identify",
        "verb=ListMetadataFormats",
        "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:example.org:01",
        "verb=ListRecords&metadataPrefix=nope",
        "verb=ListRecords&resumptionToken=nope",
        "verb=Nope",
        "",
    ],
)
def test_what_may_change_is_asked_about(client, query):
    reply = client.raw(query)
    assert reply["headers"]["Cache-Control"] == ASKED
    assert reply["headers"]["ETag"].startswith('W/"')


def test_the_page_for_people_is_asked_about(client):
    tag = client.raw(path="/")["headers"]["ETag"]
    assert control(client, "", path="/") == ASKED
    reply = client.raw(path="/", headers={"if-none-match": tag})
    assert (reply["statusCode"], reply["body"]) == (304, "")


def test_what_a_form_asks_is_not_kept(repository, clock):
    client = small(repository, clock)
    query = resumed(client, "ListRecords")
    tag = client.raw(query)["headers"]["ETag"]
    headers = {"content-type": "application/x-www-form-urlencoded", "if-none-match": tag}
    reply = client.raw("", "POST", headers=headers, body=query)
    assert (reply["statusCode"], reply["headers"]["Cache-Control"]) == (200, ASKED)
    assert reply["headers"]["ETag"] == tag


@pytest.mark.parametrize(("seconds", "said"), [(0, ASKED), (60, KEPT.replace("86400", "60"))])
def test_how_long_is_the_operator_s_choice(repository, clock, seconds, said):
    client = small(repository, clock, serve_cache_seconds=seconds)
    assert control(client, resumed(client, "ListRecords")) == said


@pytest.mark.parametrize("query", ["verb=Identify", "verb=ListRecords&metadataPrefix=oai_dc"])
@pytest.mark.parametrize("accepted", ["", "gzip"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_nothing_is_sent_to_who_holds_it(client, clock, query, accepted, method):
    first = client.raw(query, headers={"accept-encoding": accepted})
    tag = first["headers"]["ETag"]
    clock.move(3600)  # the responseDate is another one
    for held in (tag, tag.removeprefix("W/"), f'"a", {tag}', "*", f'W/"", "b,c",{tag},"d"'):
        headers = {"accept-encoding": accepted, "If-None-Match": held}
        reply = client.raw(query, method, headers=headers)
        assert (reply["statusCode"], reply["body"], reply["isBase64Encoded"]) == (304, "", False)
        assert reply["headers"]["ETag"] == tag
        kept = {"ETag", "Cache-Control", "Vary", *CORS}
        assert reply["headers"].keys() == kept
        assert all(reply["headers"][name] == first["headers"][name] for name in kept)


CORS = ("Access-Control-Allow-Origin", "Access-Control-Expose-Headers")


@pytest.mark.parametrize("held", ["", '"a"', "a", "W/", "{tag}x", '"', "\x00", "W/*", "x" * 99_999])
def test_everything_is_sent_to_who_holds_something_else(client, held):
    tag = client.raw("verb=Identify")["headers"]["ETag"]
    held = held.replace("{tag}x", tag[:-1] + 'x"')
    assert client.raw("verb=Identify", headers={"if-none-match": held})["statusCode"] == 200


def test_each_coding_has_a_tag_of_its_own(client):
    tags = [
        client.raw("verb=Identify", headers={"accept-encoding": accepted})["headers"]["ETag"]
        for accepted in ("", "gzip")
    ]
    assert tags[0] != tags[1]
    other = {"accept-encoding": "gzip", "if-none-match": tags[0]}
    assert client.raw("verb=Identify", headers=other)["statusCode"] == 200


def test_a_change_has_another_tag(repository, clock, client):
    query = "verb=ListRecords&metadataPrefix=oai_dc"
    tag = client.raw(query)["headers"]["ETag"]
    changed(repository, clock)
    reply = client.raw(query, headers={"if-none-match": tag})
    assert reply["statusCode"] == 200
    assert reply["headers"]["ETag"] != tag


def test_the_date_that_does_not_count_is_the_element_s(client):
    """What a stranger sends cannot pass for it."""
    tags = {
        client.raw(urlencode({"verb": f"<responseDate>{n:020}"}))["headers"]["ETag"]
        for n in range(3)
    }
    assert len(tags) == 3
    plain = [
        http_message.document_digest(text) for text in (b"", b"a", b"<responseDate>", b"b" * 40)
    ]
    assert len({*plain}) >= 3


def test_what_a_failure_says_is_kept_nowhere(repository, clock):
    def fail(*args, **kwargs):
        raise StoreError("gone")

    repository.pointer = fail
    reply = Client(repository, clock).raw("verb=Identify", headers={"if-none-match": "*"})
    assert reply["statusCode"] == 503
    assert reply["headers"]["Cache-Control"] == "no-store"
    assert "ETag" not in reply["headers"]


def test_a_refused_token_is_asked_about_again(repository, clock):
    """It may be one of a snapshot that this machine does not know of yet."""
    client, other = small(repository, clock), holding({"oai:example.org:x": capture("http://x/")})
    query = resumed(client, "ListRecords")
    refused = small(other, clock).raw(query)
    assert "badResumptionToken" in refused["body"]
    assert refused["headers"]["Cache-Control"] == ASKED
