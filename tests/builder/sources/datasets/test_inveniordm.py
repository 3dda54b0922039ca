"""InvenioRDM: its own form of records, and lists of files that are short."""

import json
from typing import Any

import pytest

from builder.sources.datasets.item import Licence, Person, Related
from builder.sources.datasets.platforms.invenio import InvenioRDM
from tests.builder.sources.datasets.pages import Pages, Site, cases, real_bytes
from tests.builder.sources.datasets.samples import JANA

BASE = "https://repository.example.org"
URL = f"{BASE}/records/2bk3z-5tq81"
API = f"{BASE}/api/records/2bk3z-5tq81"


def entry(key: str, size: int = 5, **more: Any) -> dict[str, Any]:
    return {"key": key, "size": size, "checksum": "md5:" + "0a" * 16, "mimetype": "text/csv"} | more


def record(**more: Any) -> dict[str, Any]:
    return {
        "id": "2bk3z-5tq81",
        "parent": {"id": "9zzzz-00001"},
        "is_published": True,
        "is_draft": False,
        "pids": {"doi": {"identifier": "10.5072/2bk3z-5tq81"}},
        "access": {"record": "public", "files": "public", "embargo": {"active": False}},
        "metadata": {
            "title": "Sounds of a hive",
            "publication_date": "2023-04",
            "publisher": "Repository of the Test",
            "resource_type": {"id": "image-photo"},
            "description": "<p>Loud.</p>",
            "creators": [
                {
                    "person_or_org": {
                        "type": "personal",
                        "given_name": "Jana",
                        "family_name": "Včela",
                        "name": "Včela, Jana",
                        "identifiers": [{"scheme": "orcid", "identifier": "0000-0002-1825-0097"}],
                    },
                    "affiliations": [{"id": "01", "name": "Apiary"}],
                },
                {"person_or_org": {"type": "organizational", "name": "Bees, Wasps and Sons"}},
            ],
            "contributors": [
                {
                    "person_or_org": {"type": "personal", "name": "Roj, P."},
                    "role": {"id": "datacurator"},
                },
            ],
            "languages": [{"id": "ces"}],
            "subjects": [{"subject": "bees"}, {"id": "x", "title": None}],
            "rights": [
                {
                    "id": "cc-by-4.0",
                    "title": {"en": "CC BY 4.0"},
                    "props": {"url": "https://creativecommons.org/licenses/by/4.0/legalcode"},
                },
            ],
            "related_identifiers": [
                {
                    "identifier": "10.5072/p",
                    "scheme": "doi",
                    "relation_type": {"id": "issupplementto"},
                },
            ],
            "version": "v3",
        },
        "files": {
            "enabled": True,
            "count": 2,
            "total_bytes": 10,
            "entries": {"b.csv": entry("b.csv"), "a/c.csv": entry("a/c.csv")},
        },
        "links": {"self_html": URL, "archive": f"{API}/files-archive"},
        **more,
    }


def listing(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"enabled": True, "entries": list(entries)}


SITE = Site(InvenioRDM(), URL, whole={API: record()})
LISTED = {
    API: record(files={"enabled": True}),
    f"{API}/files": listing(entry("a", links={"content": "/api/x"})),
}
SHAPES = {"listed": Site(InvenioRDM(), URL, whole=LISTED)}
KNOWN = [("https://data.caltech.edu/records/ab1cd-2ef34", None)]


def test_a_record_is_told_whole() -> None:
    api = Pages(SITE.whole)
    item = SITE.ask(api)
    assert api.asked == [API]
    assert item.platform_status == "success"
    assert item.platform_domain == "repository.example.org"
    assert (item.platform_id, item.version) == ("9zzzz-00001", "2bk3z-5tq81")
    assert [(f.path, f.size, f.md5, f.mimetype) for f in item.files] == [
        ("b.csv", 5, "0a" * 16, "text/csv"),
        ("a/c.csv", 5, "0a" * 16, "text/csv"),
    ]
    assert item.files[1].platform_url == f"{API}/files/a/c.csv/content"
    assert item.web_bundle_url == f"{API}/files-archive"


def test_a_description_has_all_that_datacite_asks_for() -> None:
    said = SITE.item().description
    assert said.creators == (JANA, Person(name="Bees, Wasps and Sons", organisation=True))
    roj = Person(name="Roj, P.", given="P.", family="Roj", role="DataCurator")
    assert said.contributors == (roj,)
    assert said.publisher == "Repository of the Test"
    assert (said.published, said.type) == ("2023-04", "Image")
    assert (said.language, said.subjects, said.version) == ("ces", ("bees",), "v3")
    assert said.licences == (
        Licence("CC BY 4.0", "CC-BY-4.0", "https://creativecommons.org/licenses/by/4.0/legalcode"),
    )
    assert said.related == (Related("10.5072/p", "DOI", "IsSupplementTo"),)
    assert said.doi == "10.5072/2bk3z-5tq81"


