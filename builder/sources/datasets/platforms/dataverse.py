"""Dataverse: many installations with one API: URLs, citation block and files of their datasets.

For an ingested table, digests and original size describe the uploaded file. Dataverse serves a
derived table by default, so the original is requested. Files are requested by number, which all
have; many have no persistent id.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from builder.runtime import Clock
from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    Licence,
    Person,
    Related,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import (
    day,
    digests,
    doi,
    entries,
    first_at,
    handle_of,
    host,
    inner,
    mapping,
    name,
    objects_of,
    size,
    text,
    texts,
    web,
)
from builder.sources.datasets.platforms.metadata import (
    contributor_type,
    general_type,
    licences,
    orcid,
    person_from_text,
    plain_text,
    relate_by_scheme,
    spdx,
)
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

_SETS = (
    r"dataset\.xhtml|citation|datasets?|api/(?:access/dataset|datasets)/:persistentId"
    r"(?:/versions/(?P<version>[^/]+))?"
)
_FILES = r"file\.xhtml|files?|api/(?:files|access/datafile)/(?::persistentId|(?P<number>[0-9]+))"
_PAGE = re.compile(rf"(?P<base>.*?)(?:/spa)?/(?:{_SETS}|(?P<file>{_FILES}))(?:/metadata)?/?")
_PERSISTENT = re.compile(r"(?:doi:10\.[0-9.]+/|hdl:[0-9A-Za-z.]+/|perma:|ark:)\S+", re.IGNORECASE)
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)?")


_DATES = "releaseTime publicationDate"
_TYPES = {"dataset": "Dataset", "software": "Software", "workflow": "Workflow"}
_EXTENSIONS = {
    "application/x-spss-por": "por",
    "application/x-spss-sav": "sav",
    **{f"application/x-stata{version}": "dta" for version in ("", "-6", "-13", "-14", "-15")},
    "application/x-rlang-transport": "RData",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/csv": "csv",
    "text/comma-separated-values": "csv",
    "text/tsv": "tsv",
}
"""File extensions of original formats, for installations that do not give the original's name."""


@dataclass(frozen=True, slots=True)
class Persistent:
    """The target of a URL. `base` is the start of the installation's URLs.

    `id` is a persistent id such as doi:10.5072/FK2/ABC. `number` is an id in the database, used if
    there is no persistent id. `version` is the requested one, None for the newest. `file`: the
    target is a file of a dataset. `named`: the URL itself has an id, in Dataverse's form.
    """

    base: str
    id: str | None
    number: str | None
    version: str | None
    file: bool
    named: bool

    @property
    def api(self) -> str:
        """The start of URLs of the API."""
        return f"{self.base}/api"

    def url(self, kind: str, rest: str = "", **query: str) -> str:
        """Return the URL in the API of a dataset or file, by persistent id or number."""
        parameters = query if self.id is None else {"persistentId": self.id} | query
        name = self.number if self.id is None else ":persistentId"
        text = urlencode(parameters, safe=":/", quote_via=quote)
        return f"{self.api}/{kind}/{name}/{rest}" + (f"?{text}" if text else "")


def persistent(resource: DatasetResource) -> Persistent | None:
    """Return the target of a resource's URL, or of its DOI at the URL's host, or None."""
    parts = urlsplit(resource.url)
    query = dict(parse_qsl(parts.query))
    shape = _PAGE.fullmatch(parts.path)
    id_ = query.get("persistentId", "")
    if (handle := handle_of(id_)) and not id_.startswith(("doi:", "hdl:")):
        id_ = f"{'doi' if handle.startswith('10.') else 'hdl'}:{handle}"
    elif not _PERSISTENT.fullmatch(id_):
        id_ = ""
    number = query.get("fileId") or query.get("id") or (shape and shape["number"])
    counts = bool(shape and number and number.isdigit())
    if not id_ and not counts and resource.doi is None:
        return None
    version = query.get("version") or (shape["version"] if shape else None)
    return Persistent(
        base=json_document.base_url(resource.url) + (shape["base"] if shape else ""),
        id=id_ or (None if counts or resource.doi is None else f"doi:{resource.doi.upper()}"),
        number=number if counts else None,
        version=None if (version or "").lower() in {":latest", ":latest-published"} else version,
        file=bool(shape and shape["file"]),
        named=bool(shape and id_),
    )


