"""The kind of templates of ReDIF: texts, series, archives and persons of RePEc."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from functions.kinds.kind import (
    CitedWork,
    Fields,
    ItemKind,
    LinkedName,
    find_doi,
    link_identifier,
    name_rights,
    source_url,
)
from functions.kinds.templates import markup, redif_fields
from functions.snapshot import oai_name
from functions.snapshot.manifest import Manifest
from functions.snapshot.obi import GATHERED
from functions.snapshot.schema import Column

REDIF = "urn:x-sheaf:redif:1"
"""The namespace of templates as their archives have them."""

_ELSEWHERE = {"file", "handle", "template-type"}
"""Attributes that pages show in another way."""
_CARDED = frozenset(
    {"abstract", "author", "classification-jel", "creation-date", "description", "doi", "editor"}
    | {"handle", "isbn", "issn", "issue", "journal", "keywords", "language", "month", "name"}
    | {"number", "pages", "restriction", "series_name", "title", "volume", "year"}
)
_STORED = '{"http://a.org/x": "https://a.org/x"}'
_FIELDS = '{"author": [{"name": ["A. Name"]}], "title": ["A title"], "handle": ["RePEc:cgd:w:1"]}'

COLUMNS = (
    Column("handle", "VARCHAR", "its handle in the canonical form", "RePEc:cgd:wpaper:1"),
    Column("handle_written", "VARCHAR", "its handle as written", "RePEc:CGD:wpaper:1"),
    Column("type", "VARCHAR", "its type; NULL if unknown to ReDIF", "ReDIF-Paper 1.0"),
    Column("type_written", "VARCHAR", "its type as written", "ReDIF-Paper 1.0"),
    Column("valid", "BOOLEAN", "whether it is valid ReDIF", "true"),
    Column("text", "VARCHAR", "full text", "Template-Type: ReDIF-Paper 1.0"),
    Column("fields", "JSON", "its values by attribute, with clusters nested", _FIELDS),
    Column("tist", "BIGINT", "the run that recorded it", "1352481230"),
    Column("archive", "VARCHAR", "its archive", "RePEc:cgd"),
    Column("series", "VARCHAR", "its series", "RePEc:cgd:wpaper"),
    Column("source", "VARCHAR", "its file", "cgd/wpaper/1.rdf"),
    Column("restriction", "VARCHAR[]", "File-Restriction of its series or archive", "[...]"),
    Column("journal", "VARCHAR", "its journal: the name of an article's series", "NULL"),
    Column("series_name", "VARCHAR", "name of its series", "Working papers"),
    Column("provider", "VARCHAR[]", "provider of its series", "[A publisher]"),
    Column(GATHERED, "JSON", "ids of its stored files by URL as written; NULL if none", _STORED),
)
"""The document of a template; `fields` is the `structure` that `sheaf redif` shows."""


_CLUSTERS = ("primary", "author", "editor")
_SHAPE = (
    '{"handle": "VARCHAR", "fields": {"title": ["VARCHAR"], "name": ["VARCHAR"], '
    '"name-full": ["VARCHAR"], "classification-jel": ["VARCHAR"], '
    + ", ".join(f'"{c}": [{{"name": ["VARCHAR"]}}]' for c in _CLUSTERS)
) + "}}"
_NAMES = {
    cluster: f"flatten(list_transform(read.fields.{cluster}, lambda one: one.name))"
    for cluster in _CLUSTERS
}
_TITLES = (
    "CASE WHEN array_to_string(read.fields.title, '') != '' THEN read.fields.title "
    "WHEN array_to_string(read.fields.name, '') != '' THEN read.fields.name "
    """WHEN array_to_string(read.fields."name-full", '') != '' THEN read.fields."name-full" """
    f"ELSE {_NAMES['primary']} END"
)
"""The titles of a template in SQL, or the names of its persons."""


def find_title(fields: Fields) -> str | None:
    """Return the first title of a template, or its handle."""
    return next(iter(redif_fields.titles(fields.get("fields"))), None) or fields.get("handle")


def list_texts(fields: Fields) -> list[str | None]:
    """Return the titles, authors, editors, JEL codes and handle of a template."""
    own = fields.get("fields")
    names = [name for c in ("author", "editor") for name in redif_fields.texts(own, c, "name")]
    codes = redif_fields.texts(own, "classification-jel")
    return [*redif_fields.titles(own), *names, *codes, fields.get("handle")]


def list_files(fields: Fields) -> Iterator[tuple[str, str | None]]:
    """Yield the URLs of a template's files, as written, with their media types."""
    for file in redif_fields.nodes_of(fields.get("fields"), "file"):
        for url in redif_fields.texts(file, "url"):
            yield url, redif_fields.first(file, "format")


