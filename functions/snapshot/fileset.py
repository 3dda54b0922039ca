"""The tables of filesets: results of requests, and archived files."""

from functions.snapshot.column import Column

RESULT = (
    Column("ingest_type", "VARCHAR", "what was asked for: dataset", "dataset"),
    Column(
        "base_url", "VARCHAR", "the URL or DOI that was asked for", "https://doi.org/10.5281/..."
    ),
    Column(
        "updated",
        "TIMESTAMP",
        "when the newest result for it came about, UTC",
        "2026-11-22 10:00:00",
    ),
    Column("hit", "BOOLEAN", "whether its files are archived", "true"),
    Column("status", "VARCHAR", "what came of it (docs/guide/datasets.md)", "success"),
    Column("detail", "VARCHAR", "what was found, in words", "NULL"),
    Column("platform_name", "VARCHAR", "what hosts it", "zenodo"),
    Column("platform_domain", "VARCHAR", "the host", "zenodo.org"),
    Column("platform_id", "VARCHAR", "its id there", "7078725"),
    Column("platform_version", "VARCHAR", "its version there", "1"),
    Column("ingest_strategy", "VARCHAR", "how its files are kept", "s3-fileset"),
    Column("total_size", "BIGINT", "bytes of its files in all", "204800"),
    Column("file_count", "INTEGER", "how many files it has", "7"),
    Column("archiveorg_item_name", "VARCHAR", "the item of archive.org that has them", "NULL"),
    Column("archiveorg_item_bundle_path", "VARCHAR", "the bundle in that item", "NULL"),
    Column("web_bundle_url", "VARCHAR", "where a bundle was downloaded from", "NULL"),
    Column("web_bundle_dt", "VARCHAR", "when, in 14 digits (UTC)", "NULL"),
    Column(
        "manifest",
        "VARCHAR",
        "its files as the platform lists them, and what came of each",
        "[...]",
    ),
    Column("until", "VARCHAR", "the day from which the platform gives it (W3CDTF)", "NULL"),
    Column(
        "identifier",
        "VARCHAR",
        "the item that tells of it; NULL where none does",
        "oai:a.cz:dataset,zenodo,...",
    ),
)
"""The newest result of each type and URL; `manifest` is JSON."""

FILE = (
    Column("identifier", "VARCHAR", "the item that the file is of", "oai:a.cz:dataset,zenodo,..."),
    Column("path", "VARCHAR", "its path there", "data/a.csv"),
    Column(
        "status",
        "VARCHAR",
        "verified, or unverified where its platform tells no digest",
        "verified",
    ),
    Column("bytes", "BIGINT", "how many bytes it has", "1480"),
    Column("md5", "VARCHAR", "MD5 of these bytes, hexadecimal", "d41d8cd9..."),
    Column("sha1", "VARCHAR", "SHA-1 of these bytes, hexadecimal", "da39a3ee..."),
    Column("sha256", "VARCHAR", "SHA-256 of these bytes, hexadecimal", "9f86d08..."),
    Column("crc32", "VARCHAR", "CRC-32 of these bytes, hexadecimal", "00000000"),
    Column("mimetype", "VARCHAR", "media type", "text/csv"),
    Column(
        "key",
        "VARCHAR",
        "the object of the store that has it; NULL where that is elsewhere",
        "filesets/...",
    ),
    Column(
        "place",
        "BIGINT",
        "first byte of it there, in a WARC of its record; NULL where it is all of the object",
        "NULL",
    ),
    Column(
        "compression",
        "VARCHAR",
        "how it is packed there: stored or deflated in a bundle, warc in a record of a WARC",
        "stored",
    ),
    Column(
        "platform_url", "VARCHAR", "where its platform gives it", "https://zenodo.org/api/files/..."
    ),
    Column("terminal_url", "VARCHAR", "where it was had at last", "https://..."),
    Column("terminal_dt", "VARCHAR", "when, in 14 digits (UTC)", "20261122100000"),
)
"""The archived and verified files of each listed fileset and file."""

_LICENCES = '[{"name": "CC BY 4.0", "spdx": "CC-BY-4.0", "url": "https://creativecommons.org/..."}]'
_BUNDLE = '{"key": "filesets/.../bundle.zip", "bytes": 204800, "sha256": "9f86d08..."}'
_FILES = '[{"path": "data/a.csv", "status": "verified", "bytes": 1480, "mimetype": "text/csv"}]'
_PEOPLE = '[{"name": "Novák, Jan", "given": "Jan", "family": "Novák"}]'

FILESET = (
    Column("platform", "VARCHAR", "what hosts it", "zenodo"),
    Column("host", "VARCHAR", "the host", "zenodo.org"),
    Column("id", "VARCHAR", "its id there", "7078725"),
    Column("version", "VARCHAR", "its version there", "1"),
    Column(
        "version_order",
        "VARCHAR",
        "sorts as the versions do, of those that begin with the same letter; NULL where none tells",
        "n:000000000001",
    ),
    Column("edition", "VARCHAR", "what its makers call this version", "1.0.2"),
    Column("status", "VARCHAR", "what came of archiving it (docs/guide/datasets.md)", "success"),
    Column("strategy", "VARCHAR", "how its files are kept; NULL where none are", "s3-fileset"),
    Column("until", "VARCHAR", "the day from which the platform gives it (W3CDTF)", "NULL"),
    Column("title", "VARCHAR", "title", "Honey prices"),
    Column(
        "creators",
        "JSON",
        "who made it: name, given, family, orcid, affiliations, organisation",
        _PEOPLE,
    ),
    Column("contributors", "JSON", "who had another part in it: the same, and role", "[]"),
    Column("publisher", "VARCHAR", "who published it", "Zenodo"),
    Column("published", "VARCHAR", "when (W3CDTF)", "2022-09-14"),
    Column("type", "VARCHAR", "DataCite's general type of resource", "Dataset"),
    Column("abstract", "VARCHAR", "what it is about", "..."),
    Column("subjects", "VARCHAR[]", "subjects and keywords", "[honey]"),
    Column("language", "VARCHAR", "language", "en"),
    Column("licences", "JSON", "what it may be used by: name, spdx, url", _LICENCES),
    Column("doi", "VARCHAR", "its DOI", "10.5281/zenodo.7078725"),
    Column("url", "VARCHAR", "its landing page", "https://zenodo.org/records/7078725"),
    Column("related", "JSON", "what it is related to: identifier, identifier_type, relation", "[]"),
    Column("archiveorg_item", "VARCHAR", "the item of archive.org that has its files", "NULL"),
    Column(
        "bundle",
        "JSON",
        "the bundle that has its files: key, bytes, sha256; NULL where none has",
        _BUNDLE,
    ),
    Column("bytes", "BIGINT", "bytes of its files that are kept", "204800"),
    Column(
        "files", "JSON", "its files that are kept: the columns of `files` but identifier", _FILES
    ),
    Column(
        "withheld", "JSON", "files that the platform lists and does not give: path, bytes", "[]"
    ),
)
"""The document of a fileset, or of a dataset with one file."""

TABLES: dict[str, tuple[Column, ...]] = {"ingest_fileset_platform": RESULT, "files": FILE}

ORDER: dict[str, tuple[str, ...]] = {
    "ingest_fileset_platform": ("base_url", "ingest_type"),
    "files": ("identifier", "path"),
}
"""The columns that each table is sorted by; together they are unique."""
