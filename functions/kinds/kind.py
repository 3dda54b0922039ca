"""The shape of a kind of item: how it is stored, and what searches, pages and answers ask of it."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import msgspec

from functions.snapshot.manifest import Manifest
from functions.snapshot.schema import Column

Fields = Mapping[str, Any]
"""The fields of an item: columns of records, or the members of its document."""
_DOI = re.compile(r"(?:(?:doi|info:doi/):?\s*|https?://(?:dx\.)?doi\.org/)?(10\.\d{3,9}/\S+)", re.I)
_HANDLE = re.compile(r"(?:hdl:|info:hdl/)(\S+)", re.I)
_ORCID = re.compile(r"(?:https?://orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])")
_WEB = ("http://", "https://")
_COMMONS = re.compile(
    r"creativecommons\.org/(?:licenses/([a-z-]+)|publicdomain/(zero|mark))/(\d\.\d)(?:/([a-z]{2})\b)?"
)


@dataclass(frozen=True, slots=True)
class LinkedName:
    """A name, and a URL about what it names, or the handle of an item; "" if there is none."""

    name: str
    link: str = ""


@dataclass(frozen=True, slots=True)
class CitedWork:
    """What is known of a work; "" or nothing for what is unknown.

    `date` is in W3CDTF where its source is. `type` is as written. `container` is the journal, the
    series or the book that it is in. `issn` and `isbn` are as written.
    """

    creators: tuple[LinkedName, ...] = ()
    contributors: tuple[LinkedName, ...] = ()
    date: str = ""
    abstract: str = ""
    subjects: tuple[str, ...] = ()
    licences: tuple[LinkedName, ...] = ()
    type: str = ""
    language: str = ""
    publisher: str = ""
    container: str = ""
    volume: str = ""
    issue: str = ""
    pages: str = ""
    issn: str = ""
    isbn: str = ""
    url: str = ""
    doi: str = ""
    identifiers: tuple[LinkedName, ...] = field(default_factory=tuple)


def find_title(fields: Fields) -> str | None:
    """Return the title or name of an item, or its URL."""
    return next((fields[name] for name in ("title", "name", "url") if fields.get(name)), None)


def list_creators(fields: Fields) -> list[str]:
    """Return the names of an item's creators."""
    creators = fields.get("creators") or ()
    return [c["name"] for c in creators if isinstance(c, Mapping) and c.get("name")]


@lru_cache(maxsize=4096)
def source_url(place: str, name: str, safe: str = "") -> str:
    """Return the URL of a file in the folder `place`; characters in `safe` are not escaped."""
    folder = place if place.endswith("/") else f"{place}/"
    return folder + quote(name, safe=safe, errors="replace")


