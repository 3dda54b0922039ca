"""The schema of a store: tables and columns, with type, meaning and an example of each.

Types are DuckDB's. Times are UTC without a zone. Text is UTF-8 without the characters that XML
forbids.
"""

from functions.snapshot import fileset, harvested, obi
from functions.snapshot.column import Column as Column

ITEM = (
    Column("position", "BIGINT", "place in the log of published versions; never reused", "4711"),
    Column("sequence", "INTEGER", "number of the publish that gave the position", "1"),
    Column("identifier", "VARCHAR", "OAI identifier", "oai:webarchiv.cz:k3j2..."),
    Column("kind", "VARCHAR", "one of KINDS", "capture"),
    Column("deleted", "BOOLEAN", "true for a tombstone, which keeps only these columns", "false"),
    Column("reason", "VARCHAR", "why the item was withdrawn; NULL where it was not", "NULL"),
    Column("sets", "VARCHAR[]", "most specific sets, sorted", "[domain:cz:idnes, mime:text:html]"),
    Column(
        "left_sets",
        "VARCHAR[]",
        "most specific sets of earlier versions that this one is not in, sorted",
        "[mime:text:plain]",
    ),
)

CAPTURE = (
    Column("url", "VARCHAR", "URL; bytes beyond ASCII, spaces and controls as %XX", "http://a.cz/"),
    Column("url_bytes", "BLOB", "the URL's bytes as archived, where url had to differ", "NULL"),
    Column("url_surtkey", "VARCHAR", "SURT, the sort key", "cz,a)/"),
    Column("url_host_name", "VARCHAR", "host, lower case, IDN as punycode", "www.a.cz"),
    Column("url_host_registered_domain", "VARCHAR", "domain by the public suffix list", "a.cz"),
    Column("fetch_date", "VARCHAR", "date as exact as the file has it (W3CDTF)", "2007-11-05"),
    Column("fetch_time", "TIMESTAMP", "the same as a time, where exact to the second", "NULL"),
    Column("fetch_status", "SMALLINT", "HTTP status; NULL where there is none", "200"),
    Column("fetch_method", "VARCHAR", "HTTP method of the request; NULL: GET or not known", "POST"),
    Column("fetch_body", "VARCHAR", "what the request sent, as the query that pywb has", "a=1&b=2"),
    Column("fetch_redirect", "VARCHAR", "Location of a redirect, as sent", "NULL"),
    Column(
        "content_digest",
        "VARCHAR",
        "SHA-1 of the payload, base32; a revisit's may be label:value",
        "3I42H3S6NNFQ2MSVX7XZ...",
    ),
    Column("content_length", "BIGINT", "bytes of payload that the archive holds", "5120"),
    Column("content_mime_type", "VARCHAR", "media type as the server declared it", "text/html"),
    Column("content_mime_detected", "VARCHAR", "media type by the content's first bytes", "NULL"),
    Column("content_charset", "VARCHAR", "character encoding, WHATWG name", "windows-1250"),
    Column("content_charset_source", "VARCHAR", "declared, marked, detected or assumed", "marked"),
    Column("content_languages", "VARCHAR", "declared languages, comma separated", "cs"),
    Column("content_truncated", "VARCHAR", "why the payload is not whole", "length"),
    Column("content_damaged", "VARCHAR", "what failed in its compressed member", "checksum"),
    Column("title", "VARCHAR", "title of an HTML page", "Zprávy"),
    Column("refers_to_url", "VARCHAR", "URL of a revisit's original, where said", "NULL"),
    Column("refers_to_date", "VARCHAR", "date of a revisit's original, where said", "NULL"),
    Column("warc_record_type", "VARCHAR", "response, resource or revisit", "response"),
    Column("warc_filename", "VARCHAR", "archive file, without its folder", "crawl-1.warc.gz"),
    Column("warc_record_offset", "BIGINT", "first byte of the record (or gzip member)", "1024"),
    Column("warc_record_length", "BIGINT", "bytes of the record as stored", "2048"),
    Column("warc_request_offset", "BIGINT", "first byte of the record of that request", "3072"),
    Column(
        "content_digest_declared",
        "VARCHAR",
        "payload digest that the record declares, where it is another than content_digest",
        "sha256:9f86d081...",
    ),
    Column("refers_to", "VARCHAR", "identifier of a revisit's original, where known", "NULL"),
    Column("inherited", "VARCHAR[]", "columns that hold the original's values", "[title]"),
)

RESOLVED = frozenset({"refers_to", "inherited"})
"""Columns that no archive file has: a publish computes them for revisits."""

_COUNTS = '{"different": 1, "most": [{"value": "a", "captures": 3, "bytes": 20}]}'

