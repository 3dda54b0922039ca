"""Metadata of a Dataverse dataset: its citation block and its files.

For an ingested table, digests and original size describe the uploaded file. Dataverse serves a
derived table by default, so the original is requested. Files are requested by number, which all
have; many have no persistent id.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from builder.filesets.item import Description, FilesetManifestFile, Licence, Person, Related
from builder.filesets.platforms.json_document import (
    day,
    digests,
    doi,
    entries,
    inner,
    mapping,
    name,
    objects_of,
    size,
    text,
    texts,
    web,
)
from builder.filesets.platforms.metadata import (
    contributor_type,
    general_type,
    licences,
    orcid,
    person_from_text,
    plain_text,
    relate_by_scheme,
    spdx,
)
from builder.filesets.protocols import FilesetError

_ORGANISATIONS = frozenset({"ROR", "GRID"})
_TYPES = {"dataset": "Dataset", "software": "Software", "workflow": "Workflow"}
_EXTENSIONS = {
    "application/x-spss-por": "por",
    "application/x-spss-sav": "sav",
    "application/x-stata": "dta",
    "application/x-stata-6": "dta",
    "application/x-stata-13": "dta",
    "application/x-stata-14": "dta",
    "application/x-stata-15": "dta",
    "application/x-rlang-transport": "RData",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/csv": "csv",
    "text/comma-separated-values": "csv",
    "text/tsv": "tsv",
}
"""File extensions of original formats, for installations that do not give the original's name."""


def describe(
    dataset: Mapping[str, Any], version: Mapping[str, Any], persistent: str
) -> Description:
    """Return the description of a dataset's version; `persistent` is its persistent id."""
    fields = {
        text(field.get("typeName")): field.get("value")
        for field in entries(inner(version, "metadataBlocks", "citation").get("fields"))
    }
    published = next(
        (
            found
            for given in (version, dataset)
            for name in ("releaseTime", "publicationDate")
            if (found := day(given.get(name)))
        ),
        None,
    )
    return Description(
        title=plain_text(fields.get("title")),
        creators=tuple(_people(fields.get("author"), "author")),
        contributors=tuple(_people(fields.get("contributor"), "contributor")),
        publisher=plain_text(dataset.get("publisher")),
        published=published,
        type=general_type(dataset.get("datasetType"), _TYPES),
        abstract="\n\n".join(_parts(fields.get("dsDescription"), "dsDescriptionValue")) or None,
        subjects=tuple(
            dict.fromkeys(
                [*texts(fields.get("subject")), *_parts(fields.get("keyword"), "keywordValue")]
            )
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
    return [found for one in entries(compounds) if (found := _value(one, name))]


def _people(compounds: object, kind: str) -> Iterator[Person]:
    for one in entries(compounds):
        person = person_from_text(_value(one, f"{kind}Name"))
        if person is None:
            continue
        kind_of = _value(one, "contributorType")
        if kind_of == "Funder":  # DataCite has a separate property for funders
            continue
        affiliation = _value(one, f"{kind}Affiliation")
        yield replace(
            person,
            orcid=orcid(_raw(one, f"{kind}Identifier")),
            affiliations=(affiliation.strip("()"),) if affiliation else (),
            organisation=_value(one, f"{kind}IdentifierScheme") in _ORGANISATIONS,
            role=contributor_type(kind_of) if kind == "contributor" else None,
        )


def _raw(compound: Mapping[str, Any], name: str) -> object:
    return inner(compound, name).get("value")


def _licences(version: Mapping[str, Any]) -> tuple[Licence, ...]:
    """Return the licence, or the terms of use as text."""
    given = version.get("license")
    if isinstance(given, Mapping):
        name = text(given.get("name"))
        known = text(given.get("rightsIdentifier")) or spdx(text(given.get("uri"))) or spdx(name)
        return (Licence(name, known, web(given.get("uri"))),) if name or known else ()
    if text(given) not in (None, "NONE"):
        return licences(name=given)
    terms = plain_text(version.get("termsOfUse"))
    return (Licence(terms),) if terms else ()


def _relations(compounds: object) -> Iterator[Related]:
    """Yield the dataset's related publications."""
    for one in entries(compounds):
        how = _value(one, "publicationRelationType") or "IsSupplementTo"
        scheme, number = (text(_raw(one, f"publicationID{n}")) for n in ("Type", "Number"))
        named = doi(number) if (scheme or "").lower() == "doi" else number
        found = relate_by_scheme(named, scheme, how) or relate_by_scheme(
            web(_raw(one, "publicationURL")), "url", how
        )
        yield from found


def manifest(version: Mapping[str, Any], api: str, today: str) -> tuple[FilesetManifestFile, ...]:
    """Return the files of a version, as available on a day (W3CDTF).

    `api` is the start of the API's URLs. Raises FilesetError (platform-bad-response).
    """
    files = objects_of(version.get("files", []), "the files")
    return tuple(_file(file, api, today) for file in files)


def _file(file: Mapping[str, Any], api: str, today: str) -> FilesetManifestFile:
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
        path = text(data.get("originalFileName")) or _original_name(path, original)
        url, length = f"{url}?format=original", data.get("originalFileSize")
        kind = data.get("originalFileFormat")
    folder = (text(file.get("directoryLabel")) or "").strip("/")
    why = _withheld(file, data, today)
    return FilesetManifestFile(
        path=f"{folder}/{path}" if folder else path,
        size=size(length),
        mimetype=text(kind),
        extra=extra | why,
        status="withheld" if why else None,
        platform_url=url,
        **_digests(data),
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


def _original_name(table: str, original: str) -> str:
    """Return the likely name of the original, from the name of the derived table."""
    extension = _EXTENSIONS.get(original)
    return f"{table.removesuffix('.tab')}.{extension}" if extension else table


def _digests(data: Mapping[str, Any]) -> dict[str, Any]:
    checksum = inner(data, "checksum")
    return digests("MD5", data.get("md5")) | digests(checksum.get("type"), checksum.get("value"))
