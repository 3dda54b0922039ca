"""The kinds of datasets: with exactly one file, and with any other number of files."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from functions.kinds.kind import (
    CitedWork,
    Fields,
    ItemKind,
    link_identifier,
    list_creators,
    name_people,
    name_rights,
)
from functions.snapshot.schema import Column

_LICENCES = '[{"name": "CC BY 4.0", "spdx": "CC-BY-4.0", "url": "https://creativecommons.org/..."}]'
_BUNDLE = '{"key": "filesets/.../bundle.zip", "bytes": 204800, "sha256": "9f86d08..."}'
_FILES = '[{"path": "data/a.csv", "status": "verified", "bytes": 1480, "mimetype": "text/csv"}]'
_ACCESS = '{"status": "platform-gone", "since": "2026-11-22", "reason": "duplicate"}'
_VERSIONS = '[{"identifier": "oai:a.cz:dataset,...", "relation": "IsNewVersionOf"}]'
_PEOPLE = '[{"name": "Novák, Jan", "given": "Jan", "family": "Novák"}]'

COLUMNS = (
    Column("platform", "VARCHAR", "platform that hosts it", "zenodo"),
    Column("host", "VARCHAR", "the host", "zenodo.org"),
    Column("id", "VARCHAR", "its id on the platform", "7078725"),
    Column("version", "VARCHAR", "its version on the platform", "1"),
    Column(
        "version_order",
        "VARCHAR",
        "sort key among versions with the same first letter; NULL if the order is unknown",
        "n:000000000001",
    ),
    Column("edition", "VARCHAR", "version label of its creators", "1.0.2"),
    Column("status", "VARCHAR", "status of its archiving (docs/guide/datasets.md)", "success"),
    Column(
        "strategy",
        "VARCHAR",
        "strategy by which its files are stored; NULL if none are",
        "s3-fileset",
    ),
    Column("until", "VARCHAR", "end of the embargo (W3CDTF)", "NULL"),
    Column("title", "VARCHAR", "title", "Honey prices"),
    Column(
        "creators",
        "JSON",
        "creators: name, given, family, orcid, affiliations, organisation",
        _PEOPLE,
    ),
    Column("contributors", "JSON", "contributors: the same, and role", "[]"),
    Column("publisher", "VARCHAR", "publisher", "Zenodo"),
    Column("published", "VARCHAR", "when (W3CDTF)", "2022-09-14"),
    Column("type", "VARCHAR", "general resource type of DataCite", "Dataset"),
    Column("abstract", "VARCHAR", "description", "..."),
    Column("subjects", "VARCHAR[]", "subjects and keywords", "[honey]"),
    Column("language", "VARCHAR", "language", "en"),
    Column("licences", "JSON", "licences: name, spdx, url", _LICENCES),
    Column("doi", "VARCHAR", "its DOI", "10.5281/zenodo.7078725"),
    Column("url", "VARCHAR", "landing page", "https://zenodo.org/records/7078725"),
    Column("related", "JSON", "related resources: identifier, identifier_type, relation", "[]"),
    Column("archiveorg_item", "VARCHAR", "item of archive.org with its files", "NULL"),
    Column(
        "bundle",
        "JSON",
        "bundle with its files: key, bytes, sha256; NULL if there is none",
        _BUNDLE,
    ),
    Column("bytes", "BIGINT", "bytes of its stored files", "204800"),
    Column(
        "files",
        "JSON",
        "its stored files: columns of `files`, and original, packed, within",
        _FILES,
    ),
    Column("withheld", "JSON", "files that the platform lists but withholds: path, bytes", "[]"),
    Column("access", "JSON", "how the platform closed it: status, since, reason", _ACCESS),
    Column(
        "versions",
        "JSON",
        "its other listed versions: identifier, version, doi, url, relation",
        _VERSIONS,
    ),
)
"""The document of a fileset, or of a dataset with one file."""

COMPUTED = frozenset({"access", "versions"})
"""Columns that a publish adds to a document where they apply."""


def list_texts(fields: Fields) -> list[str | None]:
    """Return the title, the creators and the addresses of a dataset."""
    return [fields.get("title"), *list_creators(fields), fields.get("doi"), fields.get("url")]


def describe(fields: Fields) -> CitedWork:
    """Return what is cited of a dataset."""
    licences = [row for row in fields.get("licences") or () if isinstance(row, Mapping)]
    addresses = (fields.get("doi"), fields.get("url"))
    return CitedWork(
        name_people(fields.get("creators")),
        name_people(fields.get("contributors")),
        fields.get("published") or "",
        fields.get("abstract") or "",
        tuple(fields.get("subjects") or ()),
        tuple(
            replace(rights, name=row.get("name") or row.get("spdx") or rights.name)
            for row in licences
            for rights in name_rights([row.get("url") or row.get("name") or row.get("spdx")])
        ),
        fields.get("type") or "",
        fields.get("language") or "",
        fields.get("publisher") or "",
        url=fields.get("url") or "",
        doi=fields.get("doi") or "",
        identifiers=tuple(link_identifier(text) for text in addresses if text),
    )


def load_filters() -> Mapping[str, Callable[..., Any]]:
    """Return the filters of crosswalks to DataCite."""
    from functions.kinds.datasets import datacite

    return datacite.FILTERS


_dataset = partial(
    ItemKind,
    columns=COLUMNS,
    computed=COMPUTED,
    texts=list_texts,
    has_files=True,
    table="filesets",
    type="Dataset",
    work=describe,
    carded=frozenset(
        [
            "title",
            "creators",
            "contributors",
            "published",
            "abstract",
            "subjects",
            "licences",
            "type",
            "language",
            "publisher",
            "doi",
            "url",
            "versions",
            "related",
        ]
    ),
    filters=load_filters,
    status=("datasets", ""),
)
FILESET = _dataset("fileset")
FILE = _dataset("file", has_bytes=lambda fields: bool(fields.get("files")))
