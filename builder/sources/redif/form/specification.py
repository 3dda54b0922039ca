"""ReDIF 1.0 as a table: types of templates and clusters, and codes of diagnostics.

Sources: the specification of ReDIF-perl (July 2000), the document "ReDIF version 1" (2015), what
ReDIF-perl 2.69 knows besides, and the DOI, which IDEAS documents.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

# NAME, :KIND of value, >CLUSTER that the name is a prefix of, and flags: ! required, ^ at most
# once, * the key that opens a cluster, ~ deprecated, =NAME that it is filed as.
_ENTRY = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9-]*)(?::(?P<kind>\w+))?(?:>(?P<cluster>\w+))?"
    r"(?P<flags>[!^*~]*)(?:=(?P<filed>\w+))?"
)

_CLUSTERS = {
    "organization": """
        Name* Name-English Homepage:url Postal Location Email:email Phone Fax
        Institution:institution Share
    """,
    "person": """
        Name* Name-First Name-Last Email:email Fax Phone Postal Homepage:url Person:person
        WorkPlace>organization
    """,
    "file": "URL:url* Format:mime Function Size:size Restriction",
}

_RESOURCE = """
    Title! Author>person! File>file Abstract Classification-JEL:jel Classification-ACM-1998
    Classification-MSC-1991 Classification-MSC-2000 Classification-arXiv Keywords Keywords-Attent
    Keywords-CogPrints Creation-Date:date Revision-Date:date Publication-Status:status
    Publication-Type Note Language Length Number Series Price Restriction Notification
    Availability Contact-Email:email Order-URL:url DOI:doi Article-Handle:document
    Book-Handle:document Chapter-Handle:document Paper-Handle:document Software-Handle:document
    Handle:document!^
"""
_SERIAL = "Journal Volume Issue Year Month Pages"
_BOUND = """
    Editor>person Provider>organization Publisher>organization~=provider Volume Issue Edition Year
    Month Pages ISBN Publication-Date:date
"""
_MAINTAINED = "Maintainer-Email:email! Maintainer-Name Maintainer-Phone Maintainer-Fax"

_TEMPLATES = {
    "ReDIF-Paper 1.0": f"{_RESOURCE} {_SERIAL} Editor>person Comments-Paper",
    "ReDIF-Article 1.0": f"{_RESOURCE} {_SERIAL} Editor>person Publication-Date:date~",
    "ReDIF-Chapter 1.0": f"{_RESOURCE} {_BOUND} Book-Title In-Book:document Chapter",
    "ReDIF-Book 1.0": f"{_RESOURCE} {_BOUND} HasChapter:document",
    "ReDIF-Software 1.0": f"{_RESOURCE} Programming-Language Requires Size Version",
    "ReDIF-Archive 1.0": f"""
        Name! URL:url! Homepage:url Description {_MAINTAINED} Access-Policy Restriction
        Notification Classification-JEL:jel Handle:archive!^
    """,
    "ReDIF-Series 1.0": f"""
        Name! Type:type Description {_MAINTAINED} Editor>person Provider>organization
        Publisher>organization~=provider Provider-Institution:institution~ Classification-JEL:jel
        Classification-ILA Keywords Order-Email:email Order-Homepage:url Order-Postal Price
        Restriction Notification ISSN Followup:series Predecessor:series Handle:series!^
    """,
    "ReDIF-Person 1.0": """
        Name-Full! Name-First Name-Middle Name-Last Name-Prefix Name-Suffix Name-ASCII
        Email:email Homepage:url Fax Phone Postal Workplace>organization
        Workplace-Organization Workplace-Institution:institution Classification-JEL:jel
        Author-Paper:document Author-Article:document Author-Software:document
        Author-Book:document Author-Chapter:document Editor-Book:document Editor-Series:series
        Short-Id Last-Login-Date Registered-Date Handle:person!^
    """,
    "ReDIF-Institution 1.0": """
        Primary>organization Primary-Area Primary-Defunct Secondary>organization Secondary-Area
        Secondary-Defunct Tertiary>organization Tertiary-Area Tertiary-Defunct
        Quaternary>organization Quaternary-Area Quaternary-Defunct Handle:institution!^
    """,
}

_EITHER = {"ReDIF-Book 1.0": frozenset({"Author-Name", "Editor-Name"})}
"""Types that require one of two attributes."""

OBSOLETE = {"redif-mirror": "ReDIF-Mirror 1.0", "redif-authority": "ReDIF-Authority 1.0"}
"""Types that were once in use and that ReDIF-perl does not know."""

LONGEST = {"title": 1000, "abstract": 4200, "keywords": 1500, "handle": 120}
"""The usual most characters of a value, by the attribute's own name; for URLs, URL_LONGEST."""
URL_LONGEST = 500
UNBOUNDED = 1 << 30
ERROR, WARNING = "error", "warning"

