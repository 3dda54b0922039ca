"""DataONE: packages of its member nodes, listed by the index of the coordinating node.

A package is a resource map: it names the metadata, the files, and sometimes other packages. Each
version has an id of its own, and may name a series.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit
from xml.etree import ElementTree

from builder.filesets.item import (
    REPLICAS,
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    Related,
)
from builder.filesets.platforms import json_document
from builder.filesets.platforms.hosted import HostedPlatform
from builder.filesets.platforms.json_document import (
    first_at,
    inner,
    objects_of,
    read_pages,
    text,
    texts,
    values_at,
)
from builder.filesets.platforms.metadata import people_from_texts, plain_text, relate
from builder.filesets.platforms.pages.links import media_type
from builder.filesets.protocols import Api, FilesetError, PlatformFacts

NAME = "dataone"
DOMAIN = "search.dataone.org"
FACTS = PlatformFacts(
    NAME,
    "hosts of members, DOI",
    "the files of a package (resource map), or replicas; packages within it are related works",
)
_NODE = "cn.dataone.org"
_QUERY = f"https://{_NODE}/cn/v2/query/solr/"
_HOSTS = frozenset(
    (
        "arcticdata.io",
        "cn.dataone.org",
        "data.ess-dive.lbl.gov",
        "dataone.org",
        "goa.nceas.ucsb.edu",
        "knb.ecoinformatics.org",
        "opc.dataone.org",
        "search.dataone.org",
        "www.arcticdata.io",
        "www.dataone.org",
    )
)
_DOI = re.compile(r"10\.(?:5063|15485|18739)/.*")
"""DOIs of the Knowledge Network for Biocomplexity, ESS-DIVE and the Arctic Data Center."""
_PUBLISHERS = {
    "urn:node:ARCTIC": "Arctic Data Center",
    "urn:node:ESS_DIVE": "ESS-DIVE",
    "urn:node:KNB": "Knowledge Network for Biocomplexity",
}
_VIEW = re.compile(r"/?(?:catalog/)?(?:view|data/view)/(?P<id>.+?)/?")
_OBJECT = re.compile(r"/(?:.+/)?(?:cn|mn)/v[12]/(?:resolve|object|meta|packages/[^/]+)/(?P<id>.+)")
_ROWS = 1_000
_METADATA, _DATA, _MAP = "METADATA", "DATA", "RESOURCE"
"""Types of objects."""
_FOUND = "identifier,formatType,resourceMap,seriesId,dateUploaded,obsoletedBy"
_LISTED = (
    "identifier,formatType,formatId,fileName,size,checksum,checksumAlgorithm,dataUrl,title,"
    "abstract,origin,keywords,pubDate,dateUploaded,seriesId,datasource,replicaMN,obsoletes,"
    "obsoletedBy"
)
_QUOTED = re.compile(r'(["\\])')
_ARCHIVED = re.compile(rb"<archived>\s{0,64}true\s{0,64}</archived>")
_LEAF = re.compile(r"[/:]")


class DataOne(HostedPlatform):
    """DataONE."""

    facts = FACTS
    hosts = _HOSTS
    dois = _DOI

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the package of the requested id. Raises FilesetError."""
        names = _object_ids(resource)
        found = _find(api, names)
        package = _package(api, found)
        objects = tuple(_query(api, f"resourceMap:{_quote(package)}", _LISTED))
        listed = [one for one in objects if text(one.get("formatType")) == _METADATA]
        own = [one for one in listed if one.get("identifier") == found.get("identifier")]
        files = [one for one in objects if text(one.get("formatType")) != _MAP]
        parts = [one for one in objects if text(one.get("formatType")) == _MAP]
        if parts and not any(text(one.get("formatType")) == _DATA for one in files):
            detail = f"it has {len(parts)} packages and no files"
            raise FilesetError("platform-scope", detail, code="collection")
        return _item((own or listed or [found])[0], files, parts, _members(api, files))


