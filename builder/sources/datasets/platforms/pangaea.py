"""PANGAEA: tables, files, lists of files and series of datasets, described by JSON-LD.

A table is one text file of unknown size. A dataset of files is a table with their names and MD5s. A
series consists of separate datasets; the series itself has only a zip of all of them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import first_at, wrap_part_errors
from builder.sources.datasets.platforms.metadata import licences, plain_text
from builder.sources.datasets.platforms.pages import schema_org
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

NAME = "pangaea"
DOMAIN = "doi.pangaea.de"
_HOSTS = frozenset((DOMAIN, "pangaea.de", "www.pangaea.de", "doi.pangaea.de"))
_ID = re.compile(r"/?(?:10\.1594/pangaea\.)(?P<id>\d{1,12})/?", re.I)
_PREFIX = "10.1594/pangaea."
_SERIES = "datasets"
"""Unit of the size of a series."""
_NAMED, _HASH = "binary", "binary (hash)"
"""Columns of a table that lists files, in lower case: names and MD5s."""


class Pangaea(json_document.HostedPlatform):
    """PANGAEA."""

    facts = PlatformFacts(
        NAME,
        "host, DOI",
        "tables as text of unknown size; lists of files",
    )
    hosts = _HOSTS
    dois = re.compile(re.escape(_PREFIX) + ".*")

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the dataset with its table or its files. Raises FilesetError."""
        path = unquote(json_document.path(resource.url))
        by_url = _ID.fullmatch(path) if json_document.host(resource.url) in _HOSTS else None
        match = by_url or _ID.fullmatch(resource.doi or "")
        if match is None:
            raise ScopeError(f"{resource.url} is not a dataset", "no-dataset")
        id_ = match["id"]
        page = f"https://{DOMAIN}/10.1594/PANGAEA.{id_}"
        about = json_document.mapping(
            api.document(f"{page}?format=metadata_jsonld"), "the dataset's metadata"
        )
        doi = first_at(about, "identifier @id", json_document.doi)
        if doi != f"{_PREFIX}{id_}":
            raise FilesetError("platform-error", f"requested {_PREFIX}{id_}, received {doi}")
        if json_document.text(json_document.inner(about, "size").get("unitText")) == _SERIES:
            raise ScopeError("it is a series of datasets", "collection")
        access = json_document.text(about.get("conditionsOfAccess")) or ""
        is_open = about.get("isAccessibleForFree") is not False
        is_open = is_open and access.lower() in ("", "unrestricted")
        return FilesetPlatformItem(
            platform_name=NAME,
            platform_status="success" if is_open else "platform-restricted",
            platform_domain=DOMAIN,
            platform_id=id_,
            manifest=tuple(_files(api, id_, about)) if is_open else None,
            web_base_url=page,
            detail="" if is_open else f"its access is {access or 'not free'}",
            description=_describe(about, doi),
        )


def _files(api: Api, id_: str, about: Mapping[str, Any]) -> Iterator[FilesetManifestFile]:
    """Yield the files, or the table as a file. Raises FilesetError."""
    downloads = [
        (url, json_document.text(download.get("encodingFormat")))
        for download in json_document.entries(about.get("distribution"))
        if (url := json_document.web(download.get("contentUrl")))
    ]
    table = next((url for url, _ in downloads if "format=textfile" in url), None)
    if table is None:
        for url, kind in downloads:
            name = unquote(json_document.path(url).rpartition("/")[2])
            path = f"PANGAEA.{id_}.zip" if "format=zip" in url else name
            yield FilesetManifestFile(
                path=json_document.name(path, "a file"), mimetype=kind, platform_url=url
            )
        return
    # A table may list files only if one of its parameters is a file.
    measured = json_document.entries(about.get("variableMeasured"))
    labels = [(json_document.text(column.get("name")) or "").lower() for column in measured]
    has_files = any(label.startswith(("binary", "file content")) for label in labels)
    names = _list_files(api, table) if has_files or not labels else None
    if names is None:
        yield FilesetManifestFile(
            path=f"PANGAEA.{id_}.tab", mimetype="text/tab-separated-values", platform_url=table
        )
        return
    for name, md5 in names:
        url = f"https://download.pangaea.de/dataset/{id_}/files/{quote(name)}"
        yield FilesetManifestFile(path=name, md5=md5, platform_url=url)


def _list_files(api: Api, table: str) -> Sequence[tuple[str, str | None]] | None:
    """Return the names and MD5s of the files that a table lists; None if it lists none.

    Raises FilesetError, incomplete-manifest if a row ends before the last of these columns.
    """
    with wrap_part_errors():
        answer = api.answer(table, accept="text/tab-separated-values, text/plain;q=0.9")
    lines = iter(answer.body.decode("utf-8", "replace").replace("\r\n", "\n").split("\n"))
    commented = False
    for line in lines:
        commented = commented or line.lstrip().startswith("/*")
        if not commented:
            break
        commented = "*/" not in line
    else:
        return None
    columns = [column.strip().lower() for column in line.split("\t")]
    if _NAMED not in columns:
        return None
    named, hashed = ([n for n, c in enumerate(columns) if c == name] for name in (_NAMED, _HASH))
    files: list[tuple[str, str | None]] = []
    for row in (line.split("\t") for line in lines if line.strip()):
        if len(row) <= max(*named, *hashed):
            raise FilesetError("incomplete-manifest", f"a row of {table} is cut: {row[0][:80]}")
        for number, at in enumerate(named):
            md5 = row[hashed[number]] if len(hashed) == len(named) else None
            if name := row[at].strip():
                files.append((name, json_document.digest(md5, "md5")))
    return files


def _describe(about: Mapping[str, Any], doi: str) -> Description:
    return Description(
        title=plain_text(about.get("name")),
        creators=tuple(schema_org.creators(about)),
        publisher=json_document.text(json_document.inner(about, "publisher").get("name"))
        or "PANGAEA",
        published=json_document.day(about.get("datePublished")),
        abstract=first_at(about, "abstract description", plain_text),
        subjects=json_document.texts(about.get("keywords"), apart=";"),
        language=json_document.text(about.get("inLanguage")),
        licences=licences(url=about.get("license")),
        doi=doi,
        related=schema_org.relations(about, {"citation": "References", "isPartOf": "IsPartOf"}),
    )
