"""The first page: what the archive holds, and since when. And how to harvest it."""

from typing import Any

from functions.oai.request import (
    GET_RECORD,
    IDENTIFY,
    LIST_FORMATS,
    LIST_IDENTIFIERS,
    LIST_RECORDS,
    LIST_SETS,
)
from functions.site.page import PageRequest, SitePage


def show(request: PageRequest) -> SitePage:
    """Return the first page."""
    manifest = request.manifest
    kinds = {kind: n for kind, n in sorted(manifest.kinds().items()) if n}
    sequences = manifest.sequences
    values: dict[str, Any] = {
        "kinds": kinds,
        "records": sum(kinds.values()) - manifest.tombstones,
        "deleted": manifest.tombstones,
        "set_count": manifest.sets,
        "earliest": manifest.earliest,
        "latest": sequences[-1].effective if sequences else manifest.effective,
        "publishes": len(sequences),
        "has_templates": bool(kinds.get("template")),
    }
    return SitePage("overview.html", request.parts.configuration["repository.name"], values)


def show_harvesting(request: PageRequest) -> SitePage:
    """Return the page on harvesting: requests of each verb, formats, and where the data is."""
    address, parts, manifest = request.address, request.parts, request.manifest
    dc = {"metadataPrefix": "oai_dc"}
    verbs = [
        (IDENTIFY, {}), (LIST_FORMATS, {}), (LIST_SETS, {}), (LIST_IDENTIFIERS, dc),
        (LIST_RECORDS, dc),
    ]  # fmt: skip
    requests = [
        (verb, address.answer(verb, **given), address.request(verb, **given))
        for verb, given in verbs
    ]
    values = {
        "requests": requests,
        "get_record": GET_RECORD,
        "list_url": address.request(LIST_RECORDS, **dc),
        "formats": parts.formats.formats_for(manifest.kinds()),
        "serves_content": request.serves_content,
        "root": address.root,
        "data_url": parts.configuration["identify.data_url"],
    }
    return SitePage("harvest.html", request.text("harvest.title"), values)
