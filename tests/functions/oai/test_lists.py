"""Lists: selection by date and set, pages, and what is published meanwhile."""

from dataclasses import replace
from datetime import timedelta

import pytest

from functions.oai.token import Token
from tests.functions.oai.client import Client
from tests.functions.oai.conftest import holding
from tests.functions.reading.memory import capture

ALL = [f"oai:example.org:{n:02}" for n in range(10)]
BY_POSITION = [f"oai:example.org:{n:02}" for n in (0, 1, 2, 4, 6, 7, 8, 9, 3, 5)]
VERBS = ["ListRecords", "ListIdentifiers"]


def paged(repository, clock, size: int) -> Client:
    """Return a client of pages of one size for both kinds of lists."""
    return Client(repository, clock, pages_records=size, pages_identifiers=size)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("size", range(1, 12))
def test_pages_have_every_record_once(repository, clock, verb, size):
    found = []
    for page in paged(repository, clock, size).pages(verb, metadataPrefix="oai_dc"):
        if page.token is not None:
            assert page.token.get("cursor") == str(len(found))
            assert page.token.get("completeListSize") == "10"
        found += page.headers
    assert found == [(name, name == ALL[5]) for name in BY_POSITION]
    assert (page.token is None) == (size >= 10)


@pytest.mark.parametrize(
    ("dates", "count"),
    [
        ({"from": "2026-03-01T11:00:00Z", "until": "2026-03-01T11:00:00Z"}, 8),
        ({"from": "2026-03-01T11:30:00Z", "until": "2026-03-01T11:30:00Z"}, 2),
        ({"from": "2026-03-01T11:00:01Z"}, 2),
        ({"until": "2026-03-01T11:29:59Z"}, 8),
        ({"from": "2026-03-01"}, 10),
        ({"until": "2026-03-01"}, 10),
        ({"from": "2026-03-01", "until": "2026-03-01"}, 10),
        ({"from": "1900-01-01"}, 10),
        ({"until": "9999-12-31"}, 10),
        ({"from": "1900-01-01T00:00:00Z", "until": "2999-12-31T00:00:00Z"}, 10),
        ({"until": "2026-02-28"}, 0),
        ({"from": "2026-03-02"}, 0),
    ],
)
def test_dates_select(client: Client, dates, count):
    page = client.get("ListRecords", metadataPrefix="oai_dc", **dates)
    assert len(page.headers) == count
    assert page.codes == ([] if count else ["noRecordsMatch"])
    assert page.request == {"verb": "ListRecords", "metadataPrefix": "oai_dc", **dates}


@pytest.mark.parametrize(
    ("spec", "count"), [("mime", 10), ("mime:text", 5), ("mime:text:html", 5), ("domain:cz:a1", 1)]
)
def test_sets_select_what_is_below_them(client: Client, spec, count):
    assert len(client.listed(set=spec)) == count


def test_a_page_asked_for_again_is_the_same(repository, clock):
    client = paged(repository, clock, 3)
    token = client.get("ListRecords", metadataPrefix="oai_dc").next
    first, second = (client.get("ListRecords", resumptionToken=token) for _ in range(2))
    assert (first.headers, first.next) == (second.headers, second.next)
    assert token == client.get("ListRecords", metadataPrefix="oai_dc").next
    assert first.request == {"verb": "ListRecords", "resumptionToken": token}


def test_a_list_stays_in_its_snapshot_and_rolls_forward_at_its_end(repository, clock):
    client = paged(repository, clock, 4)
    pages = [client.get("ListRecords", metadataPrefix="oai_dc")]
    repository.publish({ALL[0]: None, ALL[9]: capture("http://n/")}, clock.now)
    clock.move(60)
    while pages[-1].next:
        pages.append(client.get("ListRecords", resumptionToken=pages[-1].next))
    assert [len(p.headers) for p in pages] == [4, 4, 2, 2]
    assert pages[3].headers == [(ALL[0], True), (ALL[9], False)]
    assert [p.token.get("completeListSize") for p in pages] == ["10", "10", "12", "12"]
    assert [p.token.get("cursor") for p in pages] == ["0", "4", "8", "10"]