@pytest.mark.parametrize(
    "files",
    [
        {"enabled": True},
        {"enabled": True, "count": 3, "total_bytes": 15, "entries": {"a": entry("a")}},
        {"enabled": True, "count": 3, "total_bytes": 15, "entries": {}},
    ],
    ids=["no-list", "short-list", "empty-list"],
)
def test_a_record_without_all_files_is_followed_by_their_list(files: dict[str, Any]) -> None:
    documents = {
        API: record(files=files),
        f"{API}/files": listing(
            entry("a", links={"content": "/api/records/2bk3z-5tq81/files/a/content"}),
            entry("b"),
            entry("c"),
        ),
    }
    item = SITE.item(documents)
    assert [file.path for file in item.files] == ["a", "b", "c"]
    assert [file.platform_url for file in item.files] == [
        f"{API}/files/{name}/content" for name in "abc"
    ]


@pytest.mark.parametrize(
    ("files", "list_of_them", "status"),
    [
        ({"count": 3, "entries": {}}, listing(entry("a")), "incomplete-manifest"),
        ({"count": 1, "total_bytes": 6, "entries": {"a": entry("a")}}, None, "incomplete-manifest"),
        ({}, {"enabled": True}, "platform-bad-response"),
        ({}, 404, "platform-error"),
        ({}, 403, "platform-restricted"),
    ],
)
def test_a_list_that_is_short_is_no_manifest(
    files: dict[str, Any], list_of_them: Any, status: str
) -> None:
    documents = {API: record(files=files), f"{API}/files": list_of_them}
    assert SITE.refused(documents) == (status, "")


RESTRICTED = {"record": "public", "files": "restricted"}
EMBARGOED = RESTRICTED | {"embargo": {"active": True, "until": "2031-02-03"}}
HIDDEN = entry("a", access={"hidden": True})
CLOSED = cases(
    "given status until",
    [
        ({"files": {"enabled": False}}, "metadata-only", None),
        ({"files": {"enabled": True, "count": 0, "entries": {}}}, "empty-manifest", None),
        ({"access": RESTRICTED | {"embargo": {"active": False}}}, "platform-restricted", None),
        ({"access": EMBARGOED}, "platform-embargoed", "2031-02-03"),
        ({"files": {"entries": {"a": HIDDEN}}}, "platform-restricted", None),
    ],
    make=lambda given: {API: record(**given)},
)


def test_the_files_of_an_embargoed_record_are_not_asked_for() -> None:
    api = Pages({API: record(access=EMBARGOED, files={"enabled": True})})
    assert SITE.ask(api).platform_status == "platform-embargoed"
    assert api.asked == [API]


REFUSED = cases(
    "url given status code",
    [
        (URL, {"is_draft": True}, "platform-scope", "draft"),
        (URL, {"is_published": False}, "platform-scope", "draft"),
        (URL, {"id": "other-00000"}, "platform-scope", "wrong-version"),
        (f"{BASE}/uploads/2bk3z-5tq81", {}, "platform-scope", "draft"),
        (f"{URL}/files/a.csv", {}, "platform-scope", "file-level"),
        (f"{BASE}/communities/bees", {}, "platform-scope", "collection"),
        (f"{BASE}/about", {}, "platform-404", ""),
    ],
    make=lambda given: {API: record(**given)},
)


def test_the_id_of_all_versions_is_not_one_of_them() -> None:
    parent = f"{BASE}/api/records/9zzzz-00001"
    code = ("platform-scope", "work-level")
    assert SITE.refused({parent: record()}, f"{BASE}/records/9zzzz-00001") == code


@pytest.mark.parametrize("tail", ["/latest", "/versions/latest"])
def test_latest_asks_for_the_newest_version(tail: str) -> None:
    old = f"{BASE}/api/records/1aaaa-00001"
    api = Pages({f"{old}/versions/latest": record(), API: record(), old: record(id="1aaaa-00001")})
    item = SITE.ask(api, f"{BASE}/records/1aaaa-00001{tail}")
    assert (item.platform_id, item.version) == ("9zzzz-00001", "2bk3z-5tq81")
    assert item.files[0].platform_url == f"{API}/files/b.csv/content"
    assert old not in api.asked


def test_a_newest_version_without_an_id_is_none() -> None:
    newest = f"{BASE}/api/records/1aaaa-00001/versions/latest"
    code = ("platform-bad-response", "")
    assert SITE.refused({newest: {}}, f"{BASE}/records/1aaaa-00001/latest") == code


def test_the_documented_record_is_read() -> None:
    text = real_bytes("zenodo/inveniordm_native_doc.md").decode()
    start = text.index('{\n  "access"')
    raw = text[start : text.index("\n}\n", start) + 3]
    given = (
        raw.replace("{user-id}", "1").replace("  },\n}", "  }\n}").replace("{id}", "2bk3z-5tq81")
    )
    document = json.loads(given.replace("],\n  },", "]\n  },"))
    item = SITE.item({API: document})
    assert item.platform_status == "platform-restricted"
    assert [c.name for c in item.description.creators] == ["Brown, Troy", "Collins, Thomas"]
    assert item.description.creators[1].orcid == "0000-0002-1825-0097"
