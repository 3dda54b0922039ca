"""The schema of a store: tables and columns, with type, meaning and an example of each.

Types are DuckDB's. Times are UTC without a zone. Text is UTF-8 without the characters that XML
forbids.
"""

from functions.snapshot import figure_tables, item_tables, obi
from functions.snapshot.item_tables import Column as Column

ITEM = (
    Column("position", "BIGINT", "place in the log of published versions; never reused", "4711"),
    Column("sequence", "INTEGER", "number of the publish that assigned the position", "1"),
    Column("identifier", "VARCHAR", "OAI identifier", "oai:webarchiv.cz:k3j2..."),
    Column("kind", "VARCHAR", "one of KINDS", "capture"),
    Column("deleted", "BOOLEAN", "true for a tombstone, which has only these columns", "false"),
    Column("reason", "VARCHAR", "why the item was withdrawn; NULL if it was not", "NULL"),
    Column("sets", "VARCHAR[]", "most specific sets, sorted", "[domain:cz:idnes, mime:text:html]"),
    Column(
        "left_sets",
        "VARCHAR[]",
        "most specific sets of earlier versions that this version left, sorted",
        "[mime:text:plain]",
    ),
)

CAPTURE = (
    Column("url", "VARCHAR", "URL; bytes beyond ASCII, spaces and controls as %XX", "http://a.cz/"),
    Column("url_bytes", "BLOB", "bytes of the URL as archived, if they differ from url", "NULL"),
    Column("url_surtkey", "VARCHAR", "SURT, the sort key", "cz,a)/"),
    Column("url_host_name", "VARCHAR", "host, lower case, IDN as punycode", "www.a.cz"),
    Column("url_host_registered_domain", "VARCHAR", "domain by public suffix list", "a.cz"),
    Column("fetch_date", "VARCHAR", "date with the precision of the file (W3CDTF)", "2007-11-05"),
    Column("fetch_time", "TIMESTAMP", "the date as a time, if exact to the second", "NULL"),
    Column("fetch_status", "SMALLINT", "HTTP status; NULL if there is none", "200"),
    Column("fetch_method", "VARCHAR", "HTTP method of the request; NULL: GET or unknown", "POST"),
    Column("fetch_body", "VARCHAR", "body of the request, as a query of pywb", "a=1&b=2"),
    Column("fetch_redirect", "VARCHAR", "Location of a redirect, as sent", "NULL"),
    Column(
        "content_digest",
        "VARCHAR",
        "SHA-1 of the payload, base32; a revisit's may be label:value",
        "3I42H3S6NNFQ2MSVX7XZ...",
    ),
    Column("content_length", "BIGINT", "length of the archived payload in bytes", "5120"),
    Column("content_mime_type", "VARCHAR", "media type as the server declared it", "text/html"),
    Column("content_mime_detected", "VARCHAR", "media type by the content's first bytes", "NULL"),
    Column("content_charset", "VARCHAR", "character encoding, WHATWG name", "windows-1250"),
    Column("content_charset_source", "VARCHAR", "declared, marked, detected or assumed", "marked"),
    Column("content_languages", "VARCHAR", "declared languages, comma separated", "cs"),
    Column("content_truncated", "VARCHAR", "why the payload is not whole", "length"),
    Column("content_damaged", "VARCHAR", "what failed in its compressed member", "checksum"),
    Column("title", "VARCHAR", "title of an HTML page", "Zprávy"),
    Column("refers_to_url", "VARCHAR", "URL of a revisit's original, if declared", "NULL"),
    Column("refers_to_date", "VARCHAR", "date of a revisit's original, if declared", "NULL"),
    Column("warc_record_type", "VARCHAR", "response, resource or revisit", "response"),
    Column("warc_filename", "VARCHAR", "archive file, without its folder", "crawl-1.warc.gz"),
    Column("warc_record_offset", "BIGINT", "offset of the record (or gzip member)", "1024"),
    Column("warc_record_length", "BIGINT", "stored length of the record in bytes", "2048"),
    Column("warc_request_offset", "BIGINT", "offset of the record of the request", "3072"),
    Column(
        "content_digest_declared",
        "VARCHAR",
        "payload digest that the record declares, if it differs from content_digest",
        "sha256:9f86d081...",
    ),
    Column("refers_to", "VARCHAR", "identifier of a revisit's original, if known", "NULL"),
    Column("inherited", "VARCHAR[]", "columns with values of the original", "[title]"),
)