def test_what_the_list_does_not_ask_for_does_not_prolong_it(repository, clock):
    client = paged(repository, clock, 4)
    until = {"until": "2026-03-01T11:45:00Z"}
    for chosen in (until, {"set": "mime:image"}):
        page = client.get("ListRecords", metadataPrefix="oai_dc", **chosen)
        repository.publish({ALL[1]: capture(f"http://{chosen}/", "mime:text:html")}, clock.now)
        clock.move(60)
        while page.next:
            page = client.get("ListRecords", resumptionToken=page.next)
        assert ALL[1] not in page.identifiers
        assert page.token.text is None


def test_a_list_of_one_page_reads_the_pointer_anew(repository, clock):
    client = Client(repository, clock)
    client.get("Identify")
    repository.publish({ALL[1]: None}, clock.now)
    clock.move(1)
    page = client.get("ListRecords", metadataPrefix="oai_dc")
    assert (ALL[1], True) in page.headers
    assert len(page.headers) == 10
    assert page.token is None
    assert page.response_date == "2026-03-01T11:59:56Z"


def test_an_empty_list_reads_the_pointer_anew(repository, clock):
    client = Client(repository, clock)
    client.get("Identify")
    repository.publish({ALL[1]: None}, clock.now)
    clock.move(1)
    page = client.get("ListRecords", metadataPrefix="oai_dc", from_="2026-03-01T11:59:00Z")
    assert page.headers == [(ALL[1], True)]


def test_a_page_within_a_list_does_not_read_the_pointer(repository, clock):
    client = paged(repository, clock, 3)
    token = client.get("ListRecords", metadataPrefix="oai_dc").next
    reads = repository.reads
    client.get("ListRecords", resumptionToken=token)
    assert repository.reads == reads