@dataclass(frozen=True, slots=True, eq=False)
class ItemKind:
    """A kind of item. What it does not need, it leaves out. Functions take the fields of an item.

    `name` is in the column `kind` of records. The fields of an item are `columns`: in captures
    columns of records, in other items members of a JSON document. That is in the column `document`
    if `is_documented`, else in the table of documents; it may lack those in `computed`. `clean`
    removes the markup of HTML. With `is_read_in_parts`, pages read only the members they need.

    `title`, `authors` and `url` return what they say, `texts` what a search finds, the title first,
    `date` the day of the capture or of publication, which begins with the year, and `search_date`
    the same for a search, if it differs. `work` returns what is cited, which shows the columns and
    attributes `carded`. `type` is that of schema.org, which may depend on the word of the field
    `type`. `attributes` returns further fields of a page: key, name, meaning and value.

    `has_files` tells whether the document lists archived files, `has_bytes` whether the item has
    bytes of its own. `named_files` returns the URLs, with media types, of an object of interest,
    whose versions are kept. `of_name` and `of_set` return the identifier of the item that clients
    call so, or that describes a set; `name_of` returns that name of an identifier. `view` is where
    analysts find its rows on a page, `table` where they have columns of their own, and `terms` are
    those of its use. `sql_texts` are those in SQL, for many documents: the JSON shape of what is
    read as `read`, the list of its texts, and a text that may end the identifier, after a colon.

    `source` is the column that names the source file. `origin` returns its URL below the place that
    `origin_key` configures, and its datestamp, from the `origin_columns`.

    `template` is that of a record, and `filters` loads those of crosswalks. `in_format` returns the
    fields in a format with that prefix and namespace, none if the item is deleted in it, and None
    if it never came in it; without it, each format has each item. `sample` returns fields to try
    such a format, in which texts are XML. If it `has_offers`, each snapshot names the formats of
    its items (Manifest.offers), whose XML is printed as it is.

    `status` are the label of a line of `sheaf status` that counts its items, and their noun, if the
    label does not say it. Kinds with the same are counted together.
    """

    name: str
    columns: tuple[Column, ...]
    is_documented: bool = True
    computed: frozenset[str] = frozenset()
    clean: Callable[[dict[str, Any]], None] | None = None
    is_read_in_parts: bool = False
    title: Callable[[Fields], str | None] = find_title
    texts: Callable[[Fields], Sequence[Any]] = lambda f: (find_title(f), f.get("set_spec"))
    authors: Callable[[Fields], list[str]] = list_creators
    date: Callable[[Fields], Any] = lambda f: f.get("fetch_date") or f.get("published")
    search_date: Callable[[Fields], Any] | None = None
    url: Callable[[Fields], Any] = lambda f: f.get("url")
    is_capture: bool = False
    has_files: bool = False
    has_bytes: Callable[[Fields], bool] = lambda f: False
    named_files: Callable[[Fields], Iterable[tuple[str, str | None]]] | None = None
    source: str = ""
    origin_key: str = ""
    origin_namespace: str = ""
    origin_columns: tuple[str, ...] = ()
    origin: Callable[[Fields, str], tuple[str, str] | None] = lambda f, place: None
    of_name: Callable[[Manifest, str], str | None] = lambda manifest, name: None
    name_of: Callable[[Manifest, str], str | None] = lambda manifest, identifier: None
    of_set: Callable[[Manifest, str], str | None] = lambda manifest, spec: None
    view: str = "records"
    table: str = ""
    sql_texts: tuple[str, str, str] | None = None
    in_sitemap: bool = True
    type: str = "CreativeWork"
    types: Mapping[str, str] = field(default_factory=dict)
    work: Callable[[Fields], CitedWork] = lambda f: CitedWork()
    carded: frozenset[str] = frozenset()
    attributes: Callable[[Fields], Iterable[tuple[str, str, str, Any]]] = lambda f: ()
    terms: str = ""
    template: str = "oai/record.xml"
    filters: Callable[[], Mapping[str, Callable[..., Any]]] = dict
    in_format: Callable[[Fields, str, str], Fields | None] | None = None
    sample: Callable[[str, str], Fields] = lambda prefix, namespace: {}
    has_offers: bool = False
    status: tuple[str, str] | None = None

    def read(self, text: str) -> dict[str, Any]:
        """Return the fields in a document. Raises ValueError or TypeError for no JSON object."""
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("a document is no object")
        for name in self.computed - fields.keys():
            fields[name] = None
        if self.clean and has_markup(text):
            self.clean(fields)
        return fields

    def read_members(
        self, texts: Sequence[str | None], names: Sequence[str]
    ) -> dict[str, list[Any]]:
        """Return members of documents as columns; None for what is missing.

        Values are those of `read`. Raises ValueError for a text that is no JSON object.
        """
        decode, nothing = _decoder(tuple(names)), (None,) * len(names)
        rows = []
        for text in texts:
            row = nothing if text is None else decode(text)
            if text is not None and self.clean and has_markup(text):
                members = dict(zip(names, row, strict=True))
                self.clean(members)
                row = tuple(members.values())
            rows.append(row)
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        return {name: [*column] for name, column in zip(names, columns, strict=True)}

    def find(self, text: str | None) -> Fields:
        """Return the fields in a document; none if it is missing or invalid."""
        try:
            return self.read(text or "{}")
        except ValueError:
            return {}

    def list_texts(self, fields: Fields, identifier: str) -> list[str]:
        """Return the texts by which a search finds an item, the title first."""
        texts = (*self.texts(fields), identifier)
        return list(dict.fromkeys(text for text in texts if isinstance(text, str) and text))


def has_markup(text: str) -> bool:
    """Return whether a text may have tags or entities."""
    return "<" in text or "&" in text


@lru_cache(maxsize=64)
def _decoder(names: tuple[str, ...]) -> Callable[[str], tuple[Any, ...]]:
    """Return a function that reads members of a document, in order, and skips all others.

    A text that no list or record needs takes a quarter of the time that Python's json takes.
    """
    members = msgspec.defstruct("Members", [(name, Any, None) for name in names], gc=False)
    decode, values = msgspec.json.Decoder(members).decode, msgspec.structs.astuple
    return lambda text: values(decode(text))


def find_doi(texts: Iterable[Any]) -> str:
    """Return the first DOI among identifiers, without its prefix."""
    matches = (_DOI.fullmatch(text.strip()) for text in texts if isinstance(text, str))
    return next((match[1] for match in matches if match), "")


def link_identifier(text: str) -> LinkedName:
    """Return an identifier with the URL that it leads to, if it is one that has one."""
    if doi := find_doi([text]):
        return LinkedName(f"doi:{doi}", f"https://doi.org/{doi}")
    if match := _HANDLE.fullmatch(text):
        return LinkedName(text, f"https://hdl.handle.net/{match[1]}")
    return LinkedName(text, text if text.startswith(_WEB) else "")


def name_people(people: Any) -> tuple[LinkedName, ...]:
    """Return the persons and organisations of a dataset, with their ORCIDs."""
    names = []
    for person in people or ():
        if isinstance(person, Mapping) and isinstance(person.get("name"), str):
            match = _ORCID.fullmatch(str(person.get("orcid") or ""))
            names.append(
                LinkedName(person["name"], f"https://orcid.org/{match[1]}" if match else "")
            )
    return tuple(names)


def name_licence(uri: str) -> str:
    """Return the name of a licence of Creative Commons by its URI; another text as it is."""
    if match := _COMMONS.search(uri):
        terms, domain, version, place = match.groups()
        name = f"CC {terms.upper()}" if terms else {"zero": "CC0"}.get(domain, "Public Domain Mark")
        return " ".join(filter(None, (name, version, (place or "").upper())))
    return uri


def name_rights(texts: Iterable[Any]) -> tuple[LinkedName, ...]:
    """Return licences and other statements of rights; one that is a URL leads there."""
    return tuple(
        LinkedName(name_licence(text), text if text.startswith(_WEB) else "")
        for text in dict.fromkeys(texts)
        if isinstance(text, str) and text
    )
