"""Check of the formats: crosswalks are tried on sample records before the first request."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.parsers import expat

from functions.config.configuration import Configuration
from functions.kinds import KINDS
from functions.oai.format import AS_IT_CAME, NO_ROW, TEMPLATES, Format, Formats, load
from functions.oai.render import about, schemas
from functions.oai.render.copy_address import CopyAddresses
from functions.oai.render.render import Renderer
from functions.oai.render.template_filters import clean
from functions.reading.repository import PublishedRecord
from functions.snapshot import schema
from functions.snapshot.errors import ConfigurationError

_OAI = "http://www.openarchives.org/OAI/2.0/"
_METADATA = f"{_OAI} metadata"
_BASE_URL = "http://example.org/oai"
_NO_EXAMPLE = "NULL"
_TEXTS = {
    # columns whose example in the schema is NULL, and free texts with markup characters
    "title": 'Zprávy <b> & "věci"',
    "url": "http://a.cz/?a=1&b='2'",
    "content_mime_detected": "text/html",
    "fetch_redirect": "http://a.cz/b?c&d",
    "refers_to_date": "2007-11-05T12:00:00Z",
    "refers_to_url": "http://b.cz/?c&d",
    "warc_filename": "crawl & 'more'.warc.gz",
}
_MARKUP = ']]><a b="c">&d;\''
_NUMBERS = frozenset({"BIGINT", "INTEGER", "SMALLINT"})


def open_formats(configuration: Configuration) -> tuple[Formats, Renderer]:
    """Return the formats of a configuration and their renderer, both checked.

    Raises ConfigurationError, with file, line and remedy, for anything that could fail at a
    request.
    """
    folder, offered = configuration["formats.templates"], tuple(configuration["formats.offered"])
    name = configuration["repository.name"]
    own = Path(folder) if folder else None
    formats = load(own=own, offered=offered)
    abouts, copies = about.containers(configuration), CopyAddresses.of(configuration)
    if own is None and not abouts:
        return formats, _shipped_renderer(name, copies)
    renderer = Renderer(own=own, repository_name=name, abouts=abouts, copies=copies)
    if own is not None:
        _try(Renderer(own=own) if abouts else renderer, formats, own)
    return formats, renderer


def digests(configuration: Configuration) -> Mapping[str, str]:
    """Return by prefix a digest of each format's templates; NO_ROW stands for all others.

    Raises as `open_formats` does.
    """
    formats, renderer = open_formats(configuration)
    digests = {row.prefix: renderer.digest(row) for row in formats.rows}
    return digests | {NO_ROW: renderer.digest(AS_IT_CAME)}


@lru_cache(maxsize=16)
def _shipped_renderer(name: str, copies: CopyAddresses) -> Renderer:
    """Return the cached renderer of shipped templates: compiling takes longer than an answer."""
    return Renderer(repository_name=name, copies=copies)


def _try(renderer: Renderer, formats: Formats, own: Path) -> None:
    """Check an operator's templates. The shipped ones are checked by our tests."""
    files = (path for part in ("crosswalks", "tables") for path in (TEMPLATES / part).rglob("*"))
    # An operator's crosswalk or table may replace a shipped one.
    replaces = any((own / path.relative_to(TEMPLATES)).is_file() for path in files)
    shipped = Formats(()) if replaces else load()
    for row in formats.rows:
        ours = shipped.get(row.prefix)
        same = ours is not None and row == replace(ours, crosswalks=row.crosswalks)
        tried = ours.crosswalks if ours is not None and same else {}
        for kind, crosswalk in row.crosswalks.items():
            if tried.get(kind) != crosswalk:
                check(renderer, row, kind)
    schemas.schema_replies(renderer.places)


def check(renderer: Renderer, row: Format, kind: str) -> None:
    """Try the crosswalk of a kind on a record with every column, and on one with NULLs only.

    Raises ConfigurationError for an unknown kind, for a template that is faulty or fails, and for
    output that is not one element in the namespace of the format.
    """
    if kind not in KINDS:
        raise ConfigurationError(
            f"the format {row.prefix} has a crosswalk of {kind}, which is not a kind of item; "
            f"known: {', '.join(KINDS)}"
        )
    columns, crosswalk = KINDS[kind].columns, f"crosswalks/{row.crosswalks[kind]}"
    renderer.templates.check(KINDS[kind].template, crosswalk, [column.name for column in columns])
    where = renderer.templates.path(crosswalk)
    full = {column.name: sample(column) for column in columns}
    full |= KINDS[kind].sample(row.prefix, row.namespace)
    # A list or a table of counts is never NULL, but may be empty.
    empty: dict[str, Any] = {c.name: [] if c.type.endswith("[]") else None for c in columns}
    empty |= {c.name: full[c.name] for c in columns if c.type == "JSON"}
    for values, of in ((full, "of every column"), (empty, "of NULLs only")):
        try:
            xml = renderer.record(_record(kind, values), row, _BASE_URL, "")
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}, in a record {of}") from error
        _one_element(xml, row, where, of)
    _check_escaping(renderer, row, kind, full)


