"""The six verbs, but for the paging of lists."""

from datetime import timedelta, timezone

import pytest

from .client import BASE, START, Client, Clock
from .memory import Item, MemoryRepository, capture
from .validity import DC, OAI

LIVE, CHANGED, DELETED = (f"oai:example.org:{n:02}" for n in (1, 3, 5))


@pytest.fixture
def bare() -> Client:
    """A repository without sets."""
    repository = MemoryRepository()
    repository.publish({LIVE: capture("http://a.cz/")}, START - timedelta(hours=1))
    return Client(repository)


def test_identify(client: Client):
    page = client.get("Identify")
    assert page.text("baseURL") == page.text("request") == [BASE]
    assert page.text("earliestDatestamp") == ["2026-03-01T11:00:00Z"]
    assert page.text("deletedRecord") == ["persistent"]
    assert page.text("granularity") == ["YYYY-MM-DDThh:mm:ssZ"]
    assert page.text("compression") == ["gzip"]
    assert page.response_date == "2026-03-01T11:59:55Z"
    assert page.request == {"verb": "Identify"}
    namespace = "{http://www.openarchives.org/OAI/2.0/oai-identifier}"
    assert [e.text for e in page.root.iter(namespace + "repositoryIdentifier")] == ["example.org"]


def test_identify_by_the_configuration(repository):
    client = Client(
        repository,
        repository_name='Web <archive> & "more"',
        repository_admin_emails=["a@b.cz", "c@d.cz"],
        repository_base_url="http://other.example.org/x/oai",
    )
    page = client.get("Identify")
    assert page.text("repositoryName") == ['Web <archive> & "more"']
    assert page.text("adminEmail") == ["a@b.cz", "c@d.cz"]
    assert page.text("baseURL") == page.text("request") == ["http://other.example.org/x/oai"]


def test_formats(client: Client):
    for page in (
        client.get("ListMetadataFormats"),
        client.get("ListMetadataFormats", identifier=LIVE),
        client.get("ListMetadataFormats", identifier=DELETED),
    ):
        assert page.text("metadataPrefix") == ["oai_dc", "capture", "mods"]
    assert client.get("ListMetadataFormats", identifier="oai:a.b:c").codes == ["idDoesNotExist"]


def test_an_item_of_a_kind_without_formats():
    repository = MemoryRepository()
    repository.publish({LIVE: Item(kind="other")}, START - timedelta(hours=1))
    client = Client(repository)
    assert client.get("ListMetadataFormats").text("metadataPrefix") == ["oai_dc"]
    assert client.get("ListMetadataFormats", identifier=LIVE).codes == ["noMetadataFormats"]
    page = client.get("GetRecord", identifier=LIVE, metadataPrefix="oai_dc")
    assert page.codes == ["cannotDisseminateFormat"]
    assert client.get("ListRecords", metadataPrefix="oai_dc").codes == ["noRecordsMatch"]


def test_a_record(client: Client):
    page = client.get("GetRecord", identifier=LIVE, metadataPrefix="oai_dc")
    assert page.headers == [(LIVE, False)]
    assert page.text("datestamp") == ["2026-03-01T11:00:00Z"]
    assert page.text("setSpec") == ["domain:cz:a1:www", "mime:text:html"]
    assert [e.text for e in page.root.iter(DC + "title")] == ["Page 1"]
    assert page.request == {"verb": "GetRecord", "identifier": LIVE, "metadataPrefix": "oai_dc"}


def test_a_changed_record_has_the_datestamp_of_its_publish(client: Client):
    page = client.get("GetRecord", identifier=CHANGED, metadataPrefix="oai_dc")
    assert page.text("datestamp") == ["2026-03-01T11:30:00Z"]


def test_a_deleted_record_is_a_header(client: Client):
    page = client.get("GetRecord", identifier=DELETED, metadataPrefix="oai_dc")
    assert page.headers == [(DELETED, True)]
    assert page.text("metadata") == []


