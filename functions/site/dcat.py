"""What the archive is, for catalogues of data: DCAT 3 in JSON-LD, and schema.org's Dataset."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from functions.http import http_message
from functions.http.http_message import Reply
from functions.site.fields import is_web
from functions.site.page import PageRequest
from functions.snapshot import instant, layout

PATH = "dcat.jsonld"
_DAY = 86_400
"""Cache lifetime in seconds."""
_OAI_PMH = "https://www.openarchives.org/OAI/openarchivesprotocol.html"
_MEDIA = "https://www.iana.org/assignments/media-types/"
_ICEBERG = "https://iceberg.apache.org/spec/"
_PARQUET = "application/vnd.apache.parquet"
_CONTEXT: Mapping[str, str] = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


@dataclass(frozen=True, slots=True)
class _DataForm:
    """A form of the data files: title, address, what it conforms to, media type or standard."""

    title: str
    url: str
    standard: str
    format: str


def write_catalog(request: PageRequest) -> Reply:
    """Return the archive as a dcat:Catalog with one dcat:Dataset and its OAI-PMH service."""
    configuration, address = request.parts.configuration, request.address
    root, facts = f"{address.root}/{PATH}", _describe(request)
    service = f"{root}#oai-pmh"
    dataset = {
        "@id": f"{root}#dataset",
        "@type": "dcat:Dataset",
        **facts,
        "dcat:version": str(request.manifest.snapshot),
        "dcat:landingPage": {"@id": f"{address.root}/"},
        "dcat:contactPoint": [
            {"@type": "vcard:Kind", "vcard:hasEmail": {"@id": f"mailto:{mail}"}}
            for mail in configuration["repository.admin_emails"]
        ],
        "dcat:distribution": [*map(_describe_form, _list_forms(request))],
    }
    whole = {
        "@context": _CONTEXT,
        "@id": root,
        "@type": "dcat:Catalog",
        **facts,
        "dcat:dataset": [dataset],
    }
    if address.has_endpoint:
        distribution = {
            "@type": "dcat:Distribution",
            "dct:title": "OAI-PMH 2.0",
            "dcat:accessURL": {"@id": address.oai},
            "dcat:accessService": {"@id": service},
            "dcat:mediaType": {"@id": f"{_MEDIA}text/xml"},
        }
        dataset["dcat:distribution"] = [distribution, *dataset["dcat:distribution"]]
        whole["dcat:service"] = [
            {
                "@id": service,
                "@type": "dcat:DataService",
                "dct:title": f"{configuration['repository.name']}, OAI-PMH",
                "dcat:endpointURL": {"@id": address.oai},
                "dct:conformsTo": {"@id": _OAI_PMH},
                "dcat:servesDataset": {"@id": f"{root}#dataset"},
            }
        ]
    body = json.dumps(whole, ensure_ascii=False, indent=1).encode()
    headers = {"Cache-Control": http_message.withdrawable_control(_DAY)}
    return Reply(200, "application/ld+json", body, headers, http_message.document_digest(body))


def describe_dataset(request: PageRequest) -> dict[str, Any]:
    """Return the archive as schema.org's Dataset, for its first page."""
    configuration, manifest = request.parts.configuration, request.manifest
    address = request.address
    rights, publisher = configuration["rights.statement"], configuration["repository.publisher"]
    places = [("application/xml", address.oai)] if address.has_endpoint else []
    places += [(form.format, form.url) for form in _list_forms(request)]
    dataset: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "@id": f"{address.root}/",
        "name": configuration["repository.name"],
        "description": _summarise(request),
        "url": f"{address.root}/",
        "identifier": manifest.namespace,
        "license": rights if is_web(rights) else None,
        "publisher": {"@type": "Organization", "name": publisher} if publisher else None,
        "dateModified": instant.to_text(manifest.effective),
        "version": str(manifest.snapshot),
        "isAccessibleForFree": True,
        "distribution": [
            {"@type": "DataDownload", "encodingFormat": type_, "contentUrl": url}
            for type_, url in places
        ],
    }
    return {name: value for name, value in dataset.items() if value is not None}


def _describe(request: PageRequest) -> dict[str, Any]:
    """Return what is true of the catalogue and of its dataset: title, rights, publisher, dates."""
    configuration, manifest = request.parts.configuration, request.manifest
    rights, publisher = configuration["rights.statement"], configuration["repository.publisher"]
    facts: dict[str, Any] = {
        "dct:title": configuration["repository.name"],
        "dct:description": _summarise(request),
        "dct:identifier": manifest.namespace,
        "dct:modified": _stamp(instant.to_text(manifest.effective)),
    }
    if manifest.earliest is not None:
        facts["dct:issued"] = _stamp(instant.to_text(manifest.earliest))
    if publisher:
        facts["dct:publisher"] = {"@type": "foaf:Agent", "foaf:name": publisher}
    if rights:
        facts["dct:license" if is_web(rights) else "dct:rights"] = (
            {"@id": rights} if is_web(rights) else rights
        )
    return facts


def _summarise(request: PageRequest) -> str:
    """Return a sentence on what the archive holds, in the language of the page."""
    text = request.text
    kinds = [
        f"{text.find(f'kinds.{kind}', kind)}: {text.write_number(count)}"
        for kind, count in sorted(request.manifest.kinds().items())
        if count
    ]
    return text("dataset.description", kinds="; ".join(kinds))


def _describe_form(form: _DataForm) -> dict[str, Any]:
    distribution: dict[str, Any] = {
        "@type": "dcat:Distribution",
        "dct:title": form.title,
        "dcat:accessURL": {"@id": form.url},
        "dct:conformsTo": {"@id": form.standard},
    }
    if form.format == _PARQUET:
        distribution["dcat:mediaType"] = {"@id": f"{_MEDIA}{form.format}"}
    return distribution


def _list_forms(request: PageRequest) -> Iterator[_DataForm]:
    """Yield the forms of the data files, if they have a public address.

    Paths in Iceberg are addresses in the bucket, so that it is no use at another address.
    """
    configuration = request.parts.configuration
    root = str(configuration["identify.data_url"]).rstrip("/")
    if not root:
        return
    views = f"{root}/{request.manifest.views_key}"
    yield _DataForm("Parquet", root, views, _PARQUET)
    if configuration["publish.tables"] and root.startswith("s3://"):
        yield _DataForm("Apache Iceberg", f"{root}/{layout.TABLES}", _ICEBERG, _ICEBERG)


def _stamp(text: str) -> dict[str, str]:
    return {"@value": text, "@type": "xsd:dateTime"}