def _object_ids(resource: DatasetResource) -> tuple[str, ...]:
    """Return the id of the requested object, in each spelling. Raises FilesetError.

    Ids of objects differ by case, and DOIs do not.
    """
    parts = urlsplit(resource.url)
    known = (parts.hostname or "") in _HOSTS
    # Older members name the object in the fragment.
    places = (parts.path, parts.fragment) if known else ()
    for place in places:
        if found := _VIEW.fullmatch(place) or _OBJECT.fullmatch(place):
            return (unquote(found["id"]),)
    if resource.doi is None:
        detail = f"{resource.url} is not a dataset"
        raise FilesetError("platform-scope", detail, code="no-dataset")
    prefix, _, rest = resource.doi.partition("/")
    return tuple(dict.fromkeys(f"doi:{prefix}/{one}" for one in (rest.upper(), rest)))


def _quote(value: str) -> str:
    """Return a value of a query, as a phrase of Solr's syntax."""
    escaped = _QUOTED.sub(r"\\\1", value)
    return f'"{escaped}"'


def _query(api: Api, query: str, fields: str) -> Iterator[Mapping[str, Any]]:
    """Yield all objects that a query finds. Raises FilesetError (incomplete-manifest)."""

    def url_at(start: int) -> str:
        asked = {"q": query, "fl": fields, "sort": "id asc", "rows": _ROWS, "start": start}
        return f"{_QUERY}?{urlencode({**asked, 'wt': 'json'})}"

    def following(page: Mapping[str, Any]) -> str | None:
        response = inner(page, "response")
        listed, total = response.get("docs"), json_document.size(response.get("numFound"))
        docs = listed if isinstance(listed, list) else []
        read = (json_document.size(response.get("start")) or 0) + len(docs)
        return url_at(read) if docs and total is not None and read < total else None

    found, total = 0, None
    for page in read_pages(api, url_at(0), (_NODE,), following):
        response = inner(page, "response")
        docs = objects_of(response.get("docs"), "the list of objects")
        found += len(docs)
        total = json_document.size(response.get("numFound"))
        yield from docs
    if total is None:
        raise FilesetError("platform-bad-response", "the index does not say how much it found")
    if found != total:
        raise FilesetError("incomplete-manifest", f"{found} of {total} objects are listed")


def _find(api: Api, names: Sequence[str]) -> Mapping[str, Any]:
    """Return the object with one of the ids, or the newest of a series. Raises FilesetError."""
    query = " OR ".join(f"{field}:{_quote(one)}" for one in names for field in ("id", "seriesId"))
    found = tuple(_query(api, query, _FOUND))
    exact = [one for one in found if text(one.get("identifier")) in names]
    if not found:
        raise _missing(api, names[0])
    return exact[0] if exact else _newest(found)


