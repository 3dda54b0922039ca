"""Formats of datasets: valid whatever a platform tells, and complete where it tells much."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from builder.sources.datasets.entry import entry
from builder.sources.datasets.item import Description, IngestOutcome, Licence, Person, Related
from functions.kinds import find_kind
from functions.oai.render.copy_address import CopyAddresses
from functions.oai.render.mets import MetsFilters
from functions.snapshot import instant
from tests.builder.sources.datasets.outcomes import AT, DESCRIPTION, URL, failed, item, outcome
from tests.extent import examples
from tests.functions.oai.client import START, Client
from tests.functions.oai.validity import DATACITE, datacite_schema
from tests.functions.reading.memory import Item, MemoryRepository

NAME = "oai:example.org:dataset,invenio,data.example,41"
METS, XLINK = "{http://www.loc.gov/METS/}", "http://www.w3.org/1999/xlink"
PREFIXES = ("oai_dc", "oai_datacite", "mets")


def made(of: IngestOutcome, prefix: str, **computed: Any) -> etree._Element:
    """Return the metadata of a dataset in a format, out of an answer that is valid."""
    found = entry(of)
    repository = MemoryRepository()
    document = find_kind(found.kind).read(found.document) | computed
    repository.publish({NAME: Item(found.sets, found.kind, document)}, START)
    page = Client(repository).get("GetRecord", identifier=NAME, metadataPrefix=prefix)
    assert page.codes == []
    (metadata,) = page.root.iter("{*}metadata")
    return metadata[0]


def told(element: etree._Element) -> dict[str, list[str]]:
    """Return the texts of an element by their elements' names."""
    found: dict[str, list[str]] = {}
    for one in element.iter("*"):
        if not len(one):
            found.setdefault(etree.QName(one).localname, []).append(one.text or "")
    return found


def test_the_official_schema_is_asked_too() -> None:
    if not DATACITE.is_dir():
        pytest.skip("DataCite's schema is not on this machine; ours alone is asked")
    assert datacite_schema() is not None


def test_a_dataset_in_dublin_core() -> None:
    assert told(made(outcome(item("a.csv", "b.csv")), "oai_dc")) == {
        "title": ["Heights of <larches> & firs"],
        "creator": ["Vrba, Eva", "Forest Institute"],
        "contributor": ["Lípa, Jan"],
        "subject": ["larch", "fir"],
        "description": ["Measured by hand."],
        "publisher": ["Data Example"],
        "date": ["2024-05-17"],
        "type": ["Dataset"],
        "format": ["text/csv"],
        "identifier": ["https://doi.org/10.5072/trees.41", URL],
        "language": ["en"],
        "relation": ["https://doi.org/10.5072/paper.7"],
        "rights": ["https://creativecommons.org/licenses/by/4.0/"],
    }


def test_a_dataset_as_datacite_has_it() -> None:
    found = made(outcome(item("a.csv", "b.csv")), "oai_datacite")
    assert told(found) == {
        "schemaVersion": ["4.6"],
        "datacentreSymbol": ["data.example"],
        "identifier": ["10.5072/trees.41"],
        "creatorName": ["Vrba, Eva", "Forest Institute"],
        "givenName": ["Eva", "Jan"],
        "familyName": ["Vrba", "Lípa"],
        "nameIdentifier": ["0000-0002-1825-0097"],
        "affiliation": ["University of Trees"],
        "title": ["Heights of <larches> & firs"],
        "publisher": ["Data Example"],
        "publicationYear": ["2024"],
        "resourceType": ["Dataset"],
        "subject": ["larch", "fir"],
        "contributorName": ["Lípa, Jan"],
        "date": ["2024-05-17"],
        "language": ["en"],
        "alternateIdentifier": [URL],
        "relatedIdentifier": ["10.5072/paper.7"],
        "size": ["11 bytes", "2 files"],
        "format": ["text/csv"],
        "version": ["1.2"],
        "rights": ["CC BY 4.0"],
        "description": ["Measured by hand."],
    }
    kinds = [one.get("nameType") for one in found.iter("{*}creatorName", "{*}contributorName")]
    assert kinds == ["Personal", "Organizational", "Personal"]
    (related,) = found.iter("{*}relatedIdentifier")
    assert {**related.attrib} == {
        "relatedIdentifierType": "DOI",
        "relationType": "IsSupplementTo",
    }


