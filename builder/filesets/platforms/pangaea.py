"""PANGAEA: tables, files, lists of files and series of datasets, described by JSON-LD.

A table is one text file of unknown size. A dataset of files is a table with their names and MD5s. A
series consists of separate datasets; the series itself has only a zip of all of them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from builder.filesets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.filesets.platforms import json_document
from builder.filesets.platforms.hosted import HostedPlatform
from builder.filesets.platforms.json_document import wrap_part_errors
from builder.filesets.platforms.metadata import licences, plain_text
from builder.filesets.platforms.pages import schema_org
from builder.filesets.protocols import Api, FilesetError, PlatformFacts

NAME = "pangaea"
FACTS = PlatformFacts(
    NAME,
    "host, DOI",
    "tables as text of unknown size; lists of files",
)
DOMAIN = "doi.pangaea.de"
_HOSTS = frozenset((DOMAIN, "pangaea.de", "www.pangaea.de", "doi.pangaea.de"))
_ID = re.compile(r"/?(?:10\.1594/pangaea\.)(?P<id>\d{1,12})/?", re.I)
_PREFIX = "10.1594/pangaea."
_SERIES = "datasets"
"""Unit of the size of a series."""
_NAMED, _HASH = "binary", "binary (hash)"
"""Columns of a table that lists files, in lower case: names and MD5s."""
_RELATIONS = {"citation": "References", "isPartOf": "IsPartOf"}
_ACCEPT = "text/tab-separated-values, text/plain;q=0.9"


class Pangaea(HostedPlatform):
    """PANGAEA."""

    facts = FACTS
    hosts = _HOSTS
    dois = re.compile(re.escape(_PREFIX) + ".*")

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the dataset with its table or its files. Raises FilesetError."""
        id_ = _dataset_number(resource)
        page = f"https://{DOMAIN}/10.1594/PANGAEA.{id_}"
        about = json_document.mapping(
            api.document(f"{page}?format=metadata_jsonld"), "the dataset's metadata"
        )
        told = json_document.doi(about.get("identifier")) or json_document.doi(about.get("@id"))
        if told != f"{_PREFIX}{id_}":
            raise FilesetError("platform-error", f"requested {_PREFIX}{id_}, received {told}")
        if json_document.text(json_document.inner(about, "size").get("unitText")) == _SERIES:
            raise FilesetError("platform-scope", "it is a series of datasets", code="collection")
        refused = _restriction(about)
        return FilesetPlatformItem(
            platform_name=NAME,
            platform_status="platform-restricted" if refused else "success",
            platform_domain=DOMAIN,
            platform_id=id_,
            manifest=None if refused else tuple(_files(api, id_, about)),
            web_base_url=page,
            detail=refused,
            description=_describe(about, told, page),
        )


def _dataset_number(resource: DatasetResource) -> str:
    """Return the number of the dataset. Raises FilesetError (platform-scope)."""
    path = unquote(json_document.path(resource.url))
    found = _ID.fullmatch(path) if json_document.host(resource.url) in _HOSTS else None
    found = found or _ID.fullmatch(resource.doi or "")
    if found is None:
        raise FilesetError("platform-scope", f"{resource.url} is not a dataset", code="no-dataset")
    return found["id"]


def _restriction(about: Mapping[str, Any]) -> str:
    """Return how access is restricted; empty if it is open."""
    access = json_document.text(about.get("conditionsOfAccess")) or ""
    if about.get("isAccessibleForFree") is False or access.lower() not in ("", "unrestricted"):
        return f"its access is {access or 'not free'}"
    return ""


def _files(api: Api, id_: str, about: Mapping[str, Any]) -> Iterator[FilesetManifestFile]:
    """Yield the files, or the table as a file. Raises FilesetError."""
    given = [
        (url, json_document.text(one.get("encodingFormat")))
        for one in json_document.entries(about.get("distribution"))
        if (url := json_document.web(one.get("contentUrl")))
    ]
    table = next((url for url, _ in given if "format=textfile" in url), None)
    if table is None:
        for url, kind in given:
            yield _single_file(id_, url, kind)
        return
    names = _list_files(api, table) if _lists_files(about) else None
    if names is None:
        yield FilesetManifestFile(
            path=f"PANGAEA.{id_}.tab", mimetype="text/tab-separated-values", platform_url=table
        )
        return
    for name, md5 in names:
        url = f"https://download.pangaea.de/dataset/{id_}/files/{quote(name)}"
        yield FilesetManifestFile(path=name, md5=md5, platform_url=url)


def _single_file(id_: str, url: str, kind: str | None) -> FilesetManifestFile:
    """Return a single file, named by its URL, or the zip of the dataset."""
    name = unquote(json_document.path(url).rpartition("/")[2])
    if "format=zip" in url:
        name = f"PANGAEA.{id_}.zip"
    return FilesetManifestFile(
        path=json_document.name(name, "a file"), mimetype=kind, platform_url=url
    )


def _lists_files(about: Mapping[str, Any]) -> bool:
    """Return whether the table may list files: one of its parameters is a file."""
    measured = json_document.entries(about.get("variableMeasured"))
    names = [(json_document.text(one.get("name")) or "").lower() for one in measured]
    return not names or any(name.startswith(("binary", "file content")) for name in names)


def _list_files(api: Api, table: str) -> Sequence[tuple[str, str | None]] | None:
    """Return the names and MD5s of the files that a table lists; None if it lists none.

    Raises FilesetError, incomplete-manifest if a row ends before the last of these columns.
    """
    with wrap_part_errors():
        answer = api.answer(table, accept=_ACCEPT)
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
    named, hashed = ([n for n, one in enumerate(columns) if one == c] for c in (_NAMED, _HASH))
    found: list[tuple[str, str | None]] = []
    for row in (line.split("\t") for line in lines if line.strip()):
        if len(row) <= max(*named, *hashed):
            raise FilesetError("incomplete-manifest", f"a row of {table} is cut: {row[0][:80]}")
        for number, at in enumerate(named):
            md5 = row[hashed[number]] if len(hashed) == len(named) else None
            if name := row[at].strip():
                found.append((name, json_document.digest(md5, "md5")))
    return found


def _describe(about: Mapping[str, Any], doi: str, page: str) -> Description:
    return Description(
        title=plain_text(about.get("name")),
        creators=tuple(schema_org.creators(about)),
        publisher=json_document.text(json_document.inner(about, "publisher").get("name"))
        or "PANGAEA",
        published=json_document.day(about.get("datePublished")),
        abstract=json_document.first_at(about, "abstract description", plain_text),
        subjects=json_document.texts(about.get("keywords"), apart=";"),
        language=json_document.text(about.get("inLanguage")),
        licences=licences(url=about.get("license")),
        doi=doi,
        url=page,
        related=schema_org.relations(about, _RELATIONS),
    )
