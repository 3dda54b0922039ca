"""Parser for related identifiers of any form, in DataCite's terms."""

import re

from builder.filesets.item import Related
from builder.filesets.metadata import json_document
from functions.oai.render.datacite import RELATIONS

_BY_LOWER = {relation.lower(): relation for relation in RELATIONS}
_ARXIV = re.compile(r"arxiv:\s*(\d{4}\.\d{4,5}(?:v\d+)?|[a-z-]+(?:\.[A-Z]{2})?/\d{7})", re.I)
_HANDLE = re.compile(r"(?:https?://hdl\.handle\.net/|hdl:)(\S+/\S+)", re.I)


def relate(identifier: object, relation: object) -> Related | None:
    """Return the related identifier; None if it or its relation is unknown."""
    kind = _BY_LOWER.get(relation.lower()) if isinstance(relation, str) else None
    if kind is None or not isinstance(identifier, str):
        return None
    doi = json_document.doi(identifier)
    if doi:
        return Related(doi, "DOI", kind)
    for form, name in ((_ARXIV, "arXiv"), (_HANDLE, "Handle")):
        found = form.fullmatch(identifier.strip())
        if found:
            return Related(found[1] if name == "Handle" else f"arXiv:{found[1]}", name, kind)
    address = json_document.web(identifier)
    return Related(address, "URL", kind) if address else None
