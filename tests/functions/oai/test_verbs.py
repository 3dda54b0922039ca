"""The six verbs, but for the paging of lists."""

from datetime import timedelta, timezone

import pytest

from functions.snapshot import instant
from tests.functions.oai.client import BASE, START, Client, Clock, content
from tests.functions.oai.conftest import holding
from tests.functions.oai.validity import DC, OAI
from tests.functions.reading.memory import Item, MemoryRepository, capture

ALL = [f"oai:example.org:{n:02}" for n in range(10)]
LIVE, CHANGED, DELETED = (ALL[n] for n in (1, 3, 5))


@pytest.fixture
def bare() -> Client:
    """A repository without sets."""
    return Client(holding({LIVE: capture("http://a.cz/")}))


def test_identify(repository):
    clock = Clock(START.astimezone(timezone(timedelta(hours=5))))  # the same instant
    page = Client(repository, clock).get("Identify")
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
    client = Client(holding({LIVE: Item(kind="other")}))
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
    page = client.get("GetRecord", identifier=CHANGED, metadataPrefix="oai_dc")
    assert page.text("datestamp") == ["2026-03-01T11:30:00Z"]
    page = client.get("GetRecord", identifier=DELETED, metadataPrefix="oai_dc")
    assert (page.headers, page.text("metadata")) == ([(DELETED, True)], [])


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
    assert page.request == {"verb": "GetRecord", "identifier": identifier, "metadataPrefix": prefix}


def test_an_item_is_looked_for_anew_before_it_is_denied(client, repository, clock):
    client.get("Identify")
    repository.publish({"oai:example.org:new": capture("http://n/")}, clock.now)
    clock.move(1)
    page = client.get("GetRecord", identifier="oai:example.org:new", metadataPrefix="oai_dc")
    assert page.headers == [("oai:example.org:new", False)]


def test_sets(repository):
    page = Client(repository, sets_names={"mime": "By\x07 type"}).get("ListSets")
    assert "By type" in page.text("setName")
    assert page.text("setSpec")[:3] == ["domain", "domain:cz", "domain:cz:a0"]
    assert page.text("setName")[0] == "Captures of all web sites"
    assert page.token is None


def test_a_sets_last_datestamp_is_that_of_the_format_that_was_made_otherwise_since(
    client: Client, repository: MemoryRepository, clock: Clock
):
    repository.remake("oai_dc", clock.now)
    clock.move(60)
    page = client.get("ListSets")
    told = {e.get("last") for e in page.root.iter("{urn:x-sheaf:set:1}statistics")}
    assert told == {"2026-03-01T12:00:00Z"}
    listed = client.get("ListIdentifiers", metadataPrefix="oai_dc")
    assert set(listed.text("datestamp")) == told


def in_order(repository, snapshot: int) -> list[str]:
    """Return a snapshot's sets, those with a live record first."""
    members = repository.snapshots[snapshot].members
    return sorted(members, key=lambda spec: (all(r.deleted for r in members[spec]), spec))


@pytest.mark.parametrize("size", [1, 2, 3, 13, 26, 27, 28, 1000])
def test_sets_by_pages(repository, size):
    total = in_order(repository, 2)
    assert total != sorted(total)  # one was emptied
    client = Client(repository, pages_sets=size)
    found = []
    for page in client.pages("ListSets"):
        if page.token is not None:
            assert page.token.get("cursor") == str(len(found))
            assert page.token.get("completeListSize") == str(len(total))
        found += page.text("setSpec")
    assert found == total
    assert (page.token is None) == (size >= len(total))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 26, 27])
