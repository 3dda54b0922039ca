"""Columns of tables of filesets (results and archived files) and of harvested items."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, DuckDB type, meaning, and an example as SQL would print it."""

    name: str
    type: str
    meaning: str
    example: str


INTAKE = (
    Column("identifier", "VARCHAR", "its identifier, if it can be kept", "oai:a.cz:1"),
    Column("other", "VARCHAR", "its identifier, if it cannot be kept", "oai:b.cz:harvested,a.cz,1"),
    Column("base_url", "VARCHAR", "base URL of the repository", "http://a.cz/oai"),
    Column("repository", "VARCHAR", "its repositoryName in Identify", "Archive A"),
    Column("id", "VARCHAR", "its identifier there", "oai:a.cz:1"),
    Column("prefix", "VARCHAR", "metadata prefix", "oai_dc"),
    Column("deleted", "BOOLEAN", "whether the repository declares it deleted", "false"),
    Column("datestamp", "VARCHAR", "its datestamp there", "2026-11-22"),
    Column("harvested", "VARCHAR", "time of the harvest", "2026-11-22T10:00:00Z"),
    Column("specs", "VARCHAR[]", "its setSpecs there, sorted", "[a, b:c]"),
    Column("sets", "VARCHAR[]", "most specific sets, sorted", "[from:a.cz:a, repository:a.cz]"),
    Column("entry", "VARCHAR", "its metadata in that format, as JSON; NULL if deleted", "{...}"),
    Column(
        "digest",
        "VARCHAR",
        "SHA-256 of what is served of that; empty if it has no metadata; NULL if deleted",
        "9f86d081...",
    ),
    Column("place", "VARCHAR", "its repository: the first address that this had", "a.cz/oai"),
    Column("places", "VARCHAR[]", "all addresses that this had", "[a.cz/oai]"),
    Column("list", "VARCHAR", "set of the list; empty for a list of all, or GetRecord", "a"),
    Column("list_set", "VARCHAR", "the set that we make of that set", "from:a.cz:a"),
    Column("run", "VARCHAR", "place of its run in our order", "2026-11-22T10:00:00Z 000001"),
)
"""A record of the intake as received; builder.kinds.records.sightings decides which count."""

SIGHTINGS = (
    Column("id", "VARCHAR", "identifier of an item in its repository", "oai:a.cz:1"),
    Column("place", "VARCHAR", "its repository: the first address that this had", "a.cz/oai"),
    Column("prefix", "VARCHAR", "metadata prefix", "oai_dc"),
    Column("list", "VARCHAR", "set of the list; empty for a list of all, or GetRecord", "a"),
    Column("run", "VARCHAR", "place of the run in our order", "2026-11-22T10:00:00Z 000001"),
    Column("deleted", "BOOLEAN", "whether the list declared the record deleted", "false"),
)
"""What each list last said of each harvested item; of several rows, that of the last run counts."""

NAMES = (
    Column("set_spec", "VARCHAR", "a set of harvested items", "from:a.cz:a"),
    Column("name", "VARCHAR", "its name in the repository", "Theses"),
)
"""Set names from the harvested repositories."""

ORIGIN_SETS = (
    Column("set_spec", "VARCHAR", "a set that the origin of a mirror lists", "theses"),
    Column("name", "VARCHAR", "its name there", "Theses"),
)


RESULT = (
    Column("ingest_type", "VARCHAR", "type of the request: dataset", "dataset"),
    Column("base_url", "VARCHAR", "requested URL or DOI", "https://doi.org/10.5281/..."),
    Column("updated", "TIMESTAMP", "time of the newest result, UTC", "2026-11-22 10:00:00"),
    Column("hit", "BOOLEAN", "whether its files are archived", "true"),
    Column("status", "VARCHAR", "status of the request (docs/guide/datasets.md)", "success"),
    Column("detail", "VARCHAR", "details of the status", "NULL"),
    Column("platform_name", "VARCHAR", "platform that hosts it", "zenodo"),
    Column("platform_domain", "VARCHAR", "the host", "zenodo.org"),
    Column("platform_id", "VARCHAR", "its id on the platform", "7078725"),
    Column("platform_version", "VARCHAR", "its version on the platform", "1"),
    Column("ingest_strategy", "VARCHAR", "strategy by which its files are stored", "s3-fileset"),
    Column("total_size", "BIGINT", "total bytes of its files", "204800"),
    Column("file_count", "INTEGER", "number of its files", "7"),
    Column("archiveorg_item_name", "VARCHAR", "item of archive.org with its files", "NULL"),
    Column("archiveorg_item_bundle_path", "VARCHAR", "bundle in that item", "NULL"),
    Column("web_bundle_url", "VARCHAR", "URL from which a bundle was downloaded", "NULL"),
    Column("web_bundle_dt", "VARCHAR", "time of the download, in 14 digits (UTC)", "NULL"),
    Column(
        "manifest",
        "VARCHAR",
        "its files as the platform lists them, with the status of each",
        "[...]",
    ),
    Column("until", "VARCHAR", "end of the embargo (W3CDTF)", "NULL"),
    Column(
        "identifier",
        "VARCHAR",
        "identifier of its item; NULL if there is none",
        "oai:a.cz:dataset,zenodo,...",
    ),
)
"""The newest result of each type and URL; `manifest` is JSON."""