def list_attributes(fields: Fields) -> Iterator[tuple[str, str, str, Any]]:
    """Yield the attributes of a template that pages show."""
    for name, value in _leave_out_mail(fields.get("fields") or {}).items():
        if name not in _ELSEWHERE:
            yield f"redif.{name}", name, f"ReDIF attribute {name}", value


def _leave_out_mail(value: Any) -> Any:
    """Return attributes without addresses of persons, which robots would take from pages."""
    if isinstance(value, Mapping):
        pairs = ((name, part) for name, part in value.items() if not name.endswith("email"))
        return {name: _leave_out_mail(part) for name, part in pairs}
    return [*map(_leave_out_mail, value)] if isinstance(value, list) else value


def describe(fields: Fields) -> CitedWork:
    """Return what is cited of a template; authors have the handles of their own templates."""
    own = fields.get("fields") or {}
    first, texts = redif_fields.first, redif_fields.texts
    people = {
        cluster: tuple(
            LinkedName(name, next(iter(redif_fields.handles(node, "person")), ""))
            for node in redif_fields.nodes_of(own, cluster)
            if (name := first(node, "name"))
        )
        for cluster in ("author", "editor")
    }
    dois = redif_fields.dois(own)
    numbers = [f"{name.upper()} {text}" for name in ("isbn", "issn") for text in texts(own, name)]
    publishers = (*texts(own, "publisher", "name"), *texts(own, "provider", "name"))
    return CitedWork(
        people["author"],
        people["editor"],
        redif_fields.date(own) or "",
        "\n".join((*texts(own, "abstract"), *texts(own, "description"))),
        (*redif_fields.keywords(own), *redif_fields.codes(own)),
        name_rights(redif_fields.restrictions(own, fields.get("restriction"))),
        str(fields.get("type") or fields.get("type_written") or ""),
        first(own, "language") or "",
        next(iter((*publishers, *(fields.get("provider") or ()))), ""),
        first(own, "journal", "book-title")
        or fields.get("journal")
        or fields.get("series_name")
        or "",
        first(own, "volume") or "",
        first(own, "issue", "number") or "",
        first(own, "pages") or "",
        first(own, "issn") or "",
        first(own, "isbn") or "",
        next((url for url, _ in list_files(fields)), ""),
        find_doi(dois),
        (*map(link_identifier, (fields.get("handle") or "", *dois, *numbers)),),
    )


def find_origin(fields: Fields, place: str) -> tuple[str, str]:
    """Return the file of a template below `place`, the folder of all archives, and its run."""
    return source_url(place, fields["source"], "/"), redif_fields.run_time(fields["tist"])


def identify(manifest: Manifest, handle: str | None) -> str | None:
    """Return the identifier of the template with that handle."""
    prefix = manifest.prefix or oai_name.to_oai(manifest.namespace, "")
    return None if handle is None else oai_name.template_identifier(prefix, handle)


def find_name(manifest: Manifest, identifier: str) -> str | None:
    """Return the handle of the template with an identifier, if clients may call it so."""
    handle = oai_name.find_handle(unquote(identifier.removeprefix(identify(manifest, "") or "")))
    return handle if identify(manifest, handle) == identifier else None


TEMPLATE = ItemKind(
    "template",
    COLUMNS,
    computed=frozenset({GATHERED}),
    clean=markup.clean_template,
    is_read_in_parts=True,
    title=find_title,
    texts=list_texts,
    authors=lambda fields: redif_fields.texts(fields.get("fields"), "author", "name"),
    date=lambda fields: redif_fields.date(fields.get("fields")),
    url=lambda fields: next((url for url, _ in list_files(fields)), None),
    named_files=list_files,
    source="source",
    origin_key="redif.origin",
    origin_namespace=REDIF,
    origin_columns=("source", "tist"),
    origin=find_origin,
    of_name=lambda manifest, name: identify(manifest, oai_name.find_handle(name)),
    name_of=find_name,
    of_set=lambda manifest, spec: identify(manifest, spec if spec[:6] == "RePEc:" else None),
    view="templates",
    table="templates",
    sql_texts=(
        _SHAPE,
        f"list_concat({_TITLES}, {_NAMES['author']}, {_NAMES['editor']}, "
        """read.fields."classification-jel")""",
        "read.handle",
    ),
    type="ScholarlyArticle",
    types={
        "redif-series": "Periodical",
        "redif-archive": "Organization",
        "redif-book": "Book",
        "redif-software": "SoftwareSourceCode",
    },
    work=describe,
    carded=_CARDED,
    attributes=list_attributes,
    terms="Obtained from RePEc (http://repec.org), which is to be named as the source, with a link "
    "to it. No charge may be made for it. Who displays it shows Title, Author-Name and "
    "File-Restriction or, for want of that, the Restriction of series or archive.",
    filters=lambda: redif_fields.FILTERS,
)
