"""What holds of every platform: it knows its own, tells it whole, and no answer breaks it.

Each module of a platform has a SITE, with the answers about a dataset of its own. Its other tables
are optional: SHAPES (sites that answer otherwise), FORMS (other names of the same dataset), KNOWN
(names of others), REFUSED and CLOSED.
"""

import copy
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from builder.sources.datasets.item import DatasetResource, FilesetPlatformItem, IngestRequest
from builder.sources.datasets.platforms import figshare
from builder.sources.datasets.platforms.detect import LAST, PLATFORMS, detect, probe
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.status import STATUSES
from functions.kinds.datasets import datacite
from tests.builder.sources.datasets.outcomes import failed, outcome
from tests.builder.sources.datasets.pages import NOW, Pages, Site, item_of
from tests.builder.sources.datasets.samples import ckan
from tests.builder.sources.datasets.server import Server, json_of
from tests.builder.sources.datasets.test_formats import made, told
from tests.builder.sources.datasets.world import world
from tests.extent import examples

GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "datasets.md"
MODULES = [
    import_module(f"tests.builder.sources.datasets.test_{name}")
    for name in (
        "archiveorg_items",
        "ckan",
        "dataone",
        "dataverse",
        "dryad",
        "figshare",
        "github",
        "gitlab",
        "huggingface",
        "inveniordm",
        "mendeley",
        "osf",
        "pangaea",
        "sciencebase",
        "zenodo",
    )
]
SITES: dict[str, Site] = {module.SITE.platform.facts.name: module.SITE for module in MODULES}
SHAPES: dict[str, Site] = SITES | {
    f"{module.SITE.platform.facts.name}-{name}": site
    for module in MODULES
    for name, site in getattr(module, "SHAPES", {}).items()
}
every_site = pytest.mark.parametrize("name", SITES)
every_shape = pytest.mark.parametrize("name", SHAPES)


def table(*names: str) -> list[Any]:
    """Return the cases of all platforms, each with its platform's site."""
    return [
        pytest.param(module.SITE, case, id=f"{module.SITE.platform.facts.name}-{name}-{number}")
        for module in MODULES
        for name in names
        for number, case in enumerate(getattr(module, name, ()))
    ]


@pytest.mark.parametrize(("site", "case"), table("REFUSED"))
def test_what_is_no_dataset_in_one_version_is_refused(site: Site, case: dict[str, Any]) -> None:
    refusal = site.refused(case.get("documents", {}), case.get("url"), case.get("doi"))
    assert refusal == (case["status"], case.get("code", ""))


@pytest.mark.parametrize(("site", "case"), table("CLOSED"))
def test_what_gives_no_files_is_told_with_its_metadata(site: Site, case: dict[str, Any]) -> None:
    item = site.item(case["documents"])
    assert (item.platform_status, item.until) == (case["status"], case.get("until"))
    assert (item.files, item.manifest or ()) == ((), item.withheld)
    assert item.description.title or item.description.creators


def owners(url: str, doi: str | None, body: bytes | None = None) -> list[str]:
    """Return the platforms that take a URL for their own."""
    resource = DatasetResource(url=url, doi=doi, body=body)
    return [platform.facts.name for platform in PLATFORMS if platform.match_request(resource)]


@pytest.mark.parametrize(("site", "form"), table("FORMS", "KNOWN"))
def test_a_dataset_is_of_one_platform(site: Site, form: tuple[str, str | None]) -> None:
    assert owners(*form) == [site.platform.facts.name]


@every_site
def test_the_page_of_a_dataset_is_of_its_platform(name: str) -> None:
    """Hosts that no list names are known by what they answer."""
    found = owners(SITES[name].page, None)
    assert found in ([name], []) if name in ("inveniordm", "dataverse") else found == [name]


@pytest.mark.parametrize(("site", "form"), table("FORMS"))
def test_a_dataset_is_the_same_by_each_of_its_names(
    site: Site, form: tuple[str, str | None]
) -> None:
    by_page, by_form = (Pages(site.whole, site.tokens) for _ in range(2))
    assert site.ask(by_form, *form) == site.ask(by_page)
    assert len(by_form.asked) == len(by_page.asked)


@pytest.mark.parametrize(
    "url",
    ["https://example.org/", "https://example.org/dataset/honey", "https://doi.org/10.1234/x"],
)
def test_a_page_of_nobody_is_of_none(url: str) -> None:
    assert owners(url, "10.1234/x", b"<html>honey</html>") == []


def test_no_two_platforms_have_one_name() -> None:
    names = {platform.facts.name for platform in (*PLATFORMS, LAST)}
    assert len(names) == len(PLATFORMS) + 1
    assert names == SITES.keys() | {LAST.facts.name}


def test_the_guide_has_the_rows_of_the_platforms_in_the_order_in_which_they_are_tried() -> None:
    platforms = (*PLATFORMS, LAST)
    rows = [platform.facts.row for platform in platforms]
    lines = GUIDE.read_text("utf-8").splitlines()
    first = lines.index(rows[0])
    assert lines[first : first + len(rows) + 1] == [*rows, ""]


@pytest.mark.parametrize("root", ["", "/data/cs"])
def test_a_ckan_that_no_list_names_is_shown_by_its_api(root: str) -> None:
    url = f"https://data.example.cz{root}/dataset/honey-prices"
    api = f"https://data.example.cz{root}/api/3/action/package_show?id=honey-prices"
    assert probe(DatasetResource(url=url), Pages({api: ckan()})) == "ckan"
    assert probe(DatasetResource(url=url), Pages({api: {"success": False}})) is None
    assert probe(DatasetResource(url=url), Pages({api: {"success": True, "result": []}})) is None
    assert probe(DatasetResource(url=f"{url}/resource/r-1"), Pages({api: ckan()})) is None