@dataclass(frozen=True, slots=True)
class Dataverse:
    """The platform. `clock` gives the day to which embargoes are compared."""

    clock: Clock = lambda: datetime.now(UTC)
    facts: ClassVar[PlatformFacts] = PlatformFacts(
        "dataverse",
        "known hosts, else the host's API",
        "the original of an ingested table; restricted, embargoed, deaccessioned",
    )

    def match_request(self, resource: DatasetResource) -> bool:
        """Return whether the URL has a persistent id in Dataverse's form, or its host is listed."""
        target = persistent(resource)
        return host(resource.url) in json_document.DATAVERSE or (
            target is not None and target.named
        )

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the requested version of the dataset, or else the newest one."""
        target = persistent(resource)
        if target is None:
            if "/dataverse/" in urlsplit(resource.url).path:
                raise ScopeError("it is a collection", "collection")
            raise FilesetError("platform-404", f"{resource.url} does not name a dataset")
        if (target.version or "").lower() in {"draft", ":draft"}:
            raise ScopeError(f"{resource.url} is a draft", "draft")
        if target.file:
            raise _file(target, api)
        dataset = _dataset(target, api)
        version = _version(target, dataset, api)
        today = self.clock().date().isoformat()
        listed = objects_of(version.get("files", []), "the files")
        files = tuple(_listed_file(file, target.api, today) for file in listed)
        return _item(target, dataset, version, files)


def _file(target: Persistent, api: Api) -> FilesetError:
    """Return the error for a request for one file; it names the dataset."""
    url = target.url("files", returnDatasetVersion="true")
    file = inner(mapping(api.document(url), "the file"), "data")
    parent = text(inner(file, "datasetVersion").get("datasetPersistentId"))
    name = text(file.get("label")) or target.id or target.number
    of = f" of the dataset {parent}" if parent else ""
    return ScopeError(f"{name} is one file{of}", "file-level")


def _dataset(target: Persistent, api: Api) -> Mapping[str, Any]:
    """Return a dataset with its newest version. Raises FilesetError."""
    try:
        answer = api.document(target.url("datasets"))
    except FilesetError as error:
        if error.status != "platform-404" or target.id is None:
            raise
        try:  # most persistent ids are those of files
            refusal = _file(target, api)
        except FilesetError:
            raise error from None
        raise refusal from error
    return mapping(mapping(answer, "the dataset").get("data"), "the dataset")


def _version(target: Persistent, dataset: Mapping[str, Any], api: Api) -> Mapping[str, Any]:
    """Return the requested version; empty if the dataset has none any more.

    A whole number requests the newest of its minor versions.
    """
    newest = inner(dataset, "latestVersion")
    wanted = target.version
    if wanted is None or not newest or _is(newest, wanted):
        return newest
    detail = f"it has no version {wanted}"
    if not _VERSION.fullmatch(wanted):
        raise ScopeError(detail, "wrong-version")
    try:
        answer = mapping(api.document(target.url("datasets", f"versions/{wanted}")), "the version")
    except FilesetError as error:
        if error.status != "platform-404":
            raise
        raise ScopeError(detail, "wrong-version") from error
    version = mapping(answer.get("data"), "the version")
    if not _is(version, wanted):
        detail = f"requested version {wanted}, received {_number(version)}"
        raise ScopeError(detail, "wrong-version")
    return version


def _number(version: Mapping[str, Any]) -> str | None:
    major = text(version.get("versionNumber"))
    return major and f"{major}.{text(version.get('versionMinorNumber')) or 0}"


def _is(version: Mapping[str, Any], wanted: str) -> bool:
    number = _number(version) or ""
    return number == wanted or ("." not in wanted and number.partition(".")[0] == wanted)


def _item(
    target: Persistent,
    dataset: Mapping[str, Any],
    version: Mapping[str, Any],
    files: tuple[FilesetManifestFile, ...],
) -> FilesetPlatformItem:
    days = [day for file in files if (day := file.extra.get("until"))]
    until = min(days, default=None)
    status, detail = _status(version, files, until)
    if status == "platform-gone":
        files = ()
    id, number = _id(dataset, version), _number(version)
    page = f"{target.base}/dataset.xhtml?persistentId={quote(id, safe=':/')}"
    of_version = f"/versions/{number}" if number else "/"
    bundle = f"{target.api}/access/dataset/:persistentId{of_version}?persistentId={quote(id, ':/')}"
    return FilesetPlatformItem(
        platform_name="dataverse",
        platform_status=status,
        platform_domain=host(target.base),
        platform_id=id,
        version=number,
        manifest=files,
        until=until,
        web_base_url=page + (f"&version={number}" if number else ""),
        web_bundle_url=f"{bundle}&format=original" if status == "success" else None,
        detail=detail,
        description=replace(_describe(dataset, version, id), version=number),
    )


def _status(
    version: Mapping[str, Any], files: tuple[FilesetManifestFile, ...], until: str | None
) -> tuple[str, str]:
    """Return an item's status and a detail. Raises FilesetError for a draft."""
    state = (text(version.get("versionState")) or "").upper()
    if state == "DRAFT":
        raise ScopeError("it is a draft", "draft")
    if not version or state == "DEACCESSIONED":
        return "platform-gone", text(version.get("versionNote")) or "it was deaccessioned"
    if not files:
        return "empty-manifest", ""
    if all(file.status == "withheld" for file in files):
        return ("platform-embargoed", "") if until else ("platform-restricted", "")
    return "success", ""


