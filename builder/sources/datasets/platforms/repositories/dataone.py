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

from builder.sources.datasets.item import (
    REPLICAS,
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import (
    first_at,
    inner,
    objects_of,
    read_pages,
    text,
    texts,
    values_at,
)
from builder.sources.datasets.platforms.metadata import people_from_texts, plain_text, relate
from builder.sources.datasets.platforms.pages.links import media_type
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

NAME = "dataone"
DOMAIN = "search.dataone.org"
_NODE = "cn.dataone.org"
_HOST_NAMES = """
arcticdata.io cn.dataone.org data.ess-dive.lbl.gov dataone.org goa.nceas.ucsb.edu
knb.ecoinformatics.org opc.dataone.org search.dataone.org www.arcticdata.io www.dataone.org
"""
_HOSTS = frozenset(_HOST_NAMES.split())
_DOI = re.compile(r"10\.(?:5063|15485|18739)/.*")
"""DOIs of the Knowledge Network for Biocomplexity, ESS-DIVE and the Arctic Data Center."""
_PUBLISHERS = {
    "urn:node:ARCTIC": "Arctic Data Center",
    "urn:node:ESS_DIVE": "ESS-DIVE",
    "urn:node:KNB": "Knowledge Network for Biocomplexity",
}
_VIEW = re.compile(r"/?(?:catalog/)?(?:view|data/view)/(?P<id>.+?)/?")
_OBJECT = re.compile(r"/(?:.+/)?(?:cn|mn)/v[12]/(?:resolve|object|meta|packages/[^/]+)/(?P<id>.+)")
_METADATA, _DATA, _MAP = "METADATA", "DATA", "RESOURCE"
"""Types of objects."""
_ID_FIELDS = "identifier,formatType,resourceMap,seriesId,dateUploaded,obsoletedBy"
_FILE_FIELDS = (
    "identifier,formatType,formatId,fileName,size,checksum,checksumAlgorithm,dataUrl,title,"
    "abstract,origin,keywords,pubDate,dateUploaded,seriesId,datasource,replicaMN,obsoletes,"
    "obsoletedBy"
)
_QUOTED = re.compile(r'(["\\])')
_ARCHIVED = re.compile(rb"<archived>\s{0,64}true\s{0,64}</archived>")
_LEAF = re.compile(r"[/:]")


class DataOne(json_document.HostedPlatform):
    """DataONE."""

    facts = PlatformFacts(
        NAME,
        "hosts of members, DOI",
        "the files of a package (resource map), or replicas; packages within it are related works",
    )
    hosts = _HOSTS
    dois = _DOI

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the package of the requested id. Raises FilesetError."""
        target = _find(api, _object_ids(resource))
        package = _package(api, target)
        objects = tuple(_query(api, f"resourceMap:{_quote(package)}", _FILE_FIELDS))
        listed = [doc for doc in objects if text(doc.get("formatType")) == _METADATA]
        own = [doc for doc in listed if doc.get("identifier") == target.get("identifier")]
        files = [doc for doc in objects if text(doc.get("formatType")) != _MAP]
        parts = [doc for doc in objects if text(doc.get("formatType")) == _MAP]
        if parts and not any(text(doc.get("formatType")) == _DATA for doc in files):
            raise ScopeError(f"it has {len(parts)} packages and no files", "collection")
        return _item((own or listed or [target])[0], files, parts, _members(api, files))


def _object_ids(resource: DatasetResource) -> tuple[str, ...]:
    """Return the id of the requested object, in each spelling. Raises FilesetError.

    Ids of objects differ by case, and DOIs do not.
    """
    parts = urlsplit(resource.url)
    # Older members name the object in the fragment.
    for place in (parts.path, parts.fragment) if parts.hostname in _HOSTS else ():
        if match := _VIEW.fullmatch(place) or _OBJECT.fullmatch(place):
            return (unquote(match["id"]),)
    if resource.doi is None:
        raise ScopeError(f"{resource.url} is not a dataset", "no-dataset")
    prefix, _, rest = resource.doi.partition("/")
    return tuple(dict.fromkeys(f"doi:{prefix}/{suffix}" for suffix in (rest.upper(), rest)))


def _quote(value: str) -> str:
    """Return a value of a query, as a phrase of Solr's syntax."""
    escaped = _QUOTED.sub(r"\\\1", value)
    return f'"{escaped}"'


def _query(api: Api, query: str, fields: str) -> Iterator[Mapping[str, Any]]:
    """Yield all objects that a query finds. Raises FilesetError (incomplete-manifest)."""

    def url_at(start: int) -> str:
        parameters = {"q": query, "fl": fields, "sort": "id asc", "rows": 1_000, "start": start}
        return f"https://{_NODE}/cn/v2/query/solr/?{urlencode({**parameters, 'wt': 'json'})}"

    def following(page: Mapping[str, Any]) -> str | None:
        response = inner(page, "response")
        docs, total = response.get("docs"), json_document.size(response.get("numFound")) or 0
        count = len(docs) if isinstance(docs, list) else 0
        read = (json_document.size(response.get("start")) or 0) + count
        return url_at(read) if count and read < total else None

    count, total = 0, None
    for page in read_pages(api, url_at(0), (_NODE,), following):
        response = inner(page, "response")
        docs = objects_of(response.get("docs"), "the list of objects")
        count += len(docs)
        total = json_document.size(response.get("numFound"))
        yield from docs
    if total is None:
        raise FilesetError("platform-bad-response", "the index does not say how much it found")
    if count != total:
        raise FilesetError("incomplete-manifest", f"{count} of {total} objects are listed")


def _find(api: Api, names: Sequence[str]) -> Mapping[str, Any]:
    """Return the object with one of the ids, or the newest of a series. Raises FilesetError."""
    query = " OR ".join(f"{field}:{_quote(n)}" for n in names for field in ("id", "seriesId"))
    docs = tuple(_query(api, query, _ID_FIELDS))
    if not docs:
        # An object that was archived is hidden from the index.
        url = f"https://{_NODE}/cn/v2/meta/{quote(names[0], safe='')}"
        if _ARCHIVED.search(api.answer(url, accept="text/xml").body):
            raise FilesetError("platform-gone", f"{names[0]} was archived, which hides it")
        raise FilesetError("platform-404", f"the index does not have {names[0]}")
    exact = (doc for doc in docs if text(doc.get("identifier")) in names)
    return next(exact, None) or _newest(docs)


def _newest(objects: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the newest version, if possible one that no other replaced."""
    current = [doc for doc in objects if text(doc.get("obsoletedBy")) is None]
    return max(current or objects, key=lambda doc: text(doc.get("dateUploaded")) or "")


def _package(api: Api, target: Mapping[str, Any]) -> str:
    """Return the id of the package of an object. Raises FilesetError."""
    kind, name = text(target.get("formatType")), text(target.get("identifier"))
    if kind == _DATA:
        raise ScopeError(f"{name} is one file of a dataset", "file-level")
    maps = (name,) if kind == _MAP and name else texts(target.get("resourceMap"))
    if len(maps) > 1:
        query = " OR ".join(f"id:{_quote(map_id)}" for map_id in maps)
        newest = text(_newest(tuple(_query(api, query, _ID_FIELDS)) or ({},)).get("identifier"))
        maps = (newest or maps[0],)
    if not maps:
        raise FilesetError("empty-manifest", f"{name} is in no package")
    return maps[0]


def _members(api: Api, files: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """Return the base URLs of member nodes by their ids; empty if no file has a replica."""
    if not any({*texts(doc.get("replicaMN"))} - {text(doc.get("datasource"))} for doc in files):
        return {}
    with suppress(FilesetError, ElementTree.ParseError):  # the files are where the index says
        answer = api.answer(f"https://{_NODE}/cn/v2/node", accept="text/xml")
        nodes = ElementTree.fromstring(answer.body).iterfind(".//{*}node")
        rows = ((n.findtext("{*}identifier", ""), n.findtext("{*}baseURL", "")) for n in nodes)
        return {name.strip(): url.strip().rstrip("/") for name, url in rows}
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
    listed = [_file(doc, members) for doc in files]
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


def _file(doc: Mapping[str, Any], members: Mapping[str, str]) -> FilesetManifestFile:
    name = json_document.name(text(doc.get("identifier")), "an object")
    resolver = f"https://{_NODE}/cn/v2/resolve/{quote(name, safe='')}"
    kind = text(doc.get("formatId"))
    places = dict.fromkeys((text(doc.get("datasource")) or "", *texts(doc.get("replicaMN"))))
    replicas = [
        f"{members[place]}/v2/object/{quote(name, safe='')}"
        for place in places
        if json_document.web(members.get(place))
    ]
    return FilesetManifestFile(
        path=text(doc.get("fileName")) or _LEAF.split(name)[-1] or name,
        size=json_document.size(doc.get("size")),
        mimetype=media_type(kind),
        extra={
            "id": name,
            **({"format": kind} if kind else {}),
            **({REPLICAS: replicas} if replicas else {}),
        },
        platform_url=json_document.web(doc.get("dataUrl")) or resolver,
        **json_document.digests(doc.get("checksumAlgorithm"), doc.get("checksum")),
    )


def _describe(own: Mapping[str, Any], name: str, parts: Sequence[Mapping[str, Any]]) -> Description:
    node = text(own.get("datasource")) or ""
    named = [
        ("IsNewVersionOf", text(own.get("obsoletes"))),
        ("IsPreviousVersionOf", text(own.get("obsoletedBy"))),
        *(("HasPart", text(doc.get("identifier"))) for doc in parts),
    ]
    works = (relate(id_, how) or relate(_page(id_), how) for how, id_ in named if id_)
    return Description(
        title=plain_text(own.get("title")),
        creators=people_from_texts(values_at(own, "origin")),
        publisher=_PUBLISHERS.get(node) or node.rpartition(":")[2] or "DataONE",
        published=first_at(own, "pubDate dateUploaded", json_document.day),
        abstract=plain_text(own.get("abstract")),
        subjects=texts(own.get("keywords")),
        doi=json_document.doi(name),
        related=tuple(dict.fromkeys(filter(None, works))),
    )