CODES: dict[str, str] = {
    "unreadable": "the file cannot be opened, or cannot be read to its end",
    "empty-file": "the file has no bytes",
    "html": "the file is a page of HTML, which servers often send for a missing file",
    "no-template": "no line of the file begins a template",
    "start-with-template-type": "an attribute is before the first Template-Type",
    "bad-line": "a line before the first template is not ReDIF",
    "template-too-large": "a template exceeds the limit, and was cut off",
    "undecodable": "a template has undecodable bytes, or the character U+FFFD",
    "other-encoding": "a template without a declared encoding looks like text of another alphabet",
    "control-character": "a template has control characters, which XML 1.0 forbids",
    "unknown-template-type": "Template-Type has a type unknown to ReDIF 1.0, or no version",
    "unknown-attribute": "neither this type of template nor its clusters have the attribute",
    "misplaced-attribute": "an attribute of a cluster is where no such cluster is open",
    "cannot-repeat": "an attribute that is allowed once occurs again",
    "required-absent": "a template lacks a required attribute",
    "key-empty": "an attribute that opens a cluster has no value",
    "invalid-value": "a value is invalid for its attribute",
    "url-split": "a URL is broken after a hyphen, so it cannot be joined safely",
    "url-space": "a URL contained white space, which was removed",
    "too-long": "a value is longer than usual",
    "too-short": "a value has one character",
    "deprecated": "an attribute is deprecated",
    "repeated-handle": "an earlier template of the same run has this handle",
}
"""The meaning of each code, for people."""


@dataclass(frozen=True, slots=True)
class AttributePlace:
    """Where an attribute belongs, and its rules."""

    name: str
    """The whole name in its usual spelling."""
    path: tuple[str, ...]
    """The clusters around it, from the outermost: ("author", "workplace")."""
    member: str
    """Its own name there, in lower case; `path` of a key includes the key's cluster."""
    kind: str | None
    key: bool
    once: bool
    required: bool
    deprecated: bool
    longest: int
    """The usual most characters of a value; UNBOUNDED without a limit."""
    filed: str
    """The name under which its cluster is filed."""
    watched: bool
    """Whether there is more to check than the value's form and length."""


@dataclass(frozen=True)
class Specification:
    """The attributes of a type of template."""

    type: str
    places: Mapping[str, tuple[AttributePlace, ...]] = field(repr=False)
    """By the whole name in lower case and in its usual spelling; several if a cluster's attribute
    is also one of the template."""
    required: tuple[tuple[AttributePlace, ...], ...] = ()
    """Groups of attributes; one attribute of each group is required."""

    @cached_property
    def known_names(self) -> frozenset[str]:
        """All names in lower case."""
        return frozenset(map(str.lower, self.places))

    @cached_property
    def openers(self) -> dict[tuple[str, ...], str]:
        """The names of the keys that open the clusters of each path, for people."""
        keys: dict[tuple[str, ...], set[str]] = {}
        for places in self.places.values():
            for place in places:
                if place.key:
                    keys.setdefault(place.path, set()).add(place.name)
        return {path: " or ".join(sorted(names)) for path, names in keys.items()}


def _walk(
    notation: str, written: str, path: tuple[str, ...], filed: str, deprecated: bool, outer: bool
) -> list[AttributePlace]:
    """Return the places of the attributes of a type or cluster, and of its inner clusters."""
    places: list[AttributePlace] = []
    for match in _ENTRY.finditer(notation):
        name, flags, cluster = match["name"], match["flags"], match["cluster"]
        own, kind = name.lower(), match["kind"]
        old = deprecated or "~" in flags
        if cluster:
            places += _walk(
                _CLUSTERS[cluster],
                f"{written}{name}-",
                (*path, own),
                match["filed"] or own,
                old,
                outer and "!" in flags,
            )
            continue
        longest = URL_LONGEST if kind == "url" else LONGEST.get(own, UNBOUNDED)
        key, once = "*" in flags, "^" in flags
        required = "!" in flags or (outer and bool(path) and key)
        watched = once or (old and (key or not path))
        places.append(
            AttributePlace(
                written + name, path, own, kind, key, once, required, old, longest, filed, watched
            )
        )
    return places


def _specification(type_: str, notation: str) -> Specification:
    places: dict[str, tuple[AttributePlace, ...]] = {}
    for place in _walk(f"Template-Type {notation}", "", (), "", False, True):
        for name in {place.name, place.name.lower()}:
            both = (*places.get(name, ()), place)
            places[name] = tuple(sorted(both, key=lambda place: -len(place.path)))
    either = _EITHER.get(type_, frozenset())
    required = [(place,) for (place, *_) in places.values() if place.required]
    alone = [group for group in dict.fromkeys(required) if group[0].name not in either]
    together = [tuple(places[name][0] for name in sorted(either))] if either else []
    return Specification(type_, places, (*together, *alone))


SPECIFICATIONS = {
    type_.lower(): _specification(type_, notation) for type_, notation in _TEMPLATES.items()
}
"""By the type in lower case, with its version."""

NAMES = frozenset().union(
    *(
        {place.name for places in specification.places.values() for place in places}
        for specification in SPECIFICATIONS.values()
    )
)
"""The names of all attributes in their usual spelling."""

_BY_WORD = {
    type_.partition("-")[2].partition(" ")[0]: specification
    for type_, specification in SPECIFICATIONS.items()
}
_LOOSE = re.compile(r"redif[-_ ]*([a-z]+)", re.IGNORECASE)


def guess_type(written: str) -> Specification | None:
    """Return the likely type of a Template-Type, None if there is no clue.

    `ReDIF-Paper`, `ReDIF-Article1.0` and `ReDIF-Series 1.0<br />` are no types, but are clear.
    """
    match = _LOOSE.match(written)
    return _BY_WORD.get(match[1].lower()) if match else None


class Diagnostic(NamedTuple):
    """A problem at a line of a file. `suggestion` is the likely meaning, or empty."""

    file: str
    line: int
    """From 1; 0 for the whole file."""
    code: str
    severity: str
    message: str
    suggestion: str = ""
