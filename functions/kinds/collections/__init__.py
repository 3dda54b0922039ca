"""The kind of collections: what was crawled for one purpose, and counts of it."""

from functions.kinds.kind import ItemKind
from functions.snapshot import oai_name
from functions.snapshot.manifest import Manifest
from functions.snapshot.schema import Column

_COUNTS = '{"different": 1, "most": [{"value": "a", "captures": 3, "bytes": 20}]}'

COLUMNS = (
    Column("name", "VARCHAR", "name of the collection", "Serials, November 2007"),
    Column("set_spec", "VARCHAR", "its set", "collection:serials:harvest_november07"),
    Column("description", "VARCHAR[]", "the configured one, then those of archive files", "[...]"),
    Column("operator", "VARCHAR[]", "operators that the archive files name", "[...]"),
    Column("software", "VARCHAR[]", "software that wrote them", "[Heritrix/3.1.1]"),
    Column("part_of", "VARCHAR[]", "crawls that they belong to", "[serials-2007-11]"),
    Column("first_date", "VARCHAR", "day of the first capture, as far as known", "2007-11-05"),
    Column("last_date", "VARCHAR", "day of the last capture", "2007-11-29"),
    Column("captures", "BIGINT", "captures published", "412000"),
    Column("bytes", "BIGINT", "bytes of their payloads", "20110000000"),
    Column("files", "BIGINT", "archive files that were ingested into it", "17"),
    Column("file_bytes", "BIGINT", "their bytes", "12890000000"),
    Column("host", "JSON", "captures by host: number of hosts, and the largest", _COUNTS),
    Column("media_type", "JSON", "the same by media type (declared, else detected)", _COUNTS),
    Column("status", "JSON", "the same by HTTP status", _COUNTS),
)
"""The document of a collection. A null value among the counts stands for unknown."""


def find_set(manifest: Manifest, spec: str) -> str | None:
    """Return the identifier of the collection whose set that is."""
    is_own = spec.startswith("collection:")
    return oai_name.collection_identifier(manifest.namespace, spec) if is_own else None


COLLECTION = ItemKind(
    "collection",
    COLUMNS,
    is_documented=False,
    search_date=lambda fields: fields.get("last_date"),
    of_set=find_set,
    table="collections",
    type="Collection",
)