def test_a_dataset_of_which_nothing_is_told() -> None:
    bare = item("a.csv", description=Description(), web_base_url=None, version=None)
    found = made(outcome(bare), "oai_datacite")
    (named,) = found.iter("{*}identifier")
    assert (named.get("identifierType"), named.text) == ("OAI", NAME)
    texts = told(found)
    assert (texts["creatorName"], texts["publisher"]) == (["(:unav)"], ["(:unav)"])
    assert (texts["title"], texts["publicationYear"]) == (["(:unav)"], ["0000"])
    assert texts["resourceType"] == ["Dataset"]
    assert told(made(outcome(bare), "oai_dc"))["title"] == [NAME]


def test_an_embargoed_dataset_tells_until_when() -> None:
    held = failed("platform-embargoed", item=item("a.csv", until="2030-01-01"))
    found = made(held, "oai_datacite")
    dates = {one.get("dateType"): one.text for one in found.iter("{*}date")}
    assert dates == {"Issued": "2024-05-17", "Available": "2030-01-01"}
    assert "info:eu-repo/semantics/embargoedAccess" in told(found)["rights"]
    assert "size" not in told(found)


def test_a_dataset_that_its_platform_closed_says_how_since_when_and_why() -> None:
    access = {"status": "platform-gone", "since": "2026-11-25", "reason": "a <duplicate>"}
    found = made(outcome(item("a.csv")), "oai_datacite", access=access)
    (date,) = [one for one in found.iter("{*}date") if one.get("dateType") == "Withdrawn"]
    line = "platform-gone since 2026-11-25: a <duplicate>"
    assert (date.text, date.get("dateInformation")) == ("2026-11-25", line)
    assert told(found)["description"] == ["Measured by hand.", line]
    assert "size" in told(found)
    assert line in told(made(outcome(item("a.csv")), "oai_dc", access=access))["description"]
    access = {"status": "platform-restricted", "since": "2026-11-25", "reason": None}
    found = made(outcome(item("a.csv")), "oai_datacite", access=access)
    assert "info:eu-repo/semantics/restrictedAccess" in told(found)["rights"]


def test_versions_are_related_by_their_dois_or_else_by_their_pages() -> None:
    versions = [
        {"doi": "10.5072/trees.40", "url": "http://a/1", "relation": "IsNewVersionOf"},
        {"doi": "10.5072/trees.41", "url": "http://a/3", "relation": "IsPreviousVersionOf"},
        {"doi": "10.5072/paper.7", "url": None, "relation": "IsSupplementTo"},
        {"doi": "10.5072/x", "url": None, "relation": None},
    ]
    found = made(outcome(item("a.csv")), "oai_datacite", versions=versions)
    assert [(*one.attrib.values(), one.text) for one in found.iter("{*}relatedIdentifier")] == [
        ("DOI", "IsSupplementTo", "10.5072/paper.7"),
        ("DOI", "IsNewVersionOf", "10.5072/trees.40"),
        ("URL", "IsPreviousVersionOf", "http://a/3"),
    ]


def test_words_that_datacite_has_not_are_left_out_or_other() -> None:
    odd = replace(
        DESCRIPTION,
        contributors=(Person(name="A", role="Janitor"),),
        type="Honey",
        language="kind of English",
        published="last May",
        related=(Related("1", "DOI", "Likes"), Related("2", "Phone", "Cites")),
        licences=(Licence("Ask", None, "not a URL"),),
    )
    found = made(outcome(item("a.csv", description=odd)), "oai_datacite")
    texts = told(found)
    assert "language" not in texts
    assert "relatedIdentifier" not in texts
    assert "date" not in texts
    assert [one.get("contributorType") for one in found.iter("{*}contributor")] == ["Other"]
    assert [one.get("resourceTypeGeneral") for one in found.iter("{*}resourceType")] == ["Other"]
    assert [dict(one.attrib) for one in found.iter("{*}rights")] == [{}]


def files_of(found: etree._Element) -> list[dict[str, str]]:
    """Return the attributes of each file of a METS document, without its id, and its addresses."""
    return [
        {n: v for n, v in file.attrib.items() if n != "ID"}
        | {"at": " ".join(one.get(f"{{{XLINK}}}href", "") for one in file)}
        for file in found.iter(f"{METS}file")
    ]


