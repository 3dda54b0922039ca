"""RO-Crate 1.2: the description of a dataset and its files as JSON-LD. Pure.

The root has what the specification requires of it: name, description, licence and a date. What the
platform did not tell is said to be unknown; its date is then that of the archiving.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from functions.kinds.datasets import datacite
from functions.snapshot.oai_name import is_uri

FILE = "ro-crate-metadata.json"
"""Name of the description, in the root of the crate."""

_VERSION = "https://w3id.org/ro/crate/1.2"
_WEB = ("http://", "https://")
_ORCID = "https://orcid.org/"
_SPDX = "https://spdx.org/licenses/"

Entity = dict[str, Any]


def describe(
    fields: Mapping[str, Any], identifier: str, files: Iterable[Entity], archived: str, by: str
) -> bytes:
    """Return the description of a dataset from the fields of its record, with its `files`.

    `archived` is the day of its archiving (YYYY-MM-DD), `by` the name of the archive.
    """
    missing = ", ".join(file["path"] for file in fields.get("withheld") or ())
    comment = {
        "@id": "#missing",
        "@type": "Comment",
        "text": f"Files of the dataset that are not archived, and so not here: {missing}",
    }
    graph: dict[str, Entity] = {}
    parts = [_refer(graph, file) for file in files]  # the first ones in the graph
    root = {
        "@id": "./",
        "@type": "Dataset",
        **_describe_root(graph, fields, identifier, archived),
        "sdPublisher": _refer(graph, {"@id": "#archive", "@type": "Organization", "name": by}),
        "hasPart": parts,
        "comment": missing and _refer(graph, comment),
    }
    descriptor = {
        "@id": FILE,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": _VERSION},
    }
    document = {
        "@context": f"{_VERSION}/context",
        "@graph": [descriptor, _drop_empty(root), *graph.values()],
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _describe_root(
    graph: dict[str, Entity], fields: Mapping[str, Any], identifier: str, archived: str
) -> Entity:
    doi = datacite.doi_url(fields.get("doi"))
    name = fields.get("title") or fields.get("doi") or identifier
    publisher = fields.get("publisher")
    identifiers = [{"@id": "#identifier", "name": "OAI identifier", "value": identifier}]
    if doi:
        identifiers.insert(0, {"@id": doi, "name": "DOI", "value": fields["doi"], "url": doi})
    return {
        "name": name,
        "description": fields.get("abstract") or f"The files of the dataset {name}.",
        "datePublished": datacite.issue_date(fields.get("published")) or archived,
        "license": _list_licences(graph, fields.get("licences")),
        "identifier": [_refer(graph, {"@type": "PropertyValue", **i}) for i in identifiers],
        "cite-as": doi,
        "url": _web_address(fields.get("url")),
        "version": fields.get("edition") or fields.get("version"),
        "author": _list_people(graph, fields.get("creators"), "creator"),
        "contributor": _list_people(graph, fields.get("contributors"), "contributor"),
        "publisher": publisher
        and _refer(graph, {"@id": "#publisher", "@type": "Organization", "name": publisher}),
        "keywords": list(fields.get("subjects") or ()),
        "inLanguage": datacite.language_tag(fields.get("language")),
    }


def _list_licences(graph: dict[str, Entity], licences: datacite.Values) -> Any:
    """Return references to licences; without any, the text that a reader is to know."""
    references = []
    for number, licence in enumerate(datacite.rights_of(licences), 1):
        spdx = (
            _SPDX + licence["spdx"] if licence["spdx"] and is_uri(_SPDX + licence["spdx"]) else ""
        )
        entity = {
            "@id": licence["url"] or spdx or f"#licence-{number}",
            "@type": "CreativeWork",
            "name": licence["text"],
            "description": licence["text"],
            "identifier": licence["spdx"],
        }
        references.append(_refer(graph, entity))
    return references or "The platform names no licence."


def _list_people(
    graph: dict[str, Entity], people: datacite.Values, role: str
) -> list[Mapping[str, str]]:
    references = []
    for number, person in enumerate(datacite.people(people), 1):
        entity = {
            "@id": _ORCID + person["orcid"] if person["orcid"] else f"#{role}-{number}",
            "@type": "Organization" if person["kind"] == "Organizational" else "Person",
            "name": person["name"],
            "givenName": person["given"],
            "familyName": person["family"],
            "affiliation": [
                _refer(graph, {"@id": f"#{quote(name)}", "@type": "Organization", "name": name})
                for name in person["affiliations"]
            ],
        }
        references.append(_refer(graph, entity))
    return references


def describe_file(
    path: str,
    name: str,
    size: int | None,
    sha256: str | None,
    media_type: str | None = None,
    url: str | None = None,
) -> Entity:
    """Return the entity of a file, by its path, or its URL if it is elsewhere.

    `name` is the name that people know, `url` the address that it was downloaded from.
    """
    return {
        "@id": path if path.startswith(_WEB) else quote(path, safe="/-._~!$&'()*+,;=:@"),
        "@type": "File",
        "name": name,
        "contentSize": None if size is None else str(size),
        "encodingFormat": media_type,
        "sha256": sha256,
        "contentUrl": _web_address(url),
    }


def _web_address(url: str | None) -> str | None:
    return url if url and url.startswith(_WEB) and is_uri(url) else None


def _refer(graph: dict[str, Entity], entity: Entity) -> Mapping[str, str]:
    """Add an entity unless it is there, and return a reference to it."""
    graph.setdefault(entity["@id"], _drop_empty(entity))
    return {"@id": entity["@id"]}


def _drop_empty(entity: Mapping[str, Any]) -> Entity:
    """Return an entity without empty values, and with a single value instead of a list of one."""
    return {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value
        for name, value in entity.items()
        if value not in (None, "", [])
    }
