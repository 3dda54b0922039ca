"""Harvests with the module `oaipmh`. See tests/e2e/test_harvesters.py."""

import json
import sys
from datetime import datetime
from typing import Any

from oaipmh.client import Client
from oaipmh.error import NoRecordsMatchError
from oaipmh.metadata import MetadataRegistry, oai_dc_reader

registry = MetadataRegistry()
registry.registerReader("oai_dc", oai_dc_reader)


def given(selection: dict[str, str]) -> dict[str, Any]:
    names = {"from": "from_"}
    return {
        names.get(name, name): value if name == "set" else datetime.fromisoformat(value[:-1])
        for name, value in selection.items()
    }


def shown(metadata: Any) -> Any:
    """Return the titles, or with a second argument all elements."""
    return metadata.getMap() if sys.argv[2:] else metadata.getField("title")


def harvested(url: str, selection: dict[str, Any]) -> list[list[Any]]:
    try:
        return [
            [h.identifier(), bool(h.isDeleted()), h.setSpec(), m and shown(m)]
            for h, m, _ in Client(url, registry).listRecords(metadataPrefix="oai_dc", **selection)
        ]
    except NoRecordsMatchError:
        return []


url = sys.argv[1]
lists = [harvested(url, given(selection)) for selection in json.load(sys.stdin)]
sets = [row[0] for row in Client(url, registry).listSets()]
json.dump({"lists": lists, "sets": sets}, sys.stdout)
