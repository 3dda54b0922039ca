"""The kinds of records that came as XML, each in several formats: harvested ones and own ones."""

import html
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from functions.kinds.kind import (
    CitedWork,
    Fields,
    ItemKind,
    LinkedName,
    find_doi,
    link_identifier,
    name_rights,
)
from functions.snapshot.schema import Column

_RECORDS = (
    '[{"prefix": "oai_dc", "schema": "http://...", "namespace": "http://...", "datestamp": '
    '"2026-11-22", "harvested": "2026-11-22T10:00:00Z", "metadata": "<oai_dc:dc ...>", '
    '"about": ["<rights ...>"], "origins": [], "digest": "9f86d081..."}]'
)
COLUMNS = (
    Column("base_url", "VARCHAR", "base URL of the repository", "http://a.cz/oai"),
    Column("repository", "VARCHAR", "its repositoryName in Identify", "Archive A"),
    Column("id", "VARCHAR", "its identifier there", "oai:a.cz:1"),
    Column("specs", "VARCHAR[]", "its setSpecs there, sorted", "[a, b:c]"),
    Column("records", "JSON", "its metadata in each harvested format, sorted by prefix", _RECORDS),
    Column("ended", "VARCHAR[]", "prefixes of formats that were published and ended", "[marcxml]"),
)
"""The document of an item of the kind `harvested`."""
_OWN_RECORDS = (
    '[{"prefix": "marc21", "schema": "http://...", "namespace": "http://...", '
    '"metadata": "<record ...>"}]'
)
OWN_COLUMNS = (
    Column("repository", "VARCHAR", "name of its table in `[[records]]`", "catalogue"),
    Column("id", "VARCHAR", "its identifier there", "ocm123"),
    Column(
        "records", "JSON", "its metadata in each format, the form that came first", _OWN_RECORDS
    ),
    Column("ended", "VARCHAR[]", "prefixes of formats that it had and no longer has", "[mods]"),
    Column("title", "VARCHAR", "title", "Bees"),
    Column("creators", "VARCHAR[]", "names of creators", "[Novák, Jan]"),
    Column("date", "VARCHAR", "when it was published (W3CDTF)", "1998"),
    Column("subjects", "VARCHAR[]", "subjects", "[honey]"),
    Column("type", "VARCHAR", "type, as written", "text"),
    Column("url", "VARCHAR", "landing page", "https://catalogue.example.org/record/ocm123"),
    Column("description", "VARCHAR", "description", "NULL"),
    Column("form", "VARCHAR", "form in which it came", "marc"),
)
"""The document of an item of the kind `record`.

Its members `source` (the columns of a row, or XML that is in no format) and `digest` (of the rest)
are for the next ingest and publish alone.
"""

_DUBLIN_CORE = re.compile(
    r"<(?:[\w\x80-\U0010ffff]+:)?(title|creator|identifier)(?:\s[^>]*)?>([^<]*)<"
)
_WORDS = {
    **{"creatorName": "creator", "namePart": "creator", "abstract": "description"},
    **{"publicationYear": "date", "dateIssued": "date", "topic": "subject"},
    **{"languageTerm": "language", "issued": "date", "accessCondition": "rights"},
}
"""Elements of DataCite, MODS and qualified Dublin Core, by what says the same in Dublin Core."""
_MARC = {
    **{"100a": "creator", "110a": "creator", "700a": "creator", "245a": "title", "245b": "title"},
    **{"260b": "publisher", "264b": "publisher", "260c": "date", "264c": "date"},
    **{"041a": "language"},
    **{"520a": "description", "650a": "subject", "653a": "subject", "020a": "identifier"},
}
"""Subfields of MARC 21 by the element of Dublin Core that says the same."""
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
"""A tag of HTML, which abstracts have."""
_DAY = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_SHAPE = '{"id": "VARCHAR", "records": [{"metadata": "VARCHAR"}]}'
_ELEMENTS = (
    "flatten(list_transform(read.records, lambda r: regexp_extract_all(r.metadata, "
    r"'<(?:[\w\x{{80}}-\x{{10ffff}}]+:)?(?:{})(?:\s[^>]*)?>([^<]*)<', 1)))"
)
"""What _DUBLIN_CORE finds, in SQL."""
_OWN_SHAPE = (
    '{"id": "VARCHAR", "title": "VARCHAR", "creators": ["VARCHAR"], "subjects": ["VARCHAR"], '
    '"records": [{"metadata": "VARCHAR"}]}'
)
_OWN_TEXTS = (
    f"list_concat([read.title], read.creators, read.subjects, {_ELEMENTS.format('identifier')})"
)


def find_title(fields: Fields) -> str | None:
    """Return the first title of a record, or its identifier there."""
    return next(iter(_elements(fields).get("title", ())), None) or fields.get("id")


def list_texts(fields: Fields) -> list[str | None]:
    """Return the titles, creators and identifiers of a record in Dublin Core."""
    parts = sorted(_dublin_core(fields), key=lambda part: part[0] != "title")
    return [*(text for _, text in parts), fields.get("id")]


def _dublin_core(fields: Fields) -> list[tuple[str, str]]:
    elements: list[tuple[str, str]] = []
    for record in fields.get("records") or ():
        metadata = record.get("metadata") if isinstance(record, dict) else None
        if isinstance(metadata, str):
            elements += ((n, html.unescape(t).strip()) for n, t in _DUBLIN_CORE.findall(metadata))
    return elements