COLLECTION = (
    Column("name", "VARCHAR", "the collection's name for people", "Serials, November 2007"),
    Column("set_spec", "VARCHAR", "its set", "collection:serials:harvest_november07"),
    Column("description", "VARCHAR[]", "the configured one, then what archive files say", "[...]"),
    Column("operator", "VARCHAR[]", "who had the archive files made, by their account", "[...]"),
    Column("software", "VARCHAR[]", "what made them", "[Heritrix/3.1.1]"),
    Column("part_of", "VARCHAR[]", "the crawls that they are part of", "[serials-2007-11]"),
    Column("first_date", "VARCHAR", "day of the first capture, as exact as known", "2007-11-05"),
    Column("last_date", "VARCHAR", "day of the last capture", "2007-11-29"),
    Column("captures", "BIGINT", "captures published", "412000"),
    Column("bytes", "BIGINT", "bytes of their payloads", "20110000000"),
    Column("files", "BIGINT", "archive files that were ingested into it", "17"),
    Column("file_bytes", "BIGINT", "their bytes", "12890000000"),
    Column("host", "JSON", "captures by host: how many differ, and those with the most", _COUNTS),
    Column("media_type", "JSON", "the same by media type, declared else detected", _COUNTS),
    Column("status", "JSON", "the same by HTTP status", _COUNTS),
)
"""The document of a collection. A null value among the counts stands for unknown."""

KINDS: dict[str, tuple[Column, ...]] = {
    "capture": CAPTURE,
    "collection": COLLECTION,
    "template": obi.TEMPLATE,
    "fileset": fileset.FILESET,
    "file": fileset.FILESET,
    "harvested": harvested.HARVESTED,
}
"""The columns of each kind of item besides ITEM."""

DATASETS = ("file", "fileset")
"""Kinds of items that are datasets: with exactly one file, and with any other number."""

DOCUMENTED = frozenset({"template", "harvested", *DATASETS})
"""Kinds of items whose own columns are JSON in the column `document` of records."""

CONTENT = (*CAPTURE, obi.DOCUMENT)
"""The columns of records besides ITEM; they are NULL in a tombstone."""

LOCATION = frozenset(
    {"warc_filename", "warc_record_offset", "warc_record_length", "warc_request_offset"}
)
"""The location of a copy. A second copy of a capture elsewhere does not change the capture."""

FAULT = (
    Column("source", "VARCHAR", "file in which the fault was found", "crawl-1.warc.gz"),
    Column("place", "BIGINT", "byte offset in the file; NULL where none applies", "1024"),
    Column("code", "VARCHAR", "what is wrong, from the table of faults", "payload-short"),
    Column("field", "VARCHAR", "which field of the record, where one applies", "WARC-Date"),
    Column("detail", "VARCHAR", "what was found", "declared 5120 bytes, found 17"),
    Column("done", "VARCHAR", "what was done about it", "published as truncated"),
)

SOURCE = (
    Column("source", "VARCHAR", "archive file, without its folder", "crawl-1.warc.gz"),
    Column("digest", "VARCHAR", "SHA-256 of the file, hexadecimal", "9f86d08..."),
    Column(
        "path",
        "VARCHAR",
        "where the file was read; seen from sheaf.toml, if it was given so",
        "crawls/crawl-1.warc.gz",
    ),
    Column("format", "VARCHAR", "arc, warc or wacz, with .gz or .zst if compressed", "warc.gz"),
    Column("bytes", "BIGINT", "size of the file", "1289228"),
    Column("captures", "BIGINT", "captures that it gave", "97"),
    Column("skipped", "BIGINT", "records that are no documents or that a rule left out", "105"),
    Column("faults", "BIGINT", "rows of faults that tell of it", "0"),
    Column("collections", "VARCHAR[]", "collections it was ingested into", "[collection:news]"),
    Column("software", "VARCHAR", "what made it, by its own account", "Heritrix/3.1.1"),
    Column("operator", "VARCHAR", "who had it made, likewise", "WebArchiv"),
    Column("part_of", "VARCHAR", "the crawl that it is part of, likewise", "serials-2007-11"),
    Column("description", "VARCHAR", "what it says of that crawl", "Serials, November"),
)

SETS = (
    Column("set_spec", "VARCHAR", "the set", "mime:text:html"),
    Column("records", "BIGINT", "records in the listing, deleted and departed included", "412"),
    Column("live", "BIGINT", "those of them that are neither deleted nor departed", "409"),
    Column(
        "counts",
        "STRUCT(sequence INTEGER, kind VARCHAR, records BIGINT, live BIGINT)[]",
        "records by publish and kind",
        "[{1, capture, 412, 409}]",
    ),
    Column(
        "ranges",
        "STRUCT(first BIGINT, last BIGINT, copied BOOLEAN)[]",
        "positions between which its records lie, ascending",
        "[{1, 978, false}]",
    ),
    Column(
        "turns",
        "INTEGER[]",
        "publishes with which it came to have live records, to have none, and so on in turn",
        "[1]",
    ),
    Column("name", "VARCHAR", "its name, where a template tells it", "Working papers"),
)