def _newest(objects: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the newest version, if possible one that no other replaced."""
    current = [one for one in objects if text(one.get("obsoletedBy")) is None]
    return max(current or objects, key=lambda one: text(one.get("dateUploaded")) or "")


def _missing(api: Api, name: str) -> FilesetError:
    """Return the error for an id that the index does not have: archived, or unknown."""
    url = f"https://{_NODE}/cn/v2/meta/{quote(name, safe='')}"
    if _ARCHIVED.search(api.answer(url, accept="text/xml").body):
        return FilesetError("platform-gone", f"{name} was archived, which hides it")
    return FilesetError("platform-404", f"the index does not have {name}")


def _package(api: Api, found: Mapping[str, Any]) -> str:
    """Return the id of the package of an object. Raises FilesetError."""
    kind, name = text(found.get("formatType")), text(found.get("identifier"))
    if kind == _DATA:
        raise FilesetError("platform-scope", f"{name} is one file of a dataset", code="file-level")
    maps = (name,) if kind == _MAP and name else texts(found.get("resourceMap"))
    if len(maps) > 1:
        query = " OR ".join(f"id:{_quote(one)}" for one in maps)
        newest = text(_newest(tuple(_query(api, query, _FOUND)) or ({},)).get("identifier"))
        maps = (newest or maps[0],)
    if not maps:
        raise FilesetError("empty-manifest", f"{name} is in no package")
    return maps[0]


def _members(api: Api, files: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """Return the base URLs of member nodes by their ids; empty if no file has a replica."""
    if not any({*texts(one.get("replicaMN"))} - {text(one.get("datasource"))} for one in files):
        return {}
    with suppress(FilesetError, ElementTree.ParseError):  # the files are where the index says
        answer = api.answer(f"https://{_NODE}/cn/v2/node", accept="text/xml")
        nodes = ElementTree.fromstring(answer.body).iterfind(".//{*}node")
        return {
            node.findtext("{*}identifier", "").strip(): node.findtext("{*}baseURL", "")
            .strip()
            .rstrip("/")
            for node in nodes
        }
    return {}


def _item(
    own: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    parts: Sequence[Mapping[str, Any]],
    members: Mapping[str, str],
) -> FilesetPlatformItem:
    name, series = text(own.get("identifier")), text(own.get("seriesId"))
    if name is None:
        raise FilesetError("platform-bad-response", "the dataset has no id")
    listed = [_file(one, members) for one in files]
    leaves = [_LEAF.split(str(file.extra["id"]))[-1] or "-" for file in listed]
    return FilesetPlatformItem(
        platform_name=NAME,
        platform_domain=DOMAIN,
        platform_id=series or name,
        version=name if series else None,
        manifest=json_document.apart(listed, leaves),
        web_base_url=_page(name),
        description=_describe(own, name, parts),
    )


def _page(name: str) -> str:
    return f"https://{DOMAIN}/view/{quote(name, safe=':/')}"


def _file(one: Mapping[str, Any], members: Mapping[str, str]) -> FilesetManifestFile:
    name = json_document.name(text(one.get("identifier")), "an object")
    resolver = f"https://{_NODE}/cn/v2/resolve/{quote(name, safe='')}"
    kind = text(one.get("formatId"))
    places = dict.fromkeys((text(one.get("datasource")) or "", *texts(one.get("replicaMN"))))
    replicas = [
        f"{members[place]}/v2/object/{quote(name, safe='')}"
        for place in places
        if json_document.web(members.get(place))
    ]
    return FilesetManifestFile(
        path=text(one.get("fileName")) or _LEAF.split(name)[-1] or name,
        size=json_document.size(one.get("size")),
        mimetype=media_type(kind),
        extra={
            "id": name,
            **({"format": kind} if kind else {}),
            **({REPLICAS: replicas} if replicas else {}),
        },
        platform_url=json_document.web(one.get("dataUrl")) or resolver,
        **json_document.digests(one.get("checksumAlgorithm"), one.get("checksum")),
    )


def _describe(own: Mapping[str, Any], name: str, parts: Sequence[Mapping[str, Any]]) -> Description:
    node = text(own.get("datasource")) or ""
    return Description(
        title=plain_text(own.get("title")),
        creators=people_from_texts(values_at(own, "origin")),
        publisher=_PUBLISHERS.get(node) or node.rpartition(":")[2] or "DataONE",
        published=first_at(own, "pubDate dateUploaded", json_document.day),
        abstract=plain_text(own.get("abstract")),
        subjects=texts(own.get("keywords")),
        doi=json_document.doi(name),
        url=_page(name),
        related=tuple(dict.fromkeys(_relations(own, parts))),
    )


def _relations(own: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> Iterator[Related]:
    named = [
        ("IsNewVersionOf", text(own.get("obsoletes"))),
        ("IsPreviousVersionOf", text(own.get("obsoletedBy"))),
        *(("HasPart", text(one.get("identifier"))) for one in parts),
    ]
    for relation, name in named:
        if name and (found := relate(name, relation) or relate(_page(name), relation)):
            yield found
