"""Filters of templates: escaping, look-ups, characters of XML, and harvested items.

Ingest checked that each fragment of a harvested item's XML is well-formed, so it is printed
unchanged.
"""

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from markupsafe import Markup

from functions.oai.format import Format, find_file
from functions.reading.record_rows import runs
from functions.reading.repository import PublishedRecord
from functions.snapshot.documents import HARVESTED
from functions.snapshot.errors import ConfigurationError
from functions.snapshot.oai_name import MANDATORY

# XML 1.0 (section 2.2) forbids these even as references: one such byte spoils a whole document.
_CONTROLS = bytes(b for b in range(0x20) if b not in b"\t\n\r")
_NONCHARACTERS = ("\ufffe".encode(), "\uffff".encode())
_REPLACEMENT = "\ufffd".encode()
_FIRST = _REPLACEMENT[:1]
"""The first byte of each of them in UTF-8."""
RAW_FORMAT = frozenset({"records"})
"""Columns that hold XML."""


@lru_cache(maxsize=1024)
def parts(value: str | None) -> tuple[str, ...]:
    """Return the parts of a comma-separated text, without empty ones."""
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def utc(value: datetime) -> str:
    """Return a time of the store, which is UTC without a zone, in the form of XML Schema."""
    return f"{value.isoformat()}Z"


def hexadecimal(value: bytes) -> str:
    """Return bytes in the form of XML Schema's hexBinary."""
    return value.hex().upper()


def clean(texts: Iterable[str]) -> bytes:
    """Return texts joined in UTF-8, without characters that XML forbids."""
    # One by one, because most texts consist of characters that need no encoding.
    data = b"".join([text.encode("utf-8", "replace") for text in texts])
    if _FIRST in data:  # a search for a single byte is ten times as fast
        for character in _NONCHARACTERS:
            data = data.replace(character, _REPLACEMENT)
    return data.translate(None, _CONTROLS)


def schema(base_url: str, name: str) -> str:
    """Return the URL of one of our own schemas."""
    return urljoin(base_url, f"schema/{name}")


class Tables:
    """The tables of some folders, each read once. Thread-safe."""

    def __init__(self, places: Sequence[Path]):
        self._places = places
        self._rows: dict[str, Mapping[str, Any]] = {}
        self._cached = lru_cache(maxsize=4096)(self._find_entry)

    def look_up(self, value: str | None, table: str) -> str:
        """Return a table's entry for a media type, or an empty text.

        Raises ConfigurationError if the table does not exist.
        """
        return self._cached(value, table) if value else ""

    def rows(self, table: str) -> Mapping[str, Any]:
        """Return the table tables/`table`.toml. Raises ConfigurationError."""
        if table not in self._rows:
            path = find_file(self._places, "tables", f"{table}.toml")
            if path is None:
                raise ConfigurationError(f"there is no table tables/{table}.toml")
            try:
                self._rows[table] = tomllib.loads(path.read_text("utf-8"))
            except (OSError, ValueError) as error:
                raise ConfigurationError(f"{path} cannot be read: {error}") from error
        return self._rows[table]

    def _find_entry(self, value: str, table: str) -> str:
        rows = self.rows(table)
        exact = value.partition(";")[0].strip().lower()
        return str(rows.get(exact) or rows.get(exact.partition("/")[0] + "/*") or "")


def select_format(records: Sequence[Mapping[str, Any]], prefix: str) -> Sequence[Mapping[str, Any]]:
    """Return an item's record in a format; empty if it did not come in that format."""
    return [record for record in records if record["prefix"] == prefix]


def raw(xml: str) -> Markup:
    """Mark XML as safe, so that it is printed unescaped."""
    return Markup(xml)


def select_available(records: Sequence[PublishedRecord], row: Format) -> Sequence[PublishedRecord]:
    """Return the records available in a format: those that came in it, and deleted ones.

    A record that its repository ended in this format is deleted in it (OAI-PMH 2.0, section 2.5.1).
    What came under the format's prefix in another namespace is not in the format. All records are
    available in oai_dc.
    """
    available = []
    for record in records:
        entries = record.fields.get("records") or ()
        own = select_format(entries, row.prefix)
        if any(entry["namespace"] != row.namespace for entry in own):
            own = [entry for entry in own if entry["namespace"] == row.namespace]
            others = [entry for entry in entries if entry["prefix"] != row.prefix]
            record = replace(record, fields={**record.fields, "records": [*own, *others]})
        if record.deleted or own or row.prefix == MANDATORY:
            available.append(record)
        elif row.prefix in (record.fields.get("ended") or ()):
            available.append(replace(record, deleted=True, fields={}))
    return available


def sifts(row: Format, kinds: Collection[str]) -> bool:
    """Return whether some items of a kind in the format may be unavailable in it."""
    return row.prefix != MANDATORY and HARVESTED in row.crosswalks and HARVESTED in kinds


def filter_records(records: Sequence[PublishedRecord], row: Format) -> Sequence[PublishedRecord]:
    """Return records of any kinds, without harvested ones that did not come in the format."""
    return [
        record
        for kind, run in runs(records)
        for record in (select_available(run, row) if kind == HARVESTED else run)
    ]


def sample_records(prefix: str, namespace: str) -> list[dict[str, Any]]:
    """Return a sample of the column `records` for a format with that namespace."""
    origin = {
        "harvested": "2026-11-22T10:00:00Z",
        "altered": False,
        "base_url": "http://a.cz/oai",
        "identifier": "oai:a.cz:1",
        "datestamp": "2026-11-22",
        "namespace": namespace,
    }
    return [
        {
            "prefix": prefix,
            "schema": "http://a.cz/a.xsd",
            "namespace": namespace,
            "datestamp": "2026-11-22",
            "harvested": "2026-11-22T10:00:00Z",
            "metadata": Markup('<a xmlns="{}"/>').format(namespace),
            "about": ['<b xmlns="urn:b"/>'],
            "origins": [origin],
            "digest": "9f86d08",
        }
    ]


HARVESTED_FILTERS = {"as_harvested": select_format, "raw": raw}
"""Filters of crosswalks for harvested items, by name."""