def _check_escaping(renderer: Renderer, row: Format, kind: str, full: Mapping[str, Any]) -> None:
    """Try a crosswalk on markup in all texts of a record, then in one column at a time."""
    where = renderer.templates.path(f"crosswalks/{row.crosswalks[kind]}")
    raw = KINDS[kind].sample(row.prefix, row.namespace)
    every = {name: value if name in raw else _hostile(value) for name, value in full.items()}
    for values, name, of in (
        (every, _MARKUP, "of texts full of markup"),
        (full, _MARKUP, "of markup in repository_name"),
        *(({**full, c: every[c]}, "", f"of markup in {c}") for c in full if full[c] != every[c]),
    ):
        try:
            xml = renderer.record(_record(kind, values), row, _BASE_URL, name)
        except ConfigurationError:
            continue  # it may expect dates or numbers in these texts
        _one_element(xml, row, where, f"{of} (is a value printed unescaped?)")


def _hostile(value: Any) -> Any:
    """Return a value with markup in place of all texts in it."""
    if isinstance(value, str):
        return _MARKUP
    if isinstance(value, list):
        return [_hostile(part) for part in value]
    if isinstance(value, dict):
        return {name: _hostile(part) for name, part in value.items()}
    return value


def _record(kind: str, values: Mapping[str, Any]) -> PublishedRecord:
    when = datetime(2007, 11, 5, 12, tzinfo=UTC)
    return PublishedRecord(1, "oai:example.org:a", kind, when, False, ("mime:text:html",), values)


def sample(column: schema.Column) -> Any:
    """Return a sample value for a column."""
    if column.type == "VARCHAR":
        example = "example" if column.example == _NO_EXAMPLE else column.example
        return _TEXTS.get(column.name, example)
    if column.type in _NUMBERS:
        return 1 if column.example == _NO_EXAMPLE else int(column.example)
    if column.type == "TIMESTAMP":
        return datetime(2007, 11, 5, 12)
    if column.type == "BLOB":
        return b"http://a.cz/\xff"
    if column.type == "BOOLEAN":
        return True
    return json.loads(column.example) if column.type == "JSON" else ["example"]


def _one_element(xml: str, row: Format, where: str, of: str) -> None:
    """Raise ConfigurationError unless the record has one element of the format's namespace."""
    head = f'<x xmlns="{_OAI}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
    reader = _MetadataReader()
    try:
        reader.parser.Parse(clean((head, xml, "</x>")), True)
    except expat.ExpatError as error:
        line = xml.splitlines()[min(error.lineno, xml.count("\n")) - 1].strip()
        raise ConfigurationError(
            f"{where}: its output {of} is not XML: {expat.errors.messages[error.code]}, near "
            f"{line[:100]!r}"
        ) from error
    if reader.roots != [row.namespace] or reader.stray:
        content = f"{len(reader.roots)} in {reader.roots}" + (" and text" if reader.stray else "")
        raise ConfigurationError(
            f"{where}: expected one element in the namespace {row.namespace} of the format "
            f"{row.prefix}, and no other; its output {of} has {content}"
        )
    if reader.bare:
        raise ConfigurationError(
            f"{where}: the element {reader.bare[0]} has no namespace and would be in the "
            "protocol's; declare one (xmlns), or give it a prefix"
        )


class _MetadataReader:
    """Parses a record: the namespaces of its metadata elements, and whether text is beside them.

    `bare` are nested elements in the protocol's namespace, because they declare no other.
    """

    def __init__(self) -> None:
        self.roots: list[str] = []
        self.bare: list[str] = []
        self.stray = False
        self._path: list[str] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = lambda name: self._path.pop()
        self.parser.CharacterDataHandler = self._text

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        namespace, _, local = name.rpartition(" ")
        if self._within():
            self.roots.append(namespace)
        elif namespace == _OAI and self._path[2:3] == [_METADATA]:
            self.bare.append(local)
        self._path.append(name)

    def _text(self, data: str) -> None:
        self.stray = self.stray or (self._within() and data.strip() != "")

    def _within(self) -> bool:
        return self._path[2:] == [_METADATA]