def _elements(fields: Fields) -> dict[str, list[str]]:
    """Return the texts of a record by element of Dublin Core, of the first format that has some."""
    entries = [entry for entry in fields.get("records") or () if isinstance(entry, dict)]
    for entry in sorted(entries, key=lambda entry: entry.get("prefix") != "oai_dc"):
        texts: dict[str, dict[str, None]] = defaultdict(dict)
        for name, text in _read_metadata(str(entry.get("metadata") or "")):
            plain = " ".join(html.unescape(_TAG.sub(" ", text)).split())
            if plain:
                texts[name][plain] = None
        if texts.get("title"):
            return {name: [*values] for name, values in texts.items()}
    return {}


def _read_metadata(xml: str) -> Iterator[tuple[str, str]]:
    """Yield the elements of XML that have texts alone, by their names in Dublin Core.

    XML that is not well-formed has none. Expat bounds what entities become.
    """
    from xml.etree import ElementTree  # a cold start to a list has no time for it

    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError:
        return
    tag = ""
    for element in root.iter():
        name = element.tag.rpartition("}")[2]
        if name == "datafield":
            tag = element.get("tag", "")
        elif name == "subfield":
            word = _MARC.get(tag + element.get("code", ""), "")
            yield word, (element.text or "").rstrip(" /:;,.")
        elif not len(element):
            yield _WORDS.get(name, name), element.text or ""


def describe_elements(fields: Fields) -> CitedWork:
    """Return what is cited of a record, as it says itself in Dublin Core or another format."""
    texts = _elements(fields)

    def first(name: str) -> str:
        return next(iter(texts.get(name, ())), "")

    days = [match[0] for text in texts.get("date", ()) if (match := _DAY.match(text))]
    identifiers = texts.get("identifier", ())
    return CitedWork(
        tuple(map(LinkedName, texts.get("creator", ()))),
        tuple(map(LinkedName, texts.get("contributor", ()))),
        min(days, default=first("date")),
        "\n".join(texts.get("description", ())),
        tuple(texts.get("subject", ())),
        name_rights(texts.get("rights", ())),
        first("type"),
        first("language"),
        first("publisher"),
        first("source"),
        url=next((text for text in identifiers if text.startswith(("http://", "https://"))), ""),
        doi=find_doi(identifiers),
        identifiers=tuple(map(link_identifier, identifiers)),
    )


def find_prefix(records: Sequence[Fields], prefix: str) -> Sequence[Fields]:
    """Return what a record has in a format; empty if it did not come in that format."""
    return [record for record in records if record["prefix"] == prefix]


def select_format(fields: Fields, prefix: str, namespace: str) -> Fields | None:
    """Return the fields of a record in a format, as ItemKind.in_format does.

    What came under the prefix in another namespace is not in the format, except in a mirror, whose
    records name none. All records are in oai_dc.
    """
    entries = fields.get("records") or ()
    own = find_prefix(entries, prefix)
    if any(entry["namespace"] not in ("", namespace) for entry in own):
        own = [entry for entry in own if entry["namespace"] in ("", namespace)]
        others = [entry for entry in entries if entry["prefix"] != prefix]
        fields = {**fields, "records": [*own, *others]}
    if own or prefix == "oai_dc":
        return fields
    return {} if prefix in (fields.get("ended") or ()) else None


def make_sample(prefix: str, namespace: str) -> Fields:
    """Return a record with one format."""
    (record,) = json.loads(_RECORDS)
    origin = {
        "harvested": record["harvested"],
        "altered": False,
        "base_url": "http://a.cz/oai",
        "identifier": "oai:a.cz:1",
        "datestamp": record["datestamp"],
        "namespace": namespace,
    }
    record |= {"prefix": prefix, "namespace": namespace, "origins": [origin]}
    record["metadata"] = f'<a xmlns="{html.escape(namespace)}"/>'
    return {"records": [record | {"about": ['<b xmlns="urn:b"/>']}]}


def describe(fields: Fields) -> CitedWork:
    """Return what is cited of an own record: its declared fields come before its elements."""
    work = describe_elements(fields)
    creators = tuple(map(LinkedName, fields.get("creators") or ()))
    return replace(
        work,
        creators=creators or work.creators,
        date=fields.get("date") or work.date,
        abstract=fields.get("description") or work.abstract,
        subjects=tuple(fields.get("subjects") or ()) or work.subjects,
        type=fields.get("type") or work.type,
        url=fields.get("url") or work.url,
    )


HARVESTED = ItemKind(
    "harvested",
    COLUMNS,
    title=find_title,
    texts=list_texts,
    authors=lambda fields: [text for name, text in _dublin_core(fields) if name == "creator"],
    date=lambda fields: describe_elements(fields).date,
    search_date=lambda fields: None,
    work=describe_elements,
    table="harvested",
    sql_texts=(_SHAPE, _ELEMENTS.format("title|creator|identifier"), "read.id"),
    in_sitemap=False,
    template="oai/harvested.xml",
    filters=lambda: {"as_harvested": find_prefix},
    in_format=select_format,
    sample=make_sample,
    status=("harvested", "item"),
)

RECORD = ItemKind(
    "record",
    OWN_COLUMNS,
    computed=frozenset({"ended"}),
    texts=lambda f: (
        f.get("title"),
        *(f.get("creators") or ()),
        *(f.get("subjects") or ()),
        *(text for name, text in _dublin_core(f) if name == "identifier"),
        f.get("id"),
    ),
    authors=lambda fields: list(fields.get("creators") or ()),
    date=lambda fields: fields.get("date"),
    table="own_records",
    sql_texts=(_OWN_SHAPE, _OWN_TEXTS, "read.id"),
    work=describe,
    carded=frozenset(["title", "creators", "date", "subjects", "type", "url", "description"]),
    in_format=select_format,
    sample=make_sample,
    has_offers=True,
    status=("own records", "item"),
)
