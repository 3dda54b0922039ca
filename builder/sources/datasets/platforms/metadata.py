"""Metadata of platforms in DataCite's terms: persons, licences, relations and texts.

Licences get SPDX ids, persons get ORCID iDs, and HTML descriptions become plain text.

DataCite's own record of a DOI was compared and left. That of an article of Figshare has neither
abstract nor subjects, and half of the platforms have datasets without a DOI. A description would
also change with whether DataCite answers, and then be published again.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from html.parser import HTMLParser

from builder.sources.datasets.item import Licence, Person, Related
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import first_at, text, values_at, web
from functions.kinds.datasets.datacite import RELATIONS

_COMMONS = re.compile(
    r"https?://creativecommons\.org/licen[cs]es/(by(?:-nc)?(?:-nd|-sa)?)/([1-4]\.\d)(?:/.*)?", re.I
)
_NAMED = re.compile(r"cc[ -](by(?:-nc)?(?:-nd|-sa)?)[ -]v?([1-4]\.\d)", re.I)
_SPDX = re.compile(r"https?://spdx\.org/licenses/([A-Za-z0-9.+-]+?)(?:\.html|\.json)?", re.I)
_ZERO = re.compile(
    r"https?://creativecommons\.org/publicdomain/zero/1\.0(?:/.*)?"
    r"|cc[ -]?(?:0|zero)(?:[ -]1\.0)?(?: universal)?",
    re.I,
)
_OTHERS = {
    "mit": "MIT",
    "mit license": "MIT",
    "apache 2.0": "Apache-2.0",
    "apache-2.0": "Apache-2.0",
    "gpl 2.0+": "GPL-2.0-or-later",
    "gpl 3.0+": "GPL-3.0-or-later",
    "odc-by": "ODC-By-1.0",
    "odc-odbl": "ODbL-1.0",
    "odc-pddl": "PDDL-1.0",
}
"""Platforms' names of licences, in lower case. Names without a version are left out."""
_ORCID = re.compile(r"(?:https?://(?:www\.)?orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])/?", re.I)
_BREAK_TAGS = """
address article br dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p pre tr ul
"""
_BREAKS = frozenset(_BREAK_TAGS.split())
_HIDDEN = frozenset(("script", "style"))
_MARKUP = re.compile(r"<[a-zA-Z/!]|&(?:#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z]+);")
_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*")
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_BY_LOWER = {relation.lower(): relation for relation in RELATIONS}
_ARXIV = re.compile(r"arxiv:\s*(\d{4}\.\d{4,5}(?:v\d+)?|[a-z-]+(?:\.[A-Z]{2})?/\d{7})", re.I)
_HANDLE = re.compile(r"(?:https?://hdl\.handle\.net/|hdl:)(\S+/\S+)", re.I)
_ROLES = """
ContactPerson DataCollector DataCurator DataManager Distributor Editor HostingInstitution Producer
ProjectLeader ProjectManager ProjectMember RegistrationAgency RegistrationAuthority RelatedPerson
Researcher ResearchGroup RightsHolder Sponsor Supervisor WorkPackageLeader
"""
_CONTRIBUTORS = {name.lower(): name for name in _ROLES.split()}
_SCHEME_NAMES = """
ARK arXiv bibcode DOI EAN13 EISSN Handle IGSN ISBN ISSN ISTC LSID PMID PURL UPC URL URN w3id
"""
_SCHEMES = {name.lower(): name for name in _SCHEME_NAMES.split()} | {
    "ads": "bibcode",
    "hdl": "Handle",
}
"""Platforms' names of schemes, in lower case, and DataCite's relatedIdentifierType."""


def spdx(value: str | None) -> str | None:
    """Return the SPDX id of a licence's name or URL; None if it is uncertain."""
    if value is None:
        return None
    commons = _COMMONS.fullmatch(value) or _NAMED.fullmatch(value)
    if commons:
        return f"CC-{commons[1].upper()}-{commons[2]}"
    if _ZERO.fullmatch(value):
        return "CC0-1.0"
    listed = _SPDX.fullmatch(value)
    return listed[1] if listed else _OTHERS.get(value.lower())


def licences(*, name: object = None, url: object = None) -> tuple[Licence, ...]:
    """Return the licence with that name and URL; empty if both are missing."""
    called, address = text(name), web(url)
    if called is None and address is None:
        return ()
    return (Licence(called, spdx(address) or spdx(called), address),)


def orcid(value: object) -> str | None:
    """Return an ORCID iD without a resolver's URL; None if it or its check digit is invalid."""
    match = _ORCID.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    total = 0
    digits = match[1].replace("-", "").upper()
    for digit in digits[:-1]:
        total = (total + int(digit)) * 2
    check = (12 - total % 11) % 11
    return match[1].upper() if digits[-1] == ("X" if check == 10 else str(check)) else None