SUPERSEDED = (
    "position, sequence, kind, deleted, sets, left_sets, url_host_name, content_mime_type, "
    "content_mime_detected, fetch_status, fetch_date, content_length, identifier, url, fetch_time, "
    "content_digest, content_digest_declared, content_damaged, warc_record_type, refers_to"
)
"""The columns of a superseded version that are still needed.

These are the columns that it was counted by and those that resolved revisits.
"""

LOOKUP = (
    Column("key", "BIGINT", "key of the identifier", "81985529216486895"),
    Column("position", "BIGINT", "a position that the identifier was given", "4711"),
)

URLS = (
    Column(
        "surt", "VARCHAR", "url_surtkey of a capture, its first SURT_LONGEST characters", "cz,a)/"
    ),
    Column(
        "stamp",
        "BIGINT",
        "its date in 14 digits, the unknown ones the least; 0: none",
        "20071105000000",
    ),
    Column("position", "BIGINT", "a position that the capture was given", "4711"),
)

SURT_LONGEST = 512
"""Characters of a SURT that a search for captures compares."""

DEAD = (Column("position", "BIGINT", "a position whose item has a later version", "17"),)

ORIGINALS = (
    Column("key", "BIGINT", "key of its URL and date, or of a digest", "81985529216"),
    Column("url", "INTEGER", "of a digest's: a hash of its URL", "1193046"),
    Column("moment", "BIGINT", "of a digest's: its date in seconds since 1970", "1194264000"),
    Column("position", "BIGINT", "a position of a capture that is no revisit", "4711"),
)

REVISITS = (
    Column("key", "BIGINT", "key of an original that would be its own", "81985529216"),
    Column("url", "INTEGER", "a hash of the URL that this has to have, where it has to", "1193046"),
    Column("moment", "BIGINT", "date of the revisit, where it was found by this", "1194264000"),
    Column("goal", "BIGINT", "date of its original, where it was found by this", "1194260000"),
    Column("position", "BIGINT", "a position of a revisit", "4712"),
)

DOCUMENTS = (
    Column("identifier", "VARCHAR", "a listed item that is no capture", "oai:a.cz:collection,x"),
    Column("document", "VARCHAR", "what it holds, as JSON", "{...}"),
)

TALLIES = (
    Column("collection", "VARCHAR", "the collection's set", "collection:serials"),
    Column("facet", "VARCHAR", "host, media_type, status or day", "media_type"),
    Column("value", "VARCHAR", "what is counted; empty where it is not known", "text/html"),
    Column("captures", "BIGINT", "captures of the collection that have it", "412"),
    Column("bytes", "BIGINT", "bytes of their payloads", "20110000"),
)

COPY_OF = Column("listing", "VARCHAR", "the set that this copy of a record belongs to", "mime:x:y")

TABLES: dict[str, tuple[Column, ...]] = {
    "records": ITEM + CONTENT,
    "copies": (COPY_OF, *ITEM, *CONTENT),
    "sets": SETS,
    "lookup": LOOKUP,
    "dead": DEAD,
    "originals": ORIGINALS,
    "revisits": REVISITS,
    "urls": URLS,
    "faults": FAULT,
    "sources": SOURCE,
    "tallies": TALLIES,
    "documents": DOCUMENTS,
    **obi.TABLES,
    **fileset.TABLES,
}

ORDER: dict[str, tuple[str, ...]] = {
    "records": ("position",),
    "copies": ("listing", "position"),
    "sets": ("set_spec",),
    "lookup": ("key", "position"),
    "dead": ("position",),
    "originals": ("key", "url", "moment", "position"),
    "revisits": ("key", "url", "moment", "goal", "position"),
    "urls": ("surt", "stamp", "position"),
    "faults": ("source", "place", "code", "field", "detail"),
    "sources": ("source", "digest"),
    "tallies": ("collection", "facet", "value"),
    "documents": ("identifier",),
    **obi.ORDER,
    **fileset.ORDER,
}
"""The columns that each table is sorted by; a row group's bounds in the manifest are of these."""

KEY: dict[str, int] = {
    "records": 1,
    "copies": 2,
    "sets": 1,
    "lookup": 1,
    "dead": 1,
    "originals": 1,
    "revisits": 1,
    "urls": 2,
    "faults": 1,
    "sources": 1,
    "tallies": 1,
    "documents": 1,
    **dict.fromkeys((*obi.TABLES, *fileset.TABLES), 1),
}
"""The number of leading ORDER columns of a table that bound its row groups."""


def names(table: str) -> tuple[str, ...]:
    """Return the column names of `table`, in order."""
    return tuple(column.name for column in TABLES[table])