def test_a_dataset_in_mets_lists_its_files_with_digests_and_addresses() -> None:
    found = made(outcome(item("a.csv", "data/b.csv")), "mets")
    first, second = files_of(found)
    assert first == {
        "OWNERID": "a.csv",
        "MIMETYPE": "text/csv",
        "SIZE": "5",
        "CREATED": f"{instant.to_text(instant.from_digits(AT))}",
        "CHECKSUM": f"{5:064x}",
        "CHECKSUMTYPE": "SHA-256",
        "at": f"{URL}/files/a.csv",
    }
    assert second["OWNERID"] == "data/b.csv"
    assert told(found)["title"] == ["Heights of <larches> & firs"]
    ids = [one.get("ID") for one in found.iter(f"{METS}file")]
    assert [one.get("FILEID") for one in found.iter(f"{METS}fptr")] == ids
    assert len({*ids}) == 2
    held = made(failed("platform-embargoed", item=item("a.csv", until="2030-01-01")), "mets")
    assert files_of(held) == []
    access = {"status": "platform-gone", "since": "2026-11-25", "reason": None}
    (header,) = made(outcome(item("a.csv")), "mets", access=access).iter(f"{METS}metsHdr")
    assert header.get("RECORDSTATUS") == "platform-gone"


def test_files_in_mets_have_their_archived_copies_and_their_names_on_the_platform() -> None:
    copies = CopyAddresses(("/content/{identifier}?file={file}",))
    rows = [
        {"path": "%61ux.csv", "original": "aux.csv", "key": "k", "md5": "00", "bytes": 1},
        {"path": "b.csv", "key": None, "platform_url": "https://archive.org/b.csv", "bytes": 2},
        {"path": "c.csv", "platform_url": "ftp://a/c", "terminal_dt": "never"},
    ]
    found = MetsFilters(copies).describe(NAME, rows)
    assert [(one["path"], one["addresses"], one["algorithm"]) for one in found["files"]] == [
        ("aux.csv", [f"/content/{NAME}?file=%2561ux.csv"], "MD5"),
        ("b.csv", ["https://archive.org/b.csv"], None),
        ("c.csv", [], None),
    ]
    assert found["files"][2]["created"] == ""


def test_a_list_of_very_many_files_ends_where_the_record_is_full() -> None:
    url = "https://data.example/" + "x" * 200
    rows = [{"path": f"{n}.csv", "platform_url": url, "sha256": "0" * 64} for n in range(10_000)]
    files = made(outcome(item("a.csv")), "mets", files=rows)
    shown = len(files_of(files))
    assert 2_000 < shown < 10_000
    (division,) = files.iter(f"{METS}div")
    assert division.get("LABEL") == f"The first {shown} of 10000 files"
    assert 1_000_000 < len(etree.tostring(files)) < 3_000_000


_TEXT = st.one_of(st.none(), st.text(max_size=12), st.sampled_from(["2024", "en", "Text", " ]]>&"]))
_SAID = st.one_of(st.text(max_size=12), st.sampled_from(["DOI", "Cites", "http://a.cz/ b", "\n"]))
_PERSON = st.builds(
    Person,
    name=_SAID,
    given=_TEXT,
    family=_TEXT,
    orcid=_TEXT,
    affiliations=st.tuples(_SAID),
    organisation=st.booleans(),
    role=_TEXT,
)
DESCRIPTIONS = st.builds(
    Description,
    title=_TEXT,
    creators=st.lists(_PERSON, max_size=2).map(tuple),
    contributors=st.lists(_PERSON, max_size=2).map(tuple),
    publisher=_TEXT,
    published=_TEXT,
    type=_SAID,
    abstract=_TEXT,
    subjects=st.lists(_SAID, max_size=2).map(tuple),
    language=_TEXT,
    licences=st.lists(st.builds(Licence, _TEXT, _TEXT, _TEXT), max_size=2).map(tuple),
    version=_TEXT,
    doi=_TEXT,
    url=_TEXT,
    related=st.lists(st.builds(Related, _SAID, _SAID, _SAID), max_size=2).map(tuple),
)


@settings(max_examples=examples(60), deadline=None)
@given(description=DESCRIPTIONS, mimetype=_TEXT, until=_TEXT, prefix=st.sampled_from(PREFIXES))
def test_whatever_a_platform_tells_is_valid(
    description: Description, mimetype: str | None, until: str | None, prefix: str
) -> None:
    one = item("a.csv", description=description, until=until, version=description.version)
    of = outcome(one)
    files: Any = tuple(replace(file, mimetype=mimetype) for file in of.archived.manifest)
    made(replace(of, archived=replace(of.archived, manifest=files)), prefix)