@pytest.mark.parametrize("name", sorted(SITES))
def test_a_dataset_is_detected_and_read_over_the_wire(
    name: str, server: Server, tmp_path: Path
) -> None:
    """And its host alone is shown the token that it needs."""
    site = SITES[name]
    there = world(server, tmp_path, fileset__tokens=dict.fromkeys(site.tokens, "honey"))
    for url, answer in site.whole.items():
        server.add(url, json_of(answer))
    assert item_of(there.api(), site.page) == site.item()
    assert {one.host for one in server.asked() if "authorization" in one.headers} == site.tokens


def record(item: FilesetPlatformItem, prefix: str) -> etree._Element:
    """Return the record of a dataset whose files are all kept, or withheld."""
    return made(outcome(item) if item.files else failed(item.platform_status, item=item), prefix)


@every_site
def test_a_record_of_each_platform_has_all_that_datacite_asks_for(name: str) -> None:
    item = SITES[name].item()
    found = told(record(item, "oai_datacite"))
    assert "(:unav)" not in str(found)
    assert found["creatorName"]
    assert found["publicationYear"] != [datacite.NO_YEAR]
    # DataONE's index has no licences.
    fields = ["title", "publisher", "description", "subject"] + ["rights"] * (name != "dataone")
    for field in fields:
        assert found[field][0], field
    known = item.description
    assert len(found["relatedIdentifier"] if known.related else []) == len(known.related)
    assert known.type in datacite.TYPES


@every_site
def test_a_record_of_each_platform_is_valid_without_a_description(name: str) -> None:
    item = SITES[name].item()
    bare = replace(item, description=replace(item.description, title=None, creators=()))
    for prefix in ("oai_dc", "oai_datacite"):
        assert len(record(bare, prefix))


def test_types_are_of_those_that_datacite_has() -> None:
    assert set(figshare.TYPES.values()) <= datacite.TYPES


JUNK: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    10**400,
    "",
    " ",
    "\ud800",
    "\x00",
    "a\nb",
    "../../x",
    "é" * 300,
    [],
    [None],
    [[]],
    ["x"],
    {},
    {"a": {}},
    [{}],
    {"href": []},
    "https://[::1",
    "https://a b/c",
]


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value of a document, the document's own first."""
    yield way
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*way, key))


def put(value: Any, way: tuple[Any, ...], junk: Any) -> None:
    for key in way[:-1]:
        value = value[key]
    value[way[-1]] = junk


def spoil(whole: Any, data: st.DataObject, above: int = 0) -> Any:
    """Return documents with junk in one to three places, all below so many levels."""
    documents = copy.deepcopy(whole)
    ways = [way for way in places(documents) if len(way) > above]
    for _ in range(data.draw(st.integers(1, 3))):
        junk = copy.deepcopy(data.draw(st.sampled_from(JUNK)))
        with suppress(LookupError, TypeError):  # the one before took the place away
            put(documents, data.draw(st.sampled_from(ways)), junk)
    return documents


@pytest.mark.sampled(3)
@every_shape
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_a_document_with_junk_in_it_comes_to_an_item_or_to_a_status(
    name: str, data: st.DataObject
) -> None:
    try:
        item = SHAPES[name].item(spoil(SHAPES[name].whole, data))
    except FilesetError as error:
        refusal = error
    else:
        holds(item)
        return
    assert refusal.status in STATUSES


def holds(found: FilesetPlatformItem) -> None:
    assert found.platform_status in STATUSES
    assert found.platform_id
    assert found.platform_domain
    for file in found.manifest or ():
        assert isinstance(file.path, str)
        assert file.path
        file.path.encode("utf-8")
        assert file.size is None or file.size >= 0
        assert file.platform_url or file.status == "withheld"
    for licence in found.description.licences:
        assert licence.name or licence.url
    for person in found.description.creators:
        assert person.name
        person.name.encode("utf-8")


@every_shape
def test_the_samples_are_whole(name: str) -> None:
    site = SHAPES[name]
    item = site.item()
    assert (item.platform_status, item.platform_name) == (site.status, site.platform.facts.name)
    assert item.files or site.status != "success"
    assert item.manifest
    holds(item)


REGISTRIES: dict[str, Any] = {
    "https://doi.org/api/handles/10.5072/FK2/ABC": {
        "values": [
            {"index": 2, "type": "URL", "data": {"value": "https://new.example.org/records/ab"}},
            {"index": 1, "type": "EMAIL", "data": {"value": "https://no.example.org/"}},
        ]
    },
    "https://api.datacite.org/dois/10.5072/FK2/ABC": {
        "data": {"attributes": {"url": "https://new.example.org/records/ab"}}
    },
    "https://new.example.org/api/records/ab": {"id": "ab", "metadata": {}, "links": {"self": "x"}},
    "https://new.example.org/api/info/version": {"status": "OK", "data": {"version": "6.2"}},
}


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_registries_and_probes_with_junk_in_them_come_to_a_platform_or_to_a_status(
    data: st.DataObject,
) -> None:
    status, name = "success", ""
    try:
        _, helper = detect(
            IngestRequest("10.5072/FK2/ABC"), Pages(spoil(REGISTRIES, data)), lambda: NOW
        )
        name = helper.facts.name
    except FilesetError as error:
        status = error.status
    assert status in STATUSES
    assert name in ("", "inveniordm", "dataverse")