@pytest.mark.parametrize("estimate", [lambda n: n, lambda n: 0, lambda n: n * 3, lambda n: n // 2])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_a_list_outlives_its_snapshot(repository, clock, estimate, size):
    repository.estimate = estimate
    client = paged(repository, clock, size)
    page = client.get("ListRecords", metadataPrefix="oai_dc")
    found = list(page.headers)
    repository.publish({ALL[2]: None, ALL[9]: capture("http://n/")}, clock.now)
    repository.retire(1, 2)
    clock.move(60)
    while page.next:
        page = client.get("ListRecords", resumptionToken=page.next)
        assert page.codes == []
        assert page.token.get("cursor") == str(len(found))
        found += page.headers
        assert int(page.token.get("completeListSize")) >= len(found)
    assert dict(found) == repository.state()
    assert page.token.get("completeListSize") == str(len(found))


def test_a_list_whose_rest_is_gone_ends(repository, clock):
    client = paged(repository, clock, 9)
    until = "2026-03-01T11:45:00Z"
    token = client.get("ListRecords", metadataPrefix="oai_dc", until=until).next
    repository.publish({ALL[5]: capture("http://again/")}, clock.now)
    repository.retire(1, 2)
    clock.move(60)
    assert client.get("ListRecords", resumptionToken=token).codes == ["noRecordsMatch"]


def test_a_snapshot_that_is_retired_between_two_reads_is_no_matter(repository, clock):
    client = paged(repository, clock, 3)
    token = client.get("ListRecords", metadataPrefix="oai_dc").next
    repository.publish({ALL[9]: None}, clock.now)
    clock.move(60)
    manifest = repository.manifest

    def late(number):
        result = manifest(number)
        if number == 2:
            repository.retire(2)
        return result

    repository.manifest = late
    page = client.get("ListRecords", resumptionToken=token)
    assert page.identifiers == BY_POSITION[3:6]


def test_a_kept_reading_of_a_retired_snapshot_is_read_anew(repository, clock):
    client = Client(repository, clock)
    client.get("Identify")
    repository.publish({ALL[9]: None}, clock.now)
    repository.retire(2)
    clock.move(1)
    assert client.get("Identify").response_date == "2026-03-01T11:59:56Z"


def test_the_loss_of_the_snapshot_in_effect_is_no_retirement(repository, clock):
    client = paged(repository, clock, 3)
    token = client.get("ListRecords", metadataPrefix="oai_dc").next
    repository.retire(2)
    assert client.raw(f"verb=ListRecords&resumptionToken={token}")["statusCode"] == 503
    assert client.raw("verb=Identify")["statusCode"] == 503


def test_tokens_that_this_repository_did_not_give(repository, clock):
    client = paged(repository, clock, 3)
    text = client.get("ListRecords", metadataPrefix="oai_dc").next
    token = Token.from_text(text, "ListRecords", "example.org")
    for wrong in (
        {"snapshot": 3},
        {"snapshot": 99},
        {"position": 13},
        {"position": 2**62},
        {"prefix": "marc"},
    ):
        forged = replace(token, **wrong).to_text()
        page = client.get("ListRecords", resumptionToken=forged)
        assert page.codes == ["badResumptionToken"], wrong
        assert page.request == {"verb": "ListRecords", "resumptionToken": forged}
    for verb in ("ListIdentifiers", "ListSets"):
        assert client.get(verb, resumptionToken=text).codes == ["badResumptionToken"]


def test_a_snapshot_that_is_not_in_effect_yet_is_not_gone_on_in(repository, clock):
    client = paged(repository, clock, 3)
    token = Token.from_text(
        client.get("ListRecords", metadataPrefix="oai_dc").next, "ListRecords", "example.org"
    )
    repository.publish({ALL[1]: None}, clock.now + timedelta(seconds=60))
    early = replace(token, snapshot=3).to_text()
    assert client.get("ListRecords", resumptionToken=early).codes == ["badResumptionToken"]
    # A reader whose clock is behind another's within the allowance believes the other's token.
    clock.move(56)
    assert client.get("ListRecords", resumptionToken=early).codes == []


def test_a_token_newer_than_the_kept_pointer_is_good(repository, clock):
    one, other = paged(repository, clock, 3), paged(repository, clock, 3)
    one.get("Identify")
    repository.publish({ALL[1]: None}, clock.now)
    token = other.get("ListRecords", metadataPrefix="oai_dc").next
    clock.move(1)
    assert one.get("ListRecords", resumptionToken=token).codes == []


def test_a_page_is_cut_by_bytes_too(clock):
    items = {f"oai:example.org:{n:04}": capture(f"http://{n}/" + "x" * 4000) for n in range(2500)}
    client = Client(holding(items), clock, pages_records=2500)
    pages = list(client.pages("ListRecords", metadataPrefix="oai_dc"))
    assert [name for p in pages for name in p.identifiers] == sorted(items)
    assert 3 <= len(pages) <= 8


@pytest.mark.parametrize("verb", ["ListRecords", "ListIdentifiers"])
def test_a_list_of_a_set_with_a_very_long_name(verb: str) -> None:
    """Its tokens are as short as any, for they name the set in another way."""
    start = "collection:" + ":".join(["level-of-a-deep-hierarchy"] * 8)
    repository = holding(
        {
            f"oai:example.org:{n}": capture(f"http://a.cz/{n}", f"{start}:{'ab'[n % 2]}")
            for n in range(12)
        }
    )
    client = Client(repository, pages_records=2, pages_identifiers=2, pages_sets=2)
    for last, own in (("a", 0), ("b", 1)):
        pages = list(client.pages(verb, metadataPrefix="oai_dc", set=f"{start}:{last}"))
        assert len(pages) == 3
        assert all(len(page.next) < 200 for page in pages)
        found = [int(name.rpartition(":")[2]) for page in pages for name in page.identifiers]
        assert sorted(found) == list(range(own, 12, 2))
    pages = list(client.pages("ListSets"))
    assert all(len(page.next) < 200 for page in pages)
    specs = [spec for page in pages for spec in page.text("setSpec")]
    assert specs == sorted(repository.snapshots[1].members)