RESOLVED = frozenset({"refers_to", "inherited"})
"""Columns that no archive file has: a publish computes them for revisits."""

CONTENT = (*CAPTURE, obi.DOCUMENT)
"""The columns of records besides ITEM; they are NULL in a tombstone."""

LOCATION = frozenset(
    {"warc_filename", "warc_record_offset", "warc_record_length", "warc_request_offset"}
)
"""The location of a copy. A second copy of a capture elsewhere does not change the capture."""

FAULT = (
    Column("source", "VARCHAR", "file in which the fault was found", "crawl-1.warc.gz"),
    Column("place", "BIGINT", "byte offset in the file; NULL if not applicable", "1024"),
    Column("code", "VARCHAR", "code of the fault", "payload-short"),
    Column("field", "VARCHAR", "field of the record, if applicable", "WARC-Date"),
    Column("detail", "VARCHAR", "details of the fault", "declared 5120 bytes, found 17"),
    Column("done", "VARCHAR", "how it was handled", "published as truncated"),
)

SOURCE = (
    Column("source", "VARCHAR", "archive file, without its folder", "crawl-1.warc.gz"),
    Column("digest", "VARCHAR", "SHA-256 of the file, hexadecimal", "9f86d08..."),
    Column(
        "path",
        "VARCHAR",
        "address of the file; relative to sheaf.toml, if given so",
        "crawls/crawl-1.warc.gz",
    ),
    Column("format", "VARCHAR", "arc, warc or wacz, with .gz or .zst if compressed", "warc.gz"),
    Column("bytes", "BIGINT", "size of the file", "1289228"),
    Column("captures", "BIGINT", "captures from this file", "97"),
    Column("skipped", "BIGINT", "records that are no documents, or are excluded", "105"),
    Column("faults", "BIGINT", "rows of this file in faults", "0"),
    Column("collections", "VARCHAR[]", "collections of this ingest", "[collection:news]"),
    Column("software", "VARCHAR", "software that wrote it, as declared", "Heritrix/3.1.1"),
    Column("operator", "VARCHAR", "operator, as declared", "WebArchiv"),
    Column("part_of", "VARCHAR", "crawl, as declared", "serials-2007-11"),
    Column("description", "VARCHAR", "description of the crawl, as declared", "Serials, November"),
    Column(
        "reading",
        "VARCHAR",
        "hash of the file's name, size and time or ETag, and of the settings that it was read with",
        "5d41402...",
    ),
)

SETS = (
    Column("set_spec", "VARCHAR", "the set", "mime:text:html"),
    Column("records", "BIGINT", "records in the listing, with deleted and departed ones", "412"),
    Column("live", "BIGINT", "of these, neither deleted nor departed", "409"),
    Column(
        "counts",
        "STRUCT(sequence INTEGER, kind VARCHAR, records BIGINT, live BIGINT)[]",
        "records by publish and kind",
        "[{1, capture, 412, 409}]",
    ),
    Column(
        "ranges",
        "STRUCT(first BIGINT, last BIGINT, copied BOOLEAN)[]",
        "position ranges of its records, ascending",
        "[{1, 978, false}]",
    ),
    Column(
        "turns",
        "INTEGER[]",
        "publishes that first gave it live records, then removed the last one, and so on in turn",
        "[1]",
    ),
    Column("name", "VARCHAR", "its name, if a template declares it", "Working papers"),
)

SUPERSEDED = (
    "position, sequence, kind, deleted, sets, left_sets, url_host_name, "
    "url_host_registered_domain, content_mime_type, content_mime_detected, fetch_status, "
    "fetch_date, content_length, identifier, url, fetch_time, content_digest, "
    "content_digest_declared, content_damaged, warc_record_type, refers_to"
)
"""The columns of a superseded version that are still needed.

These are the columns that it was counted by and those that resolved revisits.
"""

LOOKUP = (
    Column("key", "BIGINT", "key of the identifier", "81985529216486895"),
    Column("position", "BIGINT", "a position of the identifier", "4711"),
)

URLS = (
    Column(
        "surt", "VARCHAR", "url_surtkey of a capture, its first SURT_LONGEST characters", "cz,a)/"
    ),
    Column(
        "stamp",
        "BIGINT",
        "its date in 14 digits, unknown digits at their minimum; 0: no date",
        "20071105000000",
    ),
    Column("position", "BIGINT", "a position of the capture", "4711"),
)

