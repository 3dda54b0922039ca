"""Collections as records: what the formats say of them, and what their schema asks."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from functions.kinds import collections
from tests.functions.oai.client import Client
from tests.functions.oai.conftest import holding
from tests.functions.oai.validity import DC
from tests.functions.reading.memory import Item, capture

HARVEST = "{urn:x-sheaf:harvest:1}"
SCHEMA = etree.XMLSchema(
    etree.parse(Path(__file__).parents[3] / "templates" / "schemas" / "harvest.xsd")
)
NAME = "oai:example.org:collection,news"
WHOLE: dict[str, Any] = {
    "name": "News <& more>",
    "set_spec": "collection:news",
    "description": ["What we say", 'what "they" say'],
    "operator": ["Jana"],
    "software": ["Heritrix"],
    "part_of": ["serials"],
    "first_date": "2007-11",
    "last_date": "2007-11-29",
    "captures": 3,
    "bytes": 20,
    "files": 2,
    "file_bytes": 300,
    "host": {"different": 1, "most": [{"value": "a.cz", "captures": 3, "bytes": 20}]},
    "media_type": {
        "different": 2,
        "most": [
            {"value": "text/html", "captures": 2, "bytes": 20},
            {"value": None, "captures": 1, "bytes": 0},
        ],
    },
    "status": {"different": 1, "most": [{"value": "200", "captures": 3, "bytes": 20}]},
}


def client(document: dict[str, Any]) -> Client:
    assert document.keys() == {c.name for c in collections.COLUMNS}
    items = {
        NAME: Item(("collection:news",), "collection", document),
        "oai:example.org:a": capture("http://a.cz/", "collection:news"),
    }
    return Client(holding(items))


def harvest(document: dict[str, Any]) -> etree._Element:
    page = client(document).get("GetRecord", identifier=NAME, metadataPrefix="harvest")
    (found,) = page.root.iter(HARVEST + "harvest")
    SCHEMA.assertValid(etree.fromstring(etree.tostring(found)))
    return found


def test_every_value_of_a_document_is_told() -> None:
    found = harvest(WHOLE)
    texts = {e.tag.removeprefix(HARVEST): [] for e in found}
    for element in found:
        texts[element.tag.removeprefix(HARVEST)].append(element.text)
    assert texts | {"counts": []} == {
        "name": ["News <& more>"],
        "set": ["collection:news"],
        "description": ["What we say", 'what "they" say'],
        "operator": ["Jana"],
        "software": ["Heritrix"],
        "partOf": ["serials"],
        "firstDate": ["2007-11"],
        "lastDate": ["2007-11-29"],
        "captures": ["3"],
        "bytes": ["20"],
        "files": ["2"],
        "fileBytes": ["300"],
        "counts": [],
    }
    counts = {
        c.get("by"): [(o.get("value"), o.get("captures"), o.get("bytes")) for o in c]
        for c in found.iter(HARVEST + "counts")
    }
    assert counts == {
        "mediaType": [("text/html", "2", "20"), (None, "1", "0")],
        "host": [("a.cz", "3", "20")],
        "status": [("200", "3", "20")],
    }


def test_a_collection_in_dublin_core() -> None:
    page = client(WHOLE).get("GetRecord", identifier=NAME, metadataPrefix="oai_dc")
    found = {
        e.tag.removeprefix(DC): e.text or "" for e in page.root.iter() if str(e.tag).startswith(DC)
    }
    assert found["title"] == "News <& more>"
    assert found["type"] == "Collection"
    assert found["date"] == "2007-11/2007-11-29"
    assert found["identifier"] == NAME


TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1)
COUNTS = st.lists(
    st.fixed_dictionaries(
        {"value": st.none() | TEXT, "captures": st.integers(1), "bytes": st.integers(0)}
    ),
    min_size=1,
).map(lambda most: {"different": len(most), "most": most})


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "name": TEXT,
            "description": st.lists(TEXT),
            "operator": st.lists(TEXT),
            "host": COUNTS,
            "media_type": COUNTS,
        }
    )
)
def test_any_document_meets_the_schema(some: dict[str, Any]) -> None:
    harvest({**WHOLE, **some})


@pytest.mark.parametrize("lacking", ["first_date", "operator"])
def test_what_is_not_known_is_left_out(lacking: str) -> None:
    empty: Any = [] if isinstance(WHOLE[lacking], list) else None
    document = {**WHOLE, lacking: empty, **({"last_date": None} if empty is None else {})}
    found = harvest(document)
    assert found.find(HARVEST + {"first_date": "firstDate"}.get(lacking, lacking)) is None
