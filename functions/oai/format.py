"""Metadata formats: rows of formats.toml (OAI-PMH 2.0, sections 3.4 and 4.4).

The shipped formats are in templates/. An operator's own folder has the same layout and takes
precedence.

A format drifts if the publisher's templates differ from this server's. A publish with changed
templates gives all records of the format a new datestamp. A server that still runs the old
templates must not answer under that datestamp: a harvester would keep the old XML and never ask
again.
"""

import logging
import re
import threading
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from functions.kinds import HARVESTED, IN_FORMATS, KINDS, WITH_OFFERS, find_kind
from functions.reading.repository import PublishedRecord
from functions.snapshot.errors import ConfigurationError, StoreError, describe_failure
from functions.snapshot.manifest import Manifest
from functions.snapshot.oai_name import MANDATORY, is_uri

TEMPLATES = Path(__file__).parents[2] / "templates"
_SCHEMA = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
_NAMESPACE = "http://www.openarchives.org/OAI/2.0/oai_dc/"
TABLE = "formats.toml"
RAW = "harvested-raw.xml"
"""The crosswalk that prints the XML of an item's format."""
SCHEMA_PATH = "schema/"
"""Folder of our own schemas, relative to the base URL."""

PREFIX = re.compile(r"[A-Za-z0-9\-_.!~*'()]+")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]*")
_ROW = re.compile(r"\s*\[\[\s*format\s*\]\]")
_LOG = logging.getLogger("sheaf")


@dataclass(frozen=True, slots=True)
class Format:
    """A metadata format; `crosswalks` maps each kind of item to its template.

    `schema` is a URL or, for one of our own schemas, the name of a file under schemas/.
    """

    prefix: str
    schema: str
    namespace: str
    crosswalks: Mapping[str, str]

    def schema_url(self, base_url: str) -> str:
        """Return the URL of the schema for harvesters."""
        own = ":" not in self.schema
        return urljoin(base_url, SCHEMA_PATH + self.schema) if own else self.schema


NO_ROW = ""
"""Stands for the prefixes without a row, where digests are listed by prefix."""
AS_IT_CAME = Format(NO_ROW, "", "", dict.fromkeys(sorted(IN_FORMATS), RAW))
"""How records are given in such formats; the digest is that of the shared template."""


@dataclass(frozen=True, slots=True)
class Formats:
    """All formats, in the order of ListMetadataFormats."""

    rows: tuple[Format, ...]

    def of_snapshot(self, manifest: Manifest) -> "Formats":
        """Return these formats and those in which items of a snapshot came (Manifest.offers).

        A format that came in another namespace than its row has is not offered. A mirror has those
        of its origin, and oai_dc.
        """
        if manifest.origin is not None:
            formats = {row.prefix: row for row in self.rows if row.prefix == MANDATORY}
            for prefix, names in manifest.origin.formats.items():
                row = formats.get(prefix)
                crosswalks = row.crosswalks if row else {HARVESTED.name: RAW}
                formats[prefix] = Format(prefix, *names, crosswalks)
            return Formats(tuple(formats.values()))
        if not manifest.offers:
            return self
        rows = {row.prefix: row for row in self.rows}
        for prefix, offer in manifest.offers.items():
            own = dict.fromkeys(offer.kinds, RAW)
            row = rows.get(prefix, Format(prefix, offer.schema, offer.namespace, own))
            if row.namespace == offer.namespace:
                rows[prefix] = replace(row, crosswalks={**own, **row.crosswalks})
        return Formats(tuple(rows.values()))

    def present(self, manifest: Manifest) -> "Formats":
        """Return the formats of the items of a snapshot; oai_dc always."""
        kinds = {kind for kind, count in manifest.kinds().items() if count > 0}
        rows = self.of_snapshot(manifest).rows
        return Formats(tuple(f for f in rows if f.prefix == MANDATORY or kinds & {*f.crosswalks}))

    def of_kind(self, kind: str) -> tuple[Format, ...]:
        """Return the formats that items of `kind` can be given in."""
        return tuple(f for f in self.rows if kind in f.crosswalks)

    def get(self, prefix: str) -> Format | None:
        """Return the format with that prefix, if it exists."""
        return next((f for f in self.rows if f.prefix == prefix), None)