def _id(dataset: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    """Return the persistent id, which is the same for all versions."""
    whole = text(version.get("datasetPersistentId"))
    parts = [text(dataset.get(name)) for name in ("protocol", "authority", "identifier")]
    if whole is None and all(parts):
        apart = dataset.get("separator")  # an empty one is the usual one of perma
        whole = f"{parts[0]}:{parts[1]}{apart if isinstance(apart, str) else '/'}{parts[2]}"
    if whole is None:
        raise FilesetError("platform-bad-response", "the dataset has no persistent id")
    return whole


def _describe(
    dataset: Mapping[str, Any], version: Mapping[str, Any], persistent: str
) -> Description:
    """Return the description of a dataset's version; `persistent` is its persistent id."""
    fields = {
        text(field.get("typeName")): field.get("value")
        for field in entries(inner(version, "metadataBlocks", "citation").get("fields"))
    }
    return Description(
        title=plain_text(fields.get("title")),
        creators=tuple(_people(fields.get("author"), "author")),
        contributors=tuple(_people(fields.get("contributor"), "contributor")),
        publisher=plain_text(dataset.get("publisher")),
        published=first_at(version, _DATES, day) or first_at(dataset, _DATES, day),
        type=general_type(dataset.get("datasetType"), _TYPES),
        abstract="\n\n".join(_parts(fields.get("dsDescription"), "dsDescriptionValue")) or None,
        subjects=texts(
            [*texts(fields.get("subject")), *_parts(fields.get("keyword"), "keywordValue")]
        ),
        licences=_licences(version),
        doi=doi(persistent),
        url=web(dataset.get("persistentUrl")),
        related=tuple(_relations(fields.get("publication"))),
    )


def _value(compound: Mapping[str, Any], name: str) -> str | None:
    """Return a part of a compound field; a term of an external vocabulary gives its label."""
    field = inner(compound, name)
    terms = inner(field, "expandedvalue")
    return plain_text(text(terms.get("termName")) or text(field.get("value")))


def _parts(compounds: object, name: str) -> list[str]:
    return [part for compound in entries(compounds) if (part := _value(compound, name))]


def _people(compounds: object, kind: str) -> Iterator[Person]:
    for compound in entries(compounds):
        person = person_from_text(_value(compound, f"{kind}Name"))
        if person is None:
            continue
        kind_of = _value(compound, "contributorType")
        if kind_of == "Funder":  # DataCite has a separate property for funders
            continue
        affiliation = _value(compound, f"{kind}Affiliation")
        yield replace(
            person,
            orcid=orcid(_raw(compound, f"{kind}Identifier")),
            affiliations=(affiliation.strip("()"),) if affiliation else (),
            organisation=_value(compound, f"{kind}IdentifierScheme") in {"ROR", "GRID"},
            role=contributor_type(kind_of) if kind == "contributor" else None,
        )


def _raw(compound: Mapping[str, Any], name: str) -> object:
    return inner(compound, name).get("value")


def _licences(version: Mapping[str, Any]) -> tuple[Licence, ...]:
    """Return the licence, or the terms of use as text."""
    licence = version.get("license")
    if isinstance(licence, Mapping):
        name = text(licence.get("name"))
        identifier = (
            text(licence.get("rightsIdentifier")) or spdx(text(licence.get("uri"))) or spdx(name)
        )
        return (Licence(name, identifier, web(licence.get("uri"))),) if name or identifier else ()
    if text(licence) not in (None, "NONE"):
        return licences(name=licence)
    terms = plain_text(version.get("termsOfUse"))
    return (Licence(terms),) if terms else ()


def _relations(compounds: object) -> Iterator[Related]:
    """Yield the dataset's related publications."""
    for compound in entries(compounds):
        how = _value(compound, "publicationRelationType") or "IsSupplementTo"
        scheme, number = (text(_raw(compound, f"publicationID{n}")) for n in ("Type", "Number"))
        named = doi(number) if (scheme or "").lower() == "doi" else number
        yield from relate_by_scheme(named, scheme, how) or relate_by_scheme(
            web(_raw(compound, "publicationURL")), "url", how
        )


def _listed_file(file: Mapping[str, Any], api: str, today: str) -> FilesetManifestFile:
    """Return a file as it is available on a day (W3CDTF); `api` is the start of the API's URLs."""
    data = mapping(file.get("dataFile", file.get("datafile")), "a file")
    number = size(data.get("id"))
    path = name(file.get("label") or data.get("filename"), "a file")
    if number is None:
        raise FilesetError("platform-bad-response", f"{path} has no number")
    url = f"{api}/access/datafile/{number}"
    extra: dict[str, Any] = {"id": str(number)}
    length, kind = data.get("filesize"), data.get("contentType")
    original = text(data.get("originalFileFormat")) or text(data.get("originalFileName"))
    if original is not None:
        extra["derived"] = path
        ending = _EXTENSIONS.get(original)
        likely = f"{path.removesuffix('.tab')}.{ending}" if ending else path
        path = text(data.get("originalFileName")) or likely
        url, length = f"{url}?format=original", data.get("originalFileSize")
        kind = data.get("originalFileFormat")
    folder = (text(file.get("directoryLabel")) or "").strip("/")
    why, checksum = _withheld(file, data, today), inner(data, "checksum")
    return FilesetManifestFile(
        path=f"{folder}/{path}" if folder else path,
        size=size(length),
        mimetype=text(kind),
        extra=extra | why,
        status="withheld" if why else None,
        platform_url=url,
        **(digests("MD5", data.get("md5")) | digests(checksum.get("type"), checksum.get("value"))),
    )


def _withheld(file: Mapping[str, Any], data: Mapping[str, Any], today: str) -> dict[str, str]:
    """Return the reason why the platform withholds a file, empty if it does not."""
    available = day(inner(data, "embargo").get("dateAvailable"))
    if available and available > today:
        return {"withheld": "embargoed", "until": available}
    ends = day(inner(data, "retention").get("dateUnavailable"))
    if ends and ends <= today:
        return {"withheld": "its retention has ended"}
    restricted = file.get("restricted") is True or data.get("restricted") is True
    return {"withheld": "restricted"} if restricted else {}