WORDS = (
    Column("word", "VARCHAR", "a word, folded (functions.search.words)", "kniznice"),
    Column("position", "BIGINT", "a position of an item with the word", "4711"),
    Column("following", "BIGINT", "number of next positions that have it as well", "0"),
)

SURT_LONGEST = 512
"""Characters of a SURT that a search for captures compares."""

SINGLE = tuple(column.name for column in (*ITEM, *CONTENT) if column.name != "position")
"""The columns in a text of SINGLES. Texts of another number of columns are not read."""

SINGLES = (
    Column("position", "BIGINT", "a position of an item's version", "4711"),
    Column("text", "VARCHAR", "its other columns in records, as texts between U+001F", "1..."),
)

DEAD = (Column("position", "BIGINT", "a position that a later version superseded", "17"),)

ORIGINALS = (
    Column("key", "BIGINT", "key of its URL and date, or of its digest", "81985529216"),
    Column("url", "INTEGER", "hash of its URL, for the key of a digest", "1193046"),
    Column("moment", "BIGINT", "seconds since 1970, for the key of a digest", "1194264000"),
    Column("position", "BIGINT", "a position of a capture other than a revisit", "4711"),
)

REVISITS = (
    Column("key", "BIGINT", "key of a matching original", "81985529216"),
    Column("url", "INTEGER", "hash of the URL that the original must have, if any", "1193046"),
    Column("moment", "BIGINT", "date of the revisit, if it was matched by this key", "1194264000"),
    Column("goal", "BIGINT", "date of its original, if it was matched by this key", "1194260000"),
    Column("position", "BIGINT", "a position of a revisit", "4712"),
)

DOCUMENTS = (
    Column("identifier", "VARCHAR", "a listed item other than a capture", "oai:a.cz:collection,x"),
    Column("document", "VARCHAR", "its content as JSON", "{...}"),
)

TALLIES = (
    Column("collection", "VARCHAR", "the collection's set", "collection:serials"),
    Column("facet", "VARCHAR", "host, media_type, status or day", "media_type"),
    Column("value", "VARCHAR", "counted value; empty if unknown", "text/html"),
    Column("captures", "BIGINT", "captures of the collection with this value", "412"),
    Column("bytes", "BIGINT", "bytes of their payloads", "20110000"),
)

COPY_OF = Column("listing", "VARCHAR", "set of this copy of the record", "mime:x:y")

TABLES: dict[str, tuple[Column, ...]] = {
    "records": ITEM + CONTENT,
    "copies": (COPY_OF, *ITEM, *CONTENT),
    "sets": SETS,
    "lookup": LOOKUP,
    "singles": SINGLES,
    "dead": DEAD,
    "originals": ORIGINALS,
    "revisits": REVISITS,
    "urls": URLS,
    "words": WORDS,
    "faults": FAULT,
    "sources": SOURCE,
    "tallies": TALLIES,
    "documents": DOCUMENTS,
    **obi.TABLES,
    **item_tables.TABLES,
    **figure_tables.TABLES,
}

ORDER: dict[str, tuple[str, ...]] = {
    "records": ("position",),
    "copies": ("listing", "position"),
    "sets": ("set_spec",),
    "lookup": ("key", "position"),
    "singles": ("position",),
    "dead": ("position",),
    "originals": ("key", "url", "moment", "position"),
    "revisits": ("key", "url", "moment", "goal", "position"),
    "urls": ("surt", "stamp", "position"),
    "words": ("word", "position"),
    "faults": ("source", "place", "code", "field", "detail"),
    "sources": ("source", "digest"),
    "tallies": ("collection", "facet", "value"),
    "documents": ("identifier",),
    **obi.ORDER,
    **item_tables.ORDER,
    **figure_tables.ORDER,
}
"""The columns that each table is sorted by; a row group's bounds in the manifest are of these."""

KEY: dict[str, int] = {**dict.fromkeys(TABLES, 1), "copies": 2, "urls": 2, "words": 2}
"""The number of leading ORDER columns of a table that bound its row groups."""


def names(table: str) -> tuple[str, ...]:
    """Return the column names of `table`, in order."""
    return tuple(column.name for column in TABLES[table])
