"""Whatever Dataverse, Zenodo, InvenioRDM and registries answer, it comes to an item or a status."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.filesets.item import DatasetResource, IngestRequest
from builder.filesets.platforms.dataverse import Dataverse
from builder.filesets.platforms.detect import detect
from builder.filesets.platforms.invenio import InvenioRDM, Zenodo
from builder.filesets.protocols import FilesetError, FilesetPlatformHelper
from builder.filesets.status import STATUSES
from tests.builder.filesets import test_dataverse as dataverse
from tests.builder.filesets import test_inveniordm as inveniordm
from tests.builder.filesets import test_zenodo as zenodo
from tests.builder.filesets.pages import Pages
from tests.builder.filesets.test_junk import JUNK, holds, places, put
from tests.extent import examples

NOW = datetime(2026, 11, 22, tzinfo=UTC)
PLATFORMS: dict[str, tuple[FilesetPlatformHelper, str, dict[str, Any]]] = {
    **{
        f"zenodo-{name}": (Zenodo(), "https://zenodo.org/records/21", {f"{zenodo.API}21": shape})
        for name, shape in zip(("legacy", "autumn", "today", "native"), zenodo.SHAPES, strict=True)
    },
    "inveniordm": (InvenioRDM(), inveniordm.URL, {inveniordm.API: inveniordm.record()}),
    "inveniordm-listed": (
        InvenioRDM(),
        inveniordm.URL,
        {
            inveniordm.API: inveniordm.record(files={"enabled": True}),
            f"{inveniordm.API}/files": inveniordm.listing(
                inveniordm.entry("a", links={"content": "/api/x"})
            ),
        },
    ),
    "dataverse": (
        Dataverse(lambda: NOW),
        dataverse.URL,
        {
            dataverse.API: dataverse.dataset(
                dataverse.version(dataverse.TABLE, dataverse.file(1, "b"))
            )
        },
    ),
    "dataverse-version": (
        Dataverse(lambda: NOW),
        f"{dataverse.URL}&version=1.0",
        {
            dataverse.API: dataverse.dataset(dataverse.version(dataverse.TABLE)),
            dataverse.OLD: {"data": dataverse.version(dataverse.TABLE, number=(1, 0))},
        },
    ),
}


def spoilt(whole: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
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
@pytest.mark.parametrize("name", PLATFORMS)
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_a_document_with_junk_in_it_comes_to_an_item_or_to_a_status(
    name: str, data: st.DataObject
) -> None:
    helper, url, whole = PLATFORMS[name]
    try:
        found = helper.process_request(
            IngestRequest(url), DatasetResource(url=url), Pages(spoilt(whole, data))
        )
    except FilesetError as error:
        refused = error
    else:
        holds(found)
        return
    assert refused.status in STATUSES


@pytest.mark.parametrize("name", PLATFORMS)
def test_the_samples_are_whole(name: str) -> None:
    helper, url, whole = PLATFORMS[name]
    found = helper.process_request(IngestRequest(url), DatasetResource(url=url), Pages(whole))
    assert (found.platform_status, bool(found.files)) == ("success", True)
    holds(found)


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
            IngestRequest("10.5072/FK2/ABC"), Pages(spoilt(REGISTRIES, data)), lambda: NOW
        )
        name = helper.name
    except FilesetError as error:
        status = error.status
    assert status in STATUSES
    assert name in ("", "inveniordm", "dataverse")
