"""Filters for the columns of a harvested item (functions.snapshot.harvested).

Ingest checked that each fragment of its XML is well-formed, so it is printed unchanged.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from functions.oai.format import Format
from functions.oai.repository import PublishedRecord
from functions.oai.repository_duckdb.rows import runs

KIND = "harvested"
RAW = frozenset({"records"})
"""Columns that hold XML."""

_MANDATORY = "oai_dc"


def as_harvested(records: Sequence[Mapping[str, Any]], prefix: str) -> Sequence[Mapping[str, Any]]:
    """Return an item's record in a format; empty if it did not come in that format."""
    return [one for one in records if one["prefix"] == prefix]


def raw(xml: str) -> Markup:
    """Mark XML as safe, so that it is printed unescaped."""
    return Markup(xml)


def having(records: Sequence[PublishedRecord], prefix: str) -> Sequence[PublishedRecord]:
    """Return the records available in a format: those that came in it, and deleted ones.

    All records are available in oai_dc.
    """
    if prefix == _MANDATORY:
        return records
    return [r for r in records if r.deleted or as_harvested(r.fields["records"], prefix)]


def sifts(row: Format, kinds: Collection[str]) -> bool:
    """Return whether some items of a kind in the format may be unavailable in it."""
    return row.prefix != _MANDATORY and KIND in row.crosswalks and KIND in kinds


def filter_records(records: Sequence[PublishedRecord], prefix: str) -> Sequence[PublishedRecord]:
    """Return records of any kinds, without harvested ones that did not come in the format."""
    return [
        one for kind, run in runs(records)
        for one in (having(run, prefix) if kind == KIND else run)
    ]  # fmt: skip


def sample(prefix: str, namespace: str) -> list[dict[str, Any]]:
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


FILTERS = {"as_harvested": as_harvested, "raw": raw}
"""Filters of crosswalks for harvested items, by name."""
