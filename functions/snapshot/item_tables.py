"""Columns of tables: of filesets (results and archived files), and of harvested items."""

from dataclasses import dataclass

_RECORDS = (
    '[{"prefix": "oai_dc", "schema": "http://...", "namespace": "http://...", "datestamp": '
    '"2026-11-22", "harvested": "2026-11-22T10:00:00Z", "metadata": "<oai_dc:dc ...>", '
    '"about": ["<rights ...>"], "origins": [], "digest": "9f86d081..."}]'
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, DuckDB type, meaning, and an example as SQL would print it."""

    name: str
    type: str
    meaning: str
    example: str


HARVESTED = (
    Column("base_url", "VARCHAR", "base URL of the repository", "http://a.cz/oai"),
    Column("repository", "VARCHAR", "its repositoryName in Identify", "Archive A"),
    Column("id", "VARCHAR", "its identifier there", "oai:a.cz:1"),
    Column("specs", "VARCHAR[]", "its setSpecs there, sorted", "[a, b:c]"),
    Column("records", "JSON", "its metadata in each harvested format, sorted by prefix", _RECORDS),
    Column("ended", "VARCHAR[]", "prefixes of formats that were published and ended", "[marcxml]"),
)
"""The document of an item of the kind `harvested`."""

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

FILE_DETAILS = (
    Column("original", "VARCHAR", "its path on the platform, if it differs", "data/aux.csv"),
    Column("packed", "BIGINT", "bytes of a deflated member in its bundle", "812"),
    Column("within", "BIGINT", "offset in its bundle, if that is in a WARC record", "4096"),
)
"""What the document of a dataset says of a file besides, where it applies."""

_LICENCES = '[{"name": "CC BY 4.0", "spdx": "CC-BY-4.0", "url": "https://creativecommons.org/..."}]'
_BUNDLE = '{"key": "filesets/.../bundle.zip", "bytes": 204800, "sha256": "9f86d08..."}'
_FILES = '[{"path": "data/a.csv", "status": "verified", "bytes": 1480, "mimetype": "text/csv"}]'
_ACCESS = '{"status": "platform-gone", "since": "2026-11-22", "reason": "duplicate"}'
_VERSIONS = '[{"identifier": "oai:a.cz:dataset,...", "relation": "IsNewVersionOf"}]'
_PEOPLE = '[{"name": "Novák, Jan", "given": "Jan", "family": "Novák"}]'

FILESET = (
    Column("platform", "VARCHAR", "platform that hosts it", "zenodo"),
    Column("host", "VARCHAR", "the host", "zenodo.org"),
    Column("id", "VARCHAR", "its id on the platform", "7078725"),
    Column("version", "VARCHAR", "its version on the platform", "1"),
    Column(
        "version_order",
        "VARCHAR",
        "sort key among versions with the same first letter; NULL if the order is unknown",
        "n:000000000001",
    ),
    Column("edition", "VARCHAR", "version label of its creators", "1.0.2"),
    Column("status", "VARCHAR", "status of its archiving (docs/guide/datasets.md)", "success"),
    Column(
        "strategy",
        "VARCHAR",
        "strategy by which its files are stored; NULL if none are",
        "s3-fileset",
    ),
    Column("until", "VARCHAR", "end of the embargo (W3CDTF)", "NULL"),
    Column("title", "VARCHAR", "title", "Honey prices"),
    Column(
        "creators",
        "JSON",
        "creators: name, given, family, orcid, affiliations, organisation",
        _PEOPLE,
    ),
    Column("contributors", "JSON", "contributors: the same, and role", "[]"),
    Column("publisher", "VARCHAR", "publisher", "Zenodo"),
    Column("published", "VARCHAR", "when (W3CDTF)", "2022-09-14"),
    Column("type", "VARCHAR", "general resource type of DataCite", "Dataset"),
    Column("abstract", "VARCHAR", "description", "..."),
    Column("subjects", "VARCHAR[]", "subjects and keywords", "[honey]"),
    Column("language", "VARCHAR", "language", "en"),
    Column("licences", "JSON", "licences: name, spdx, url", _LICENCES),
    Column("doi", "VARCHAR", "its DOI", "10.5281/zenodo.7078725"),
    Column("url", "VARCHAR", "landing page", "https://zenodo.org/records/7078725"),
    Column("related", "JSON", "related resources: identifier, identifier_type, relation", "[]"),
    Column("archiveorg_item", "VARCHAR", "item of archive.org with its files", "NULL"),
    Column(
        "bundle",
        "JSON",
        "bundle with its files: key, bytes, sha256; NULL if there is none",
        _BUNDLE,
    ),
    Column("bytes", "BIGINT", "bytes of its stored files", "204800"),
    Column(
        "files",
        "JSON",
        "its stored files: columns of `files`, and original, packed, within",
        _FILES,
    ),
    Column("withheld", "JSON", "files that the platform lists but withholds: path, bytes", "[]"),
    Column("access", "JSON", "how the platform closed it: status, since, reason", _ACCESS),
    Column(
        "versions",
        "JSON",
        "its other listed versions: identifier, version, doi, url, relation",
        _VERSIONS,
    ),
)
"""The document of a fileset, or of a dataset with one file."""

COMPUTED = frozenset({"access", "versions"})
"""Columns that a publish adds to a document where they apply."""

TABLES: dict[str, tuple[Column, ...]] = {
    "ingest_fileset_platform": RESULT,
    "files": FILE,
    "sightings": SIGHTINGS,
}

ORDER: dict[str, tuple[str, ...]] = {
    "ingest_fileset_platform": ("base_url", "ingest_type"),
    "files": ("identifier", "path"),
    "sightings": ("id", "place", "prefix", "list", "run"),
}
"""The columns that each table is sorted by; together they are unique."""

READING = "harvest "
"""How `reading` of a part of a harvest begins in the table of sources."""