@pytest.mark.parametrize(
    ("identifier", "prefix", "expected"),
    [
        ("oai:example.org:none", "oai_dc", ["idDoesNotExist"]),
        ('invalid"id', "oai_dc", ["idDoesNotExist"]),
        (LIVE, "marc", ["cannotDisseminateFormat"]),
        ("oai:a.b:c", "marc", ["idDoesNotExist", "cannotDisseminateFormat"]),
    ],
)
def test_no_such_record(client: Client, identifier, prefix, expected):
    page = client.get("GetRecord", identifier=identifier, metadataPrefix=prefix)
    assert page.codes == expected
    assert page.request == {
        "verb": "GetRecord",
        "identifier": identifier,
        "metadataPrefix": prefix,
    }


def test_an_item_is_looked_for_anew_before_it_is_denied(client, repository, clock):
    client.get("Identify")
    repository.publish({"oai:example.org:new": capture("http://n/")}, clock.now)
    clock.move(1)
    page = client.get("GetRecord", identifier="oai:example.org:new", metadataPrefix="oai_dc")
    assert page.headers == [("oai:example.org:new", False)]


def test_sets(client: Client):
    page = client.get("ListSets")
    assert page.text("setSpec")[:3] == ["domain", "domain:cz", "domain:cz:a0"]
    assert page.text("setName")[0] == "Captures of all web sites"
    assert page.token is None


def test_a_set_may_be_named_by_the_configuration(repository):
    client = Client(repository, sets_names={"mime": "By\x07 type"})
    assert "By type" in client.get("ListSets").text("setName")


@pytest.mark.parametrize("size", [1, 2, 3, 13, 26, 27, 28, 1000])
def test_sets_by_pages(repository, size):
    total = [s.spec for s in repository.snapshots[2].sets]
    client = Client(repository, pages_sets=size)
    found = []
    for page in client.pages("ListSets"):
        if page.token is not None:
            assert page.token.get("cursor") == str(len(found))
            assert page.token.get("completeListSize") == str(len(total))
        found += page.text("setSpec")
    assert found == total
    assert (page.token is None) == (size >= len(total))


def test_sets_go_on_in_another_snapshot_where_theirs_was_retired(repository, clock):
    client = Client(repository, clock, pages_sets=3)
    page = client.get("ListSets")
    repository.publish({"oai:example.org:a": capture("http://n/", "zoo")}, clock.now)
    repository.retire(1, 2)
    clock.move(1)
    found = page.text("setSpec")
    for rest in client.pages("ListSets", resumptionToken=page.next):
        found += rest.text("setSpec")
    assert found == [s.spec for s in repository.snapshots[3].sets]


def test_without_sets_there_is_no_hierarchy(bare: Client):
    assert bare.get("ListSets").codes == ["noSetHierarchy"]
    page = bare.get("ListRecords", metadataPrefix="oai_dc", set="mime")
    assert page.codes == ["noSetHierarchy"]
    assert page.request == {"verb": "ListRecords", "metadataPrefix": "oai_dc", "set": "mime"}


def test_every_error_that_holds_is_told(bare: Client):
    page = bare.get("ListRecords", metadataPrefix="marc", set="mime")
    assert page.codes == ["cannotDisseminateFormat", "noSetHierarchy"]
    assert page.request == {"verb": "ListRecords", "metadataPrefix": "marc", "set": "mime"}


@pytest.mark.parametrize("verb", ["ListRecords", "ListIdentifiers"])
def test_lists_that_are_empty(client: Client, verb):
    def asked(**arguments: str) -> list[str]:
        return client.get(verb, **{"metadataPrefix": "oai_dc", **arguments}).codes

    assert asked(set="mime:video") == ["noRecordsMatch"]
    assert asked(set="mime:tex") == ["noRecordsMatch"]
    assert asked(until="2026-03-01T10:59:59Z") == ["noRecordsMatch"]
    assert asked(**{"from": "2026-03-01T11:30:01Z"}) == ["noRecordsMatch"]
    assert asked(metadataPrefix="marc") == ["cannotDisseminateFormat"]
    assert asked(metadataPrefix="marc", set="nope") == ["cannotDisseminateFormat"]


def test_the_text_of_elements_is_of_the_protocol(client: Client):
    assert client.get("Identify").root.tag == OAI + "OAI-PMH"


def test_a_clock_of_another_zone_is_the_same_instant(repository):
    clock = Clock(START.astimezone(timezone(timedelta(hours=5))))
    assert Client(repository, clock).get("Identify").response_date == "2026-03-01T11:59:55Z"