FILE = (
    Column("identifier", "VARCHAR", "identifier of the file's item", "oai:a.cz:dataset,zenodo,..."),
    Column("path", "VARCHAR", "its path in the dataset", "data/a.csv"),
    Column(
        "status",
        "VARCHAR",
        "verified, or unverified if its platform declares no digest",
        "verified",
    ),
    Column("bytes", "BIGINT", "size in bytes", "1480"),
    Column("md5", "VARCHAR", "MD5 of these bytes, hexadecimal", "d41d8cd9..."),
    Column("sha1", "VARCHAR", "SHA-1 of these bytes, hexadecimal", "da39a3ee..."),
    Column("sha256", "VARCHAR", "SHA-256 of these bytes, hexadecimal", "9f86d08..."),
    Column("crc32", "VARCHAR", "CRC-32 of these bytes, hexadecimal", "00000000"),
    Column("mimetype", "VARCHAR", "media type", "text/csv"),
    Column(
        "key",
        "VARCHAR",
        "object of the store with its bytes; NULL if stored elsewhere",
        "filesets/...",
    ),
    Column(
        "place",
        "BIGINT",
        "offset of its bytes, or of its WARC record; NULL if it is the whole object",
        "NULL",
    ),
    Column(
        "compression",
        "VARCHAR",
        "packing: stored or deflated in a bundle, warc in a WARC record",
        "stored",
    ),
    Column(
        "platform_url", "VARCHAR", "its URL on the platform", "https://zenodo.org/api/files/..."
    ),
    Column("terminal_url", "VARCHAR", "final URL of the download", "https://..."),
    Column("terminal_dt", "VARCHAR", "time of the download, in 14 digits (UTC)", "20261122100000"),
)
"""The archived and verified files of each listed fileset and file."""

TABLES: dict[str, tuple[Column, ...]] = {
    "ingest_fileset_platform": RESULT,
    "files": FILE,
    "sightings": SIGHTINGS,
    "origin_sets": ORIGIN_SETS,
}

ORDER: dict[str, tuple[str, ...]] = {
    "ingest_fileset_platform": ("base_url", "ingest_type"),
    "files": ("identifier", "path"),
    "sightings": ("id", "place", "prefix", "list", "run"),
    "origin_sets": ("set_spec",),
}
"""The columns that each table is sorted by; together they are unique."""

OWN = (
    Column("identifier", "VARCHAR", "the item's identifier", "oai:b.cz:catalogue,1"),
    Column("deleted", "BOOLEAN", "whether it is deleted", "false"),
    Column("sets", "VARCHAR[]", "most specific sets, sorted", "[type:a]"),
    Column("prefixes", "VARCHAR[]", "its formats", "[marc21, oai_dc]"),
    Column("document", "VARCHAR", "content of the item, as JSON; NULL if deleted", "{...}"),
    Column("digest", "VARCHAR", "its digest; NULL if its source no longer names it", "9f86d081..."),
)
"""An own record of the intake; builder.kinds.records.own decides which count."""

OWN_TABLES = (
    Column("name", "VARCHAR", "name of a table of `[[records]]`", "catalogue"),
    Column("recipe", "VARCHAR", "how its records are made, as JSON", "{...}"),
    Column("prefix", "VARCHAR", "metadata prefix of one of its formats", "marc21"),
    Column("schema", "VARCHAR", "its schema", "http://..."),
    Column("namespace", "VARCHAR", "its namespace", "http://..."),
)
"""The formats of own records."""

READING, OWN_READING = "harvest ", "records "
"""How `reading` of a part of a harvest, or of a file of records, begins in the table of sources."""