def test_sets_go_on_in_another_snapshot_where_theirs_was_retired(repository, clock, size):
    """Sets are emptied, filled again and born meanwhile: the list stays what it was."""
    names = {"zoo": "Animals", "other": "Never there"}
    total = [*in_order(repository, 2), "other", "zoo"]
    client = Client(repository, clock, pages_sets=size, sets_names=names)
    found = []
    page = client.get("ListSets")
    changes = [
        {"oai:example.org:a": capture("http://n/", "zoo"), ALL[3]: None},
        {ALL[0]: capture("http://n/", "mime:text:html"), ALL[5]: capture("http://5/", "mime:x")},
        {ALL[3]: capture("http://3/", "domain:cz:a3")},
    ]
    while True:
        found += page.text("setSpec")
        if page.token is not None:
            assert page.token.get("completeListSize") == str(len(total))
        if not page.next:
            break
        if changes:
            repository.publish(changes.pop(), clock.now)
            repository.retire(*range(1, max(repository.snapshots)))
            clock.move(60)
        page = client.get("ListSets", resumptionToken=page.next)
    assert found == total


def test_a_page_of_sets_ends_where_it_would_be_too_large(clock):
    specs = [f"s{n:02}" for n in range(90)]
    repository = holding({f"oai:example.org:{spec}": capture("http://a/", spec) for spec in specs})
    client = Client(repository, clock, sets_descriptions=dict.fromkeys(specs, "&" * 20_000))
    pages = [page.text("setSpec") for page in client.pages("ListSets")]
    assert [spec for page in pages for spec in page] == specs
    assert len(pages) == 3  # of nine million bytes


class Looking(MemoryRepository):
    """Counts how often it is asked for sets without a live record."""

    looked = 0

    def sets(self, *args, live=True, **more):
        self.looked += not live
        return super().sets(*args, live=live, **more)


def test_without_empty_sets_none_is_looked_for():
    repository = Looking()
    items = {name: capture(f"http://{name}/", "a:b") for name in ALL}
    repository.publish(items, START - timedelta(hours=2))
    client = Client(repository, pages_sets=1)
    assert [page.text("setSpec") for page in client.pages("ListSets")] == [["a"], ["a:b"]]
    assert repository.looked == 0
    repository.publish({ALL[0]: capture("http://0/", "c")}, START - timedelta(hours=1))
    repository.publish({ALL[0]: None}, START - timedelta(minutes=30))
    found = [page.text("setSpec") for page in Client(repository, pages_sets=1).pages("ListSets")]
    assert found == [["a"], ["a:b"], ["c"]]
    assert repository.looked > 0


def test_what_is_said_of_a_set(repository, clock):
    """People are told in words, programs in numbers."""
    clock.move(60)
    repository.publish({ALL[3]: capture("http://3/", "mime:text:plain")}, clock.now)
    clock.move(60)
    client = Client(
        repository,
        clock,
        sets_names={"topic": "A topic"},
        sets_descriptions={"topic:b": "Not yet\n& <soon>", "mime": "By type"},
        sets_rules=[{"set": "topic:a", "hosts": ["a.cz"]}],
    )
    page = client.get("ListSets")
    said = {}
    for one in page.root.iter(f"{OAI}set"):
        numbers = next(one.iter("{urn:x-sheaf:set:1}statistics"))
        location = numbers.get("{http://www.w3.org/2001/XMLSchema-instance}schemaLocation")
        assert location == "urn:x-sheaf:set:1 https://oai.example.org/schema/set.xsd"
        attributes = {k: v for k, v in numbers.attrib.items() if "}" not in k}
        texts = [e.text for e in one.iter(f"{DC}description")]
        said[one.findtext(f"{OAI}setSpec")] = (one.findtext(f"{OAI}setName"), texts, attributes)
    dates = {"first": "2026-03-01T11:00:00Z", "last": "2026-03-01T12:01:00Z"}
    told = "9 records, datestamps from 2026-03-01T11:00:00Z to 2026-03-01T12:01:00Z"
    assert said["mime"][1:] == (["By type", told], {"records": "9", "deleted": "1", **dates})
    told = "0 records, datestamps from 2026-03-01T12:01:00Z to 2026-03-01T12:01:00Z"
    dates = {"first": "2026-03-01T12:01:00Z", "last": "2026-03-01T12:01:00Z"}
    assert said["domain:cz:a3"][1:] == ([told], {"records": "0", "deleted": "1", **dates})
    nothing = {"records": "0", "deleted": "0"}
    assert said["topic"] == ("A topic", ["0 records"], nothing)
    assert said["topic:a"] == ("topic / a", ["0 records"], nothing)
    assert said["topic:b"] == ("topic / b", ["Not yet\n& <soon>", "0 records"], nothing)
    assert list(said)[-3:] == ["topic", "topic:a", "topic:b"]


