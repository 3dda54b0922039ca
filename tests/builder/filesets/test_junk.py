"""Whatever a platform answers, it comes to an item or to a status, and to nothing else."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.filesets.item import DatasetResource, FilesetPlatformItem, IngestRequest
from builder.filesets.platforms.archiveorg import ArchiveOrg
from builder.filesets.platforms.ckan import Ckan
from builder.filesets.platforms.detect import detect
from builder.filesets.platforms.dryad import Dryad
from builder.filesets.platforms.figshare import Figshare
from builder.filesets.platforms.hubs.github import GitHub
from builder.filesets.platforms.hubs.gitlab import GitLab
from builder.filesets.platforms.hubs.huggingface import HuggingFace
from builder.filesets.platforms.invenio import InvenioRDM, Zenodo
from builder.filesets.platforms.mendeley import Mendeley
from builder.filesets.platforms.osf import Osf
from builder.filesets.platforms.pangaea import Pangaea
from builder.filesets.platforms.repositories.dataone import DataOne
from builder.filesets.platforms.repositories.sciencebase import ScienceBase
from builder.filesets.protocols import FilesetError, FilesetPlatformHelper
from builder.filesets.status import STATUSES
from tests.builder.filesets import (
    samples,
    test_dataone,
    test_dataverse,
    test_github,
    test_gitlab,
    test_huggingface,
    test_inveniordm,
    test_mendeley,
    test_osf,
    test_sciencebase,
    test_zenodo,
)
from tests.builder.filesets.pages import Pages
from tests.extent import examples

PLATFORMS: dict[str, tuple[FilesetPlatformHelper, str, dict[str, Any]]] = {
    "figshare": (
        Figshare(),
        "https://figshare.com/articles/4711",
        {samples.FIGSHARE: samples.figshare()},
    ),
    "archiveorg": (
        ArchiveOrg(),
        "https://archive.org/details/honey-1903",
        {samples.ARCHIVEORG: samples.archiveorg()},
    ),
    "dryad": (
        Dryad(),
        "https://datadryad.org/dataset/doi:10.5061/dryad.h0n3y",
        {
            samples.DRYAD: samples.dryad(),
            samples.DRYAD_FILES: samples.dryad_page([samples.dryad_file(1)], 1),
        },
    ),
    "osf": (Osf(), "https://osf.io/hny12", test_osf.project()),
    "mendeley": (
        Mendeley(),
        "https://data.mendeley.com/datasets/h0n3ybees1",
        test_mendeley.dataset(),
    ),
    "pangaea": (
        Pangaea(),
        samples.PANGAEA,
        {f"{samples.PANGAEA}?format=metadata_jsonld": samples.pangaea()},
    ),
    "ckan": (Ckan(), "https://demo.ckan.org/dataset/honey-prices", {samples.CKAN: samples.ckan()}),
    "dataone": (DataOne(), test_dataone.URL, test_dataone.whole()),
    "sciencebase": (ScienceBase(), test_sciencebase.URL, test_sciencebase.WHOLE),
    "github": (GitHub(), test_github.URL, test_github.WHOLE),
    "gitlab": (GitLab(), test_gitlab.URL, test_gitlab.WHOLE),
    "huggingface": (HuggingFace(), test_huggingface.URL, test_huggingface.dataset()),
    "zenodo": (
        Zenodo(),
        "https://zenodo.org/records/21",
        {f"{test_zenodo.API}21": test_zenodo.record(test_zenodo.today())},
    ),
    "dataverse": (
        test_dataverse.PLATFORM,
        test_dataverse.URL,
        {
            test_dataverse.API: test_dataverse.dataset(
                test_dataverse.version(test_dataverse.TABLE, test_dataverse.file(12, "a.txt"))
            )
        },
    ),
}
SHAPES: dict[str, tuple[FilesetPlatformHelper, str, dict[str, Any]]] = {
    **{
        f"zenodo-{name}": (
            Zenodo(),
            "https://zenodo.org/records/21",
            {f"{test_zenodo.API}21": shape},
        )
        for name, shape in zip(
            ("legacy", "autumn", "today", "native"), test_zenodo.SHAPES, strict=True
        )
    },
    "inveniordm": (
        InvenioRDM(),
        test_inveniordm.URL,
        {test_inveniordm.API: test_inveniordm.record()},
    ),
    "inveniordm-listed": (
        InvenioRDM(),
        test_inveniordm.URL,
        {
            test_inveniordm.API: test_inveniordm.record(files={"enabled": True}),
            f"{test_inveniordm.API}/files": test_inveniordm.listing(
                test_inveniordm.entry("a", links={"content": "/api/x"})
            ),
        },
    ),
    "dataverse-version": (
        test_dataverse.PLATFORM,
        f"{test_dataverse.URL}&version=1.0",
        {
            test_dataverse.API: test_dataverse.dataset(
                test_dataverse.version(test_dataverse.TABLE)
            ),
            test_dataverse.OLD: {
                "data": test_dataverse.version(test_dataverse.TABLE, number=(1, 0))
            },
        },
    ),
}
"""Other forms of the answers of some platforms."""
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
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(one, (*way, key))


def put(value: Any, way: tuple[Any, ...], junk: Any) -> None:
    for key in way[:-1]:
        value = value[key]
    value[way[-1]] = junk


def spoil(whole: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
    """Return documents with junk in one to three places."""
    documents = copy.deepcopy(whole)
    ways = [way for way in places(documents) if way]
    for _ in range(data.draw(st.integers(1, 3))):
        junk = copy.deepcopy(data.draw(st.sampled_from(JUNK)))
        try:
            put(documents, data.draw(st.sampled_from(ways)), junk)
        except (LookupError, TypeError):
            continue  # the one before took the place away
    return documents


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*PLATFORMS, *SHAPES])
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_a_document_with_junk_in_it_comes_to_an_item_or_to_a_status(
    name: str, data: st.DataObject
) -> None:
    helper, url, whole = (PLATFORMS | SHAPES)[name]
    api = Pages(spoil(whole, data), frozenset(("datadryad.org",)))
    try:
        item = helper.process_request(IngestRequest(url), DatasetResource(url=url), api)
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


@pytest.mark.parametrize("name", [*PLATFORMS, *SHAPES])
def test_the_samples_are_whole(name: str) -> None:
    helper, url, whole = (PLATFORMS | SHAPES)[name]
    api = Pages(whole, frozenset(("datadryad.org",)))
    item = helper.process_request(IngestRequest(url), DatasetResource(url=url), api)
    assert (item.platform_status, item.platform_name) == ("success", helper.name)
    assert item.files
    holds(item)


NOW = datetime(2026, 11, 22, tzinfo=UTC)
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
        name = helper.name
    except FilesetError as error:
        status = error.status
    assert status in STATUSES
    assert name in ("", "inveniordm", "dataverse")
