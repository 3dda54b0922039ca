"""archive.org: items with uploaded files, and with files derived from these.

The response for an unknown item is 200 with an empty document; a removed item is marked as dark.
Numbers are strings, and a list with one entry is a plain string.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import first_at, values_at
from builder.sources.datasets.platforms.metadata import licences, people_from_texts, plain_text
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

NAME = "archiveorg"
DOMAIN = "archive.org"
_ITEM = re.compile(r"/(?P<view>details|download|embed|stream|metadata)/(?P<id>[^/]+)/?(?P<rest>.*)")
_NAMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
_SHOWN = re.compile(r"(?:page|mode)/.*")
"""Suffix of URLs that show a book of an item at a page; the item is meant."""
_GENERATED = (
    "_archive.torrent",
    "_files.xml",
    "_itemimage.jpg",
    "_meta.sqlite",
    "_meta.xml",
    "_reviews.xml",
    "_rules.conf",
    "_thumb.png",
    "_thumb.jpg",
)
"""Ends of file names, after the item's name, of archive.org's own metadata files."""
_TORRENTS = ("academictorrents_", (".torrent", ".bib"))
_NOT_ONE = {"collection": "a collection", "web": "an item of web captures", "account": "an account"}
_TYPES = {
    "audio": "Sound",
    "data": "Dataset",
    "etree": "Sound",
    "image": "Image",
    "movies": "Audiovisual",
    "software": "Software",
    "texts": "Text",
}
_MEDIA = {
    "Comma-Separated Values": "text/csv",
    "Excel": "application/vnd.ms-excel",
    "GZIP": "application/gzip",
    "HTML": "text/html",
    "JPEG": "image/jpeg",
    "JSON": "application/json",
    "MPEG4": "video/mp4",
    "PDF": "application/pdf",
    "PNG": "image/png",
    "RAR": "application/vnd.rar",
    "TAR": "application/x-tar",
    "Tab-Separated Values": "text/tab-separated-values",
    "Text": "text/plain",
    "Text PDF": "application/pdf",
    "VBR MP3": "audio/mpeg",
    "XML": "application/xml",
    "ZIP": "application/zip",
}
"""Media types by format; other formats have none."""


class ArchiveOrg:
    """archive.org."""

    facts = PlatformFacts(
        NAME,
        "host",
        "original files only; kept at archive.org (`archiveorg-*`)",
    )

    def match_request(self, resource: DatasetResource) -> bool:
        """Return whether it is an item of archive.org; the Wayback Machine has another host."""
        is_host = json_document.host(resource.url) in {DOMAIN, "www.archive.org"}
        return is_host and _ITEM.fullmatch(json_document.path(resource.url)) is not None

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the item with its uploaded files. Raises FilesetError."""
        name = _item_name(resource)
        answer = api.document(f"https://{DOMAIN}/metadata/{quote(name)}")
        if not answer:
            raise FilesetError("platform-404", f"archive.org has no item {name}")
        item = json_document.mapping(answer, "the item")
        if item.get("is_dark") is True:
            raise FilesetError("platform-gone", "the item is dark")
        metadata = json_document.mapping(item.get("metadata"), "the item's metadata")
        kind = json_document.text(metadata.get("mediatype"))
        if kind in _NOT_ONE:
            code = "collection" if kind == "collection" else "no-dataset"
            raise ScopeError(f"it is {_NOT_ONE[kind]}", code)
        return _item(name, item, metadata)


def _item_name(resource: DatasetResource) -> str:
    """Return the name of the item. Raises FilesetError (platform-scope, bad-identifier)."""
    match = _ITEM.fullmatch(json_document.path(resource.url))
    name = unquote(match["id"]) if match else ""
    if match is None or name.startswith("@"):
        raise ScopeError(f"{resource.url} is not an item", "no-dataset")
    if not _NAMED.fullmatch(name):
        raise FilesetError("bad-identifier", f"{name!r} does not name an item of archive.org")
    if match["rest"] and not _SHOWN.fullmatch(match["rest"]):
        raise ScopeError("it is one file of an item", "file-level")
    return name


def _item(name: str, item: Mapping[str, Any], metadata: Mapping[str, Any]) -> FilesetPlatformItem:
    files = json_document.objects_of(item.get("files"), "the list of files")
    count = json_document.size(item.get("files_count"))
    if count is not None and len(files) < count:
        raise FilesetError("incomplete-manifest", f"{len(files)} of {count} files are listed")
    restricted = _true(item.get("nodownload")) or _true(metadata.get("access-restricted-item"))
    return FilesetPlatformItem(
        platform_name=NAME,
        platform_status="platform-restricted" if restricted else "success",
        platform_domain=DOMAIN,
        platform_id=name,
        manifest=tuple(parse_file(name, file) for file in files if is_uploaded(name, file)),
        archiveorg_item_name=name,
        archiveorg_item_meta={
            "collection": list(json_document.texts(metadata.get("collection"))),
            "mediatype": json_document.text(metadata.get("mediatype")),
        },
        web_base_url=f"https://{DOMAIN}/details/{name}",
        detail="its files are lent, not downloadable" if restricted else "",
        description=_describe(metadata),
    )


def is_uploaded(item: str, file: Mapping[str, Any]) -> bool:
    """Return whether a file was uploaded, not derived or created by archive.org."""
    name = json_document.name(file.get("name"), "a file of the item")
    if file.get("source") != "original" or _true(file.get("old_version")):
        return False
    if name.startswith("__ia_") or name in {item + end for end in _GENERATED}:
        return False
    start, ends = _TORRENTS
    return not (item.startswith(start) and name in {item + end for end in ends})


def parse_file(item: str, file: Mapping[str, Any]) -> FilesetManifestFile:
    """Return a file as the metadata of an item list it. Raises FilesetError without a name."""
    name = json_document.name(file.get("name"), "a file of the item")
    kind = json_document.text(file.get("format"))
    return FilesetManifestFile(
        path=name,
        size=json_document.size(file.get("size")),
        md5=json_document.digest(file.get("md5"), "md5"),
        sha1=json_document.digest(file.get("sha1"), "sha1"),
        crc32=json_document.digest(file.get("crc32"), "crc32"),
        mimetype=_MEDIA.get(kind or ""),
        extra={"format": kind} if kind else {},
        status="withheld" if _true(file.get("private")) else None,
        platform_url=f"https://{DOMAIN}/download/{item}/{quote(name)}",
    )


def _true(value: object) -> bool:
    return value is True or json_document.text(value) in ("true", "1")


def _describe(metadata: Mapping[str, Any]) -> Description:
    helpers = people_from_texts(values_at(metadata, "contributor"))
    return Description(
        title=first_at(metadata, "title", plain_text),
        creators=people_from_texts(values_at(metadata, "creator")),
        contributors=tuple(replace(person, role="Other") for person in helpers),
        publisher=first_at(metadata, "publisher", plain_text) or "Internet Archive",
        published=first_at(metadata, "date publicdate", json_document.day),
        type=_TYPES.get(json_document.text(metadata.get("mediatype")) or "", "Other"),
        abstract=plain_text("\n".join(json_document.texts(metadata.get("description")))),
        subjects=json_document.texts(metadata.get("subject"), apart=";"),
        language=first_at(metadata, "language", json_document.text),
        licences=licences(
            name=plain_text(metadata.get("rights")),
            url=first_at(metadata, "licenseurl", json_document.text),
        ),
        doi=first_at(
            metadata,
            "doi identifier-doi external-identifier",
            lambda name: json_document.doi((json_document.text(name) or "").removeprefix("urn:")),
        ),
    )
