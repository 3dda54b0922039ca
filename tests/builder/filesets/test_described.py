"""What each platform tells is enough for DataCite: nothing that it asks for is unavailable."""

from dataclasses import replace

import pytest
from lxml import etree

from builder.filesets.item import DatasetResource, FilesetPlatformItem, IngestRequest
from builder.filesets.platforms import figshare_article
from functions.oai.render import datacite
from tests.builder.filesets.outcomes import outcome
from tests.builder.filesets.pages import Pages
from tests.builder.filesets.test_formats import made, told
from tests.builder.filesets.test_junk import PLATFORMS


def item(name: str) -> FilesetPlatformItem:
    helper, url, documents = PLATFORMS[name]
    api = Pages(documents, frozenset(("datadryad.org",)))
    return helper.process_request(IngestRequest(url), DatasetResource(url=url), api)


def record(name: str, prefix: str) -> etree._Element:
    return made(outcome(item(name)), prefix)


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_record_of_each_platform_has_all_that_datacite_asks_for(name: str) -> None:
    found = told(record(name, "oai_datacite"))
    assert datacite.UNAVAILABLE not in str(found)
    assert found["creatorName"]
    assert found["publicationYear"] != [datacite.NO_YEAR]
    # DataONE's index has no licences.
    fields = ["title", "publisher", "description", "subject"] + ["rights"] * (name != "dataone")
    for field in fields:
        assert found[field][0], field
    known = item(name).description
    assert len(found["relatedIdentifier"] if known.related else []) == len(known.related)
    assert known.type in datacite.TYPES


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_record_of_each_platform_is_valid_without_a_description(name: str) -> None:
    bare = replace(item(name), description=replace(item(name).description, title=None, creators=()))
    for prefix in ("oai_dc", "oai_datacite"):
        assert len(made(outcome(bare), prefix))


def test_types_are_of_those_that_datacite_has() -> None:
    assert set(figshare_article.TYPES.values()) <= datacite.TYPES
