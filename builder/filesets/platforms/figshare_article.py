"""Parser for the JSON of Figshare's articles and their files."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from builder.filesets.item import Description, FilesetManifestFile, Related
from builder.filesets.platforms import json_document
from builder.filesets.platforms.json_document import first_at, values_at
from builder.filesets.platforms.metadata import (
    licences,
    people_of,
    plain_text,
    relate_all,
    texts_at,
)

TYPES = {
    "book": "Book",
    "chapter": "BookChapter",
    "composition": "Sound",
    "conference contribution": "ConferencePaper",
    "data management plan": "OutputManagementPlan",
    "dataset": "Dataset",
    "figure": "Image",
    "fileset": "Dataset",
    "journal contribution": "JournalArticle",
    "media": "Audiovisual",
    "model": "Model",
    "monograph": "Book",
    "online resource": "InteractiveResource",
    "performance": "Audiovisual",
    "physical object": "PhysicalObject",
    "poster": "Text",
    "preprint": "Preprint",
    "presentation": "Text",
    "report": "Report",
    "software": "Software",
    "standard": "Standard",
    "thesis": "Dissertation",
    "workflow": "Workflow",
}
"""Figshare's types of articles, in DataCite's terms."""

_PUBLISHER = re.compile(r"[.\s]*(?P<publisher>.+?)\.\s+[A-Z][A-Za-z ]*\.\s+https?://\S+\s*")


def manifest(files: Sequence[Mapping[str, Any]]) -> tuple[FilesetManifestFile, ...]:
    """Return the files of an article; files with the same name are put into folders named by id."""
    ids = [json_document.text(file.get("id")) or "" for file in files]
    return json_document.apart([_file(file) for file in files], ids)


def _file(file: Mapping[str, Any]) -> FilesetManifestFile:
    """Return a file. Its MD5 is the platform's own, or else the one supplied by the depositor."""
    computed = json_document.digest(file.get("computed_md5"), "md5")
    supplied = json_document.digest(file.get("supplied_md5"), "md5")
    link, url = file.get("is_link_only") is True, json_document.web(file.get("download_url"))
    extra: dict[str, Any] = {"id": file["id"]} if json_document.text(file.get("id")) else {}
    if computed or supplied:
        extra["md5_from"] = "computed_md5" if computed else "supplied_md5"
    return FilesetManifestFile(
        path=json_document.name(file.get("name"), "a file"),
        size=None if link else json_document.size(file.get("size")),
        md5=computed or supplied,
        mimetype=json_document.text(file.get("mimetype")),
        extra={**extra, "link_only": True} if link else extra,
        status="withheld" if link or url is None else None,
        platform_url=url,
    )


def describe(article: Mapping[str, Any], version: str | None, url: str) -> Description:
    """Return the description of an article; `url` is its page."""
    licence = json_document.inner(article, "license")
    return Description(
        title=plain_text(article.get("title")),
        creators=people_of(
            values_at(article, "authors"),
            given_at="first_name",
            family_at="last_name",
            name_at="full_name",
            orcid_at="orcid_id",
        ),
        publisher=_publisher(article),
        published=first_at(article, "published_date timeline.posted", json_document.day),
        type=_type(article),
        abstract=plain_text(article.get("description")),
        subjects=texts_at(article, "tags keywords categories.title", plain_text),
        licences=licences(name=licence.get("name"), url=licence.get("url")),
        version=version,
        doi=json_document.doi(article.get("doi")),
        url=url,
        related=_relate_works(article),
    )


def _type(article: Mapping[str, Any]) -> str:
    given = json_document.text(article.get("defined_type_name")) or "dataset"
    return TYPES.get(given.lower().replace("_", " "), "Other")


def _publisher(article: Mapping[str, Any]) -> str:
    """Return the publisher, from the text after the title in the citation; no field has it."""
    title, citation = plain_text(article.get("title")), plain_text(article.get("citation"))
    if title and citation and title in citation:
        found = _PUBLISHER.fullmatch(citation.partition(title)[2])
        if found:
            return found["publisher"]
    return "figshare"


def _relate_works(article: Mapping[str, Any]) -> tuple[Related, ...]:
    works: list[tuple[object, object]] = [
        (reference, "References") for reference in values_at(article, "references")
    ]
    works += [
        (material.get("identifier") or material.get("link"), material.get("relation"))
        for material in json_document.entries(article.get("related_materials"))
    ]
    paper = (article.get("resource_doi"), "IsSupplementTo")
    own = json_document.doi(article.get("doi"))
    return relate_all([paper, *works] if json_document.doi(paper[0]) != own else works)
