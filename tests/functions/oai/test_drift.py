"""A server whose templates are not those of the publisher."""

import logging

import pytest

from functions.snapshot.manifest import Making
from tests.functions.oai.client import Client, Clock
from tests.functions.reading.memory import MemoryRepository

RECORD = "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:example.org:01"
LIST = "verb=ListRecords&metadataPrefix=oai_dc"


def made(client: Client, repository: MemoryRepository, clock: Clock, digest: str) -> None:
    """Publish that the publisher makes oai_dc by templates of that digest."""
    number = max(repository.snapshots) + 1
    repository.formats["oai_dc"] = Making(digest, clock.now, number)
    repository._published(clock.now, None)
    clock.move(10)


def own(client: Client) -> str:
    return client.application._provider._drift._own("oai_dc")


@pytest.mark.parametrize("query", [LIST, RECORD])
def test_a_server_with_old_templates_is_told_to_start_anew(repository, clock, query, caplog):
    client = Client(repository, clock)
    made(client, repository, clock, own(client))
    assert client.raw(query)["statusCode"] == 200
    made(client, repository, clock, "made otherwise")
    reply = client.raw(query)
    assert reply["statusCode"] == 503
    assert reply["headers"]["Retry-After"]
    assert "restart this server" in caplog.text
    assert "templates" not in reply["body"]  # strangers are not told
    for other in (
        "verb=Identify",
        "verb=ListIdentifiers&metadataPrefix=oai_dc",
        query.replace("oai_dc", "mods"),
    ):
        assert client.raw(other)["statusCode"] == 200


def test_a_list_under_way_goes_on_in_a_snapshot_of_older_templates(repository, clock):
    """Its snapshot is as it is; what counts is what the publisher does now."""
    client = Client(repository, clock, pages_records=3)
    made(client, repository, clock, "as it was")
    token = client.get("ListRecords", metadataPrefix="oai_dc").next
    made(client, repository, clock, own(client))
    anew = Client(repository, clock, pages_records=3)  # started again, with the new templates
    assert anew.raw(LIST)["statusCode"] == 200
    assert anew.get("ListRecords", resumptionToken=token).identifiers
    assert list(anew.pages("ListRecords", resumptionToken=token))[-1].next == ""


@pytest.mark.parametrize("query", [LIST, RECORD])
def test_a_server_that_is_ahead_of_the_publisher_answers_and_says_so_once(
    repository, clock, query, caplog
):
    client = Client(repository, clock)
    made(client, repository, clock, "as it was")
    with caplog.at_level(logging.WARNING, "sheaf"):
        for _ in range(3):
            assert client.raw(query)["statusCode"] == 200
    assert caplog.text.count("differs from that") == 1
    made(client, repository, clock, own(client))
    assert client.raw(query)["statusCode"] == 200
