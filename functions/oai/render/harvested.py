"""Harvested items: what crosswalks ask of the columns of one (functions.snapshot.harvested).

Its XML was found to be well-formed, each piece by itself, when it was ingested, and is given out
as it is.
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
    """Return what came in a format, of what an item came in: that one, or none."""
    return [one for one in records if one["prefix"] == prefix]


def raw(xml: str) -> Markup:
    """Return XML so that it is printed as it is."""
    return Markup(xml)


def having(records: Sequence[PublishedRecord], prefix: str) -> Sequence[PublishedRecord]:
    """Return the records that can be given in a format: those that came in it, and deleted ones.

    Everything can be had in oai_dc.
    """
    if prefix == _MANDATORY:
        return records
    return [r for r in records if r.deleted or as_harvested(r.fields["records"], prefix)]


def sifts(row: Format, kinds: Collection[str]) -> bool:
    """Tell whether some items of a kind that has the format, and is there, cannot be had in it."""
    return row.prefix != _MANDATORY and KIND in row.crosswalks and KIND in kinds


def filter_records(records: Sequence[PublishedRecord], prefix: str) -> Sequence[PublishedRecord]:
    """Return records of any kinds, without the harvested ones that did not come in the format."""
    return [
        one for kind, run in runs(records)
        for one in (having(run, prefix) if kind == KIND else run)
    ]  # fmt: skip


def sample(prefix: str, namespace: str) -> list[dict[str, Any]]:
    """Return the column `records` of an item that came in a format of that namespace."""
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
"""The filters that crosswalks of harvested items have, by name."""