def person_from_parts(
    first_name: object, last_name: object, *, iri: object = None, affiliations: tuple[str, ...] = ()
) -> Person | None:
    """Return a person by the parts of the name, written as `Family, Given`.

    `iri` is an ORCID iD in any form. None if both parts are empty.
    """
    first, last = text(first_name), text(last_name)
    if first is None and last is None:
        return None
    return Person(
        name=", ".join(part for part in (last, first) if part),
        given=first if last else None,
        family=last if first else None,
        orcid=orcid(iri),
        affiliations=affiliations,
    )


def people_of(
    entries: Iterable[object],
    *,
    given_at: str = "",
    family_at: str = "",
    name_at: str = "",
    orcid_at: str = "",
    affiliations_at: str = "",
) -> tuple[Person, ...]:
    """Return the persons of entries, by the paths of the parts of their names.

    A person without both parts of the name is called by `name_at`, as one text.
    """
    people = []
    for entry in entries:
        iri, bodies = first_at(entry, orcid_at, orcid), texts_at(entry, affiliations_at)
        first, last = (first_at(entry, path, text) for path in (given_at, family_at))
        person = person_from_parts(first, last, iri=iri, affiliations=bodies)
        name = first_at(entry, name_at, plain_text)
        if name and not (person and person.given):
            person = Person(name=name, orcid=iri, affiliations=bodies)
        people += [person] if person else []
    return tuple(people)


def texts_at(
    document: object, paths: str, read: Callable[[object], str | None] = text
) -> tuple[str, ...]:
    """Return the distinct texts at the paths, apart by blanks."""
    values = (value for path in paths.split() for value in values_at(document, path))
    return tuple(dict.fromkeys(words for value in values if (words := read(value))))


def relate_all(works: Iterable[tuple[object, object]]) -> tuple[Related, ...]:
    """Return the works, each an identifier and a relation, that DataCite has terms for, once."""
    related = (relate(identifier, relation) for identifier, relation in works)
    return tuple(dict.fromkeys(work for work in related if work))


def people_from_texts(names: Iterable[object]) -> tuple[Person, ...]:
    """Return the persons of texts, which may be HTML."""
    people = (person_from_text(plain_text(name)) for name in names)
    return tuple(person for person in people if person)


def person_from_text(value: object) -> Person | None:
    """Return a person by one text, which is split only if it is exactly `Family, Given`.

    Years and other additions stay in the name: `Ford, David, 1761-1835` is not split.
    """
    name = text(value)
    if name is None:
        return None
    last, _, first = (part.strip() for part in name.partition(","))
    plain = last and first and "," not in first
    if not plain or any(character.isdigit() for character in name):
        return Person(name=name)
    return Person(name=name, given=first, family=last)


class _Prose(HTMLParser):
    """Collects the text of a page; a block element starts a new line."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Start a line or hidden content."""
        self._hidden += tag in _HIDDEN
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End a line or hidden content."""
        self._hidden = max(0, self._hidden - (tag in _HIDDEN))
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Add visible text."""
        if not self._hidden:
            self.parts.append(data)


def plain_text(value: object) -> str | None:
    """Return a text without HTML, in stripped lines; None if it is empty.

    A text without markup is returned as it is, and so is a `<` that starts no tag. Characters that
    XML forbids are removed.
    """
    if not isinstance(value, str):
        return None
    prose = _REFUSED.sub("", value.replace("\r", "\n"))
    if _MARKUP.search(prose):
        reader = _Prose()
        reader.feed(prose)
        reader.close()
        prose = _REFUSED.sub("", "".join(reader.parts))
    return _LINES.sub("\n", _SPACE.sub(" ", prose)).strip() or None


def relate(identifier: object, relation: object) -> Related | None:
    """Return the related identifier; None if it or its relation is unknown."""
    kind = _BY_LOWER.get(relation.lower()) if isinstance(relation, str) else None
    if kind is None or not isinstance(identifier, str):
        return None
    if doi := json_document.doi(identifier):
        return Related(doi, "DOI", kind)
    for form, name in ((_ARXIV, "arXiv"), (_HANDLE, "Handle")):
        if match := form.fullmatch(identifier.strip()):
            return Related(match[1] if name == "Handle" else f"arXiv:{match[1]}", name, kind)
    address = json_document.web(identifier)
    return Related(address, "URL", kind) if address else None


def relate_by_scheme(identifier: object, scheme: object, relation: object) -> tuple[Related, ...]:
    """Return the related identifier; empty if DataCite has no term for the scheme or relation."""
    named = text(identifier)
    kind = _SCHEMES.get((text(scheme) or "").lower())
    how = _BY_LOWER.get((text(relation) or "").lower())
    return (Related(named, kind, how),) if named and kind and how else ()


def general_type(kind: object, types: Mapping[str, str]) -> str:
    """Return DataCite's resourceTypeGeneral of a platform's type, `Other` if `types` lacks it.

    No type means Dataset.
    """
    named = text(kind)
    return "Dataset" if named is None else types.get(named.lower(), "Other")


def contributor_type(value: object) -> str:
    """Return DataCite's contributorType of a platform's role, `Other` if it has none."""
    return _CONTRIBUTORS.get((text(value) or "").lower().replace(" ", ""), "Other")