@pytest.mark.parametrize("verb", ["ListRecords", "ListIdentifiers"])
def test_what_left_a_set_is_deleted_there_and_live_elsewhere(repository, clock, verb):
    client = Client(repository, clock)
    name = ALL[1]
    began = clock.move(60)
    repository.publish({name: capture("http://1/", "mime:text:plain", "domain:cz:b:c")}, began)
    clock.move(60)

    def shown(spec: str | None) -> list[tuple[bool, list[str]]]:
        arguments = {"set": spec} if spec else {}
        page = client.get(verb, metadataPrefix="oai_dc", from_=instant.to_text(began), **arguments)
        headers = page.root.iter(f"{OAI}header")
        return [
            (h.get("status") == "deleted", [s.text for s in h.iter(f"{OAI}setSpec")])
            for h in headers
        ]

    here = (False, ["domain:cz:b:c", "mime:text:plain"])
    for spec in (
        None,
        "mime",
        "mime:text",
        "mime:text:plain",
        "domain",
        "domain:cz",
        "domain:cz:b",
    ):
        assert shown(spec) == [here]
    assert shown("mime:text:html") == [(True, ["mime:text:html"])]
    assert shown("domain:cz:a1") == [(True, ["domain:cz:a1:www"])]
    page = client.get("GetRecord", metadataPrefix="oai_dc", identifier=name)
    assert page.headers == [(name, False)]
    assert page.text("setSpec") == here[1]
    began = clock.move(60)
    repository.publish({name: capture("http://1/", "mime:text:html")}, began)
    clock.move(60)
    assert shown("mime:text:html") == [(False, ["mime:text:html"])]
    assert shown("mime:text:plain") == [(True, ["mime:text:plain"])]
    assert shown("domain") == [(True, ["domain:cz:a1:www", "domain:cz:b:c"])]
    began = clock.move(60)
    repository.publish({name: None}, began)
    clock.move(60)
    assert shown("mime") == shown(None) == [(True, ["mime:text:html"])]
    assert shown("domain:cz:b") == [(True, ["domain:cz:b:c"])]


def test_a_set_that_is_only_configured_has_no_records(repository, bare: Client):
    for named in (
        {"sets_names": {"topic:news": "News"}},
        {"sets_descriptions": {"topic:news": "News"}},
        {"sets_rules": [{"set": "topic:news", "hosts": ["a.cz"]}]},
    ):
        for some in (repository, holding({})):
            client = Client(some, **named)
            assert client.get("ListSets").text("setSpec")[-1] == "topic:news"
            page = client.get("ListRecords", metadataPrefix="oai_dc", set="topic:news")
            assert page.codes == ["noRecordsMatch"]


def test_without_sets_there_is_no_hierarchy(bare: Client):
    assert bare.get("ListSets").codes == ["noSetHierarchy"]
    page = bare.get("ListRecords", metadataPrefix="oai_dc", set="mime")
    assert page.codes == ["noSetHierarchy"]
    page = bare.get("ListRecords", metadataPrefix="marc", set="mime")
    assert page.codes == ["cannotDisseminateFormat", "noSetHierarchy"]  # each that holds
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


def test_every_template_ends_in_one_line_break_and_has_no_empty_lines(client):
    some = "verb=ListRecords&metadataPrefix=oai_dc"
    for query in ("verb=Identify", "verb=ListSets", "verb=ListMetadataFormats", some, "verb=x"):
        text = content(client.raw(query)).decode()
        assert text.endswith("</OAI-PMH>\n")
        assert "\n\n" not in text
