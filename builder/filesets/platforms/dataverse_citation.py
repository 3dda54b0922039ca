"""Parser for the citation block of Dataverse's metadata."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from builder.filesets.item import Description, Licence, Person, Related
from builder.filesets.metadata.json_document import day, doi, entries, inner, text, texts, web
from builder.filesets.metadata.licence import licences, spdx
from builder.filesets.metadata.person import from_text, orcid
from builder.filesets.metadata.prose import plain
from builder.filesets.metadata.term import general, relate, role

_ORGANISATIONS = frozenset({"ROR", "GRID"})
_TYPES = {"dataset": "Dataset", "software": "Software", "workflow": "Workflow"}


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
        title=plain(fields.get("title")),
        creators=tuple(_people(fields.get("author"), "author")),
        contributors=tuple(_people(fields.get("contributor"), "contributor")),
        publisher=plain(dataset.get("publisher")),
        published=published,
        type=general(dataset.get("datasetType"), _TYPES),
        abstract="\n\n".join(_parts(fields.get("dsDescription"), "dsDescriptionValue")) or None,
        subjects=tuple(
            dict.fromkeys(
                [*texts(fields.get("subject")), *_parts(fields.get("keyword"), "keywordValue")]
            )
        ),
        licences=_licences(version),
        version=_version(version),
        doi=doi(persistent),
        url=web(dataset.get("persistentUrl")),
        related=tuple(_relations(fields.get("publication"))),
    )


def _version(version: Mapping[str, Any]) -> str | None:
    major, minor = (text(version.get(n)) for n in ("versionNumber", "versionMinorNumber"))
    return major and f"{major}.{minor or 0}"


def _value(compound: Mapping[str, Any], name: str) -> str | None:
    """Return a part of a compound field; a term of an external vocabulary gives its label."""
    field = inner(compound, name)
    terms = inner(field, "expandedvalue")
    return plain(text(terms.get("termName")) or text(field.get("value")))


def _parts(compounds: object, name: str) -> list[str]:
    return [found for one in entries(compounds) if (found := _value(one, name))]


def _people(compounds: object, kind: str) -> Iterator[Person]:
    for one in entries(compounds):
        person = from_text(_value(one, f"{kind}Name"))
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
            role=role(kind_of) if kind == "contributor" else None,
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
    terms = plain(version.get("termsOfUse"))
    return (Licence(terms),) if terms else ()


def _relations(compounds: object) -> Iterator[Related]:
    """Yield the dataset's related publications."""
    for one in entries(compounds):
        how = _value(one, "publicationRelationType") or "IsSupplementTo"
        scheme, number = (text(_raw(one, f"publicationID{n}")) for n in ("Type", "Number"))
        named = doi(number) if (scheme or "").lower() == "doi" else number
        found = relate(named, scheme, how) or relate(web(_raw(one, "publicationURL")), "url", how)
        yield from found