def folders(templates: Path = TEMPLATES, own: Path | None = None) -> tuple[Path, ...]:
    """Return the folders searched for templates, in order."""
    return (templates,) if own is None else (own, templates)


def find_file(places: Sequence[Path], folder: str, name: str) -> Path | None:
    """Return the first file of that name in `folder` of the places, if it exists."""
    paths = (place / folder / name for place in places)
    return next((path for path in paths if path.is_file()), None)


def load(
    templates: Path = TEMPLATES, own: Path | None = None, offered: Sequence[str] = ()
) -> Formats:
    """Read the tables of formats: a row of `own` replaces the shipped one with its prefix.

    `offered` are the prefixes to offer, in order (empty: all); oai_dc is always one of them. Raises
    ConfigurationError, with file and line, for an invalid row.
    """
    places = folders(templates, own)
    rows = {row.prefix: row for row in _rows(templates / TABLE, places)}
    if own is not None:
        if not own.is_dir():
            raise ConfigurationError(f"formats.templates is {own}, expected an existing folder")
        if (own / TABLE).exists():
            shipped = rows.get(MANDATORY)
            rows |= {row.prefix: row for row in _rows(own / TABLE, places)}
            if shipped is not None:
                # An older row may lack the crosswalk of items that are given as they came.
                raw = {k: name for k, name in shipped.crosswalks.items() if k in IN_FORMATS}
                crosswalks = {**raw, **rows[MANDATORY].crosswalks}
                rows[MANDATORY] = replace(rows[MANDATORY], crosswalks=crosswalks)
    if MANDATORY not in rows:
        raise ConfigurationError(f"{TABLE} has the prefixes {[*rows]}, expected {MANDATORY} too")
    if own is not None:
        _check_mandatory(rows[MANDATORY], own / TABLE)
    unknown = [prefix for prefix in offered if prefix not in rows]
    if unknown:
        raise ConfigurationError(
            f"formats.offered names {unknown[0]}, which is not a format; known: {', '.join(rows)}"
        )
    chosen = dict.fromkeys(offered or rows)
    if MANDATORY not in chosen:
        chosen = dict.fromkeys((MANDATORY, *chosen))
    return Formats(tuple(rows[prefix] for prefix in chosen))


def _rows(path: Path, places: Sequence[Path]) -> list[Format]:
    try:
        text = path.read_text("utf-8")
        document = tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {describe_failure(error)}") from error
    lines = [n for n, line in enumerate(text.splitlines(), 1) if _ROW.match(line)]
    found_rows = document.pop("format", [])
    if document or not isinstance(found_rows, list):
        raise ConfigurationError(f"{path}: expected only [[format]] rows")
    rows: list[Format] = []
    for number, row in enumerate(found_rows):
        where = f"{path}, line {lines[number]}" if number < len(lines) else str(path)
        rows.append(_row(row, where, places))
        if any(row.prefix == rows[-1].prefix for row in rows[:-1]):
            raise ConfigurationError(f"{where}: a second row for {rows[-1].prefix}; remove one")
    return rows


def _row(row: Any, where: str, places: Sequence[Path]) -> Format:
    names = [field.name for field in fields(Format)]
    if not isinstance(row, dict) or {*row} != {*names}:
        raise ConfigurationError(f"{where}: {row} is not a format, expected {', '.join(names)}")
    if not (isinstance(row["prefix"], str) and PREFIX.fullmatch(row["prefix"])):
        raise ConfigurationError(
            f"{where}: prefix is {row['prefix']!r}, expected letters, digits and -_.!~*'()"
        )
    if not (isinstance(row["namespace"], str) and row["namespace"] and is_uri(row["namespace"])):
        raise ConfigurationError(f"{where}: namespace is {row['namespace']!r}, expected a URI")
    schema = row["schema"]
    is_url = isinstance(schema, str) and ":" in schema
    if not (
        is_uri(schema)
        if is_url
        else _is_file(schema, "schemas", places) and schema.endswith(".xsd")
    ):
        raise ConfigurationError(
            f"{where}: schema is {row['schema']!r}, expected a URL, or the name of an existing "
            f".xsd file in {_list_places(places, 'schemas')}"
        )
    if not isinstance(row["crosswalks"], dict):
        raise ConfigurationError(
            f'{where}: expected crosswalks to be a table such as {{ capture = "a.xml" }}'
        )
    for kind, name in row["crosswalks"].items():
        if not _is_file(name, "crosswalks", places):
            raise ConfigurationError(
                f"{where}: the crosswalk of {kind} is {name!r}, expected the name of an existing "
                f"file in {_list_places(places, 'crosswalks')}"
            )
    return Format(**row)


def _check_mandatory(row: Format, path: Path) -> None:
    """Raise ConfigurationError if a record could not be given in the mandatory format."""
    where = f"{path}: {MANDATORY}"
    if row.schema != _SCHEMA or row.namespace != _NAMESPACE:
        raise ConfigurationError(
            f"{where} has the schema {row.schema} and the namespace {row.namespace}, "
            f"expected {_SCHEMA} and {_NAMESPACE}"
        )
    for kind in KINDS.keys() - WITH_OFFERS:
        if kind not in row.crosswalks:
            raise ConfigurationError(
                f"{where} has no crosswalk of {kind}, but must offer every record; add {kind} = "
                f'"{kind}-{MANDATORY}.xml"'
            )


def _is_file(name: Any, folder: str, places: Sequence[Path]) -> bool:
    return (
        isinstance(name, str)
        and _FILE.fullmatch(name) is not None
        and find_file(places, folder, name) is not None
    )


def _list_places(places: Sequence[Path], folder: str) -> str:
    return " or ".join(str(place / folder) for place in places)


def is_selective(row: Format, kinds: Collection[str]) -> bool:
    """Return whether records of `kinds` may be unavailable in a format that their kind has."""
    return row.prefix != MANDATORY and not IN_FORMATS.isdisjoint(row.crosswalks.keys() & {*kinds})


def select_available(records: Sequence[PublishedRecord], row: Format) -> Sequence[PublishedRecord]:
    """Return the records available in a format: those that came in it, and deleted ones.

    A record that its repository ended in this format is deleted in it (OAI-PMH 2.0, section 2.5.1).
    """
    available = []
    for record in records:
        select, fields = find_kind(record.kind).in_format, record.fields
        if select is not None and not record.deleted:
            chosen = select(fields, row.prefix, row.namespace)
            if chosen is None:
                continue
            if chosen is not fields:
                record = replace(record, deleted=not chosen, fields=chosen)
        available.append(record)
    return available


class FormatDrift:
    """Compares digests of formats with those of the publisher. Thread-safe."""

    def __init__(self, digest: Callable[[str], str | None]):
        """`digest` returns the digest of a format's templates on this server, by prefix."""
        self._own = digest
        self._first: dict[str, str] = {}
        self._lock = threading.Lock()

    def check(self, manifest: Manifest, prefix: str) -> None:
        """Raise StoreError if the publisher changed the format after this server started.

        `manifest` is that of the snapshot in effect, although a list may continue in an older one.
        A format that differed at the start is logged: this server may be ahead of the publisher.
        """
        making, own = manifest.formats.get(prefix), self._own(prefix)
        if making is None or own is None:
            return
        with self._lock:
            new = prefix not in self._first
            first = self._first.setdefault(prefix, making.digest)
        if making.digest == own:
            return
        if making.digest != first:
            raise StoreError(
                f"the format {prefix} has changed in snapshot {making.snapshot}: restart this "
                "server with the templates and settings of the publisher"
            )
        if new:
            _LOG.warning(
                "the format %s differs from that of snapshot %d: run `sheaf publish`, or update "
                "this server",
                prefix,
                manifest.snapshot,
            )
