"""The tables of the obi store, computed from the logs of its runs. See docs/reference/store.md.

Times are tists: the time of a run, in whole seconds since 1970.
"""

from functions.snapshot.column import Column

_ID = Column("id", "VARCHAR", "a template's handle, or a file's URL", "RePEc:cgd:wpaper:1")
_KIND = Column("kind", "VARCHAR", "tobi: template, fobi: file, redif: file of ReDIF", "tobi")
_KEY = Column("key", "VARCHAR", "where its bytes lie in the store", "obi/032/184/2531/RePEc%3A...")
_TIST = Column("tist", "BIGINT", "the run", "1352481230")

OBI = (
    _ID,
    _KIND,
    Column("found", "BIGINT", "run of its first version", "1352481230"),
    Column("noted", "BIGINT", "run of its newest version", "1352481230"),
    Column("lost", "BIGINT", "run that found it gone; NULL while it is there", "NULL"),
    Column("seen", "BIGINT", "last run that found it there", "1736035200"),
    Column("versions", "INTEGER", "how many versions it has", "2"),
    Column("key", "VARCHAR", "where its newest bytes lie in the store", "obi/032/184/2531/..."),
    Column("digest", "VARCHAR", "SHA-256 of a template's text, of a file's bytes", "9f86d08..."),
    Column("home", "VARCHAR", "folder of the archive that it is from", "cgd"),
)

VERSION = (
    _ID,
    _KIND,
    Column("tist", "BIGINT", "run that noted it", "1352481230"),
    _KEY,
    Column("bytes", "BIGINT", "how many bytes lie there", "1480"),
    Column("md5", "VARCHAR", "MD5 of these bytes, hexadecimal", "d41d8cd9..."),
    Column("sha256", "VARCHAR", "SHA-256 of these bytes, hexadecimal", "9f86d08..."),
    Column("text_md5", "VARCHAR", "MD5 of the text that decides on a change", "d41d8cd9..."),
    Column("text_sha256", "VARCHAR", "SHA-256 of that text; of a file it decides nothing", "..."),
    Column("text_method", "VARCHAR", "how a file's text was got", "NULL"),
    Column("modified", "BIGINT", "the source's own time, seconds since 1970", "1352400000"),
    Column("home", "VARCHAR", "folder of the archive that it is from", "cgd"),
    Column("source", "VARCHAR", "file in which a template stood", "cgd/wpaper/1.rdf"),
    Column("place", "BIGINT", "first byte of the template there", "0"),
    Column("length", "BIGINT", "its bytes there", "1502"),
    Column("encoding", "VARCHAR", "how these were encoded", "utf-8-sig"),
    Column("type", "VARCHAR", "type of a template", "ReDIF-Paper 1.0"),
    Column("valid", "BOOLEAN", "whether a template is as ReDIF asks", "true"),
    Column("handle", "VARCHAR", "a template's handle as it was written", "RePEc:cgd:wpaper:1"),
    Column("media_type", "VARCHAR", "Content-Type of a file", "application/pdf"),
    Column("etag", "VARCHAR", "ETag of a file, as sent", '"5d8c72a5edda8"'),
    Column("last_modified", "VARCHAR", "Last-Modified of a file, as sent", "Fri, 09 Nov 2012 ..."),
    Column("flags", "VARCHAR[]", "what is odd about a file", "[landing-page]"),
)

CHECKSUM = (
    Column("digest", "VARCHAR", "SHA-256 of stored bytes, hexadecimal", "9f86d08..."),
    Column("key", "VARCHAR", "where they were stored first", "obi/032/184/2531/..."),
    Column("bytes", "BIGINT", "how many these are", "1480"),
    Column("copies", "BIGINT", "how often they are stored", "1"),
)

INCIDENCE = (
    _TIST,
    _ID,
    _KIND,
    Column("what", "VARCHAR", "appearance, change or deletion", "appearance"),
    Column("again", "BOOLEAN", "whether it appeared after it was lost", "false"),
    Column("key", "VARCHAR", "where the bytes lie that it then had, or had last", "obi/032/..."),
)

REFIPO = (
    Column("handle", "VARCHAR", "a template that is there", "RePEc:cgd:wpaper:1"),
    Column("position", "BIGINT", "which of its file blocks, from 0", "0"),
    Column("url", "VARCHAR", "the block's URL as written", "http://www.cgdev.org/a.pdf"),
    Column(
        "id", "VARCHAR", "the file's id; NULL where the URL is none", "http://www.cgdev.org/..."
    ),
    Column("format", "VARCHAR", "File-Format", "application/pdf"),
    Column("function", "VARCHAR", "File-Function", "NULL"),
    Column("size", "VARCHAR", "File-Size", "NULL"),
    Column("restriction", "VARCHAR", "File-Restriction", "NULL"),
    Column("tist", "BIGINT", "run since which it is so", "1352481230"),
)

REDIRECT = (
    _TIST,
    Column("origin", "VARCHAR", "the URL that led elsewhere", "http://a.org/x"),
    Column("target", "VARCHAR", "where it led", "https://a.org/x"),
    Column("status", "BIGINT", "HTTP status", "301"),
    Column("key", "VARCHAR", "where in the store that is written; NULL for a mere slash", "NULL"),
    Column("target_key", "VARCHAR", "where the bytes lie that were found at last", "obi/032/..."),
)

FAILURE = (
    _TIST,
    Column("id", "VARCHAR", "the URL that could not be had", "http://a.org/x"),
    Column("code", "VARCHAR", "why", "timeout"),
    Column("status", "BIGINT", "HTTP status, where there was one", "503"),
    Column("detail", "VARCHAR", "what was found", "no byte for 30 seconds"),
)

RUN = (
    Column("tist", "BIGINT", "the run's time, by which it is named", "1352481230"),
    Column("kind", "VARCHAR", "ingest or gather", "ingest"),
    Column("source", "VARCHAR", "what was read, as it was given", "RePEc_2025-01-05.tar.gz"),
    Column("begun", "TIMESTAMP", "when it was begun, UTC", "2026-11-21 10:00:00"),
    Column("committed", "TIMESTAMP", "when it was committed, UTC", "2026-11-21 10:00:07"),
    Column("log", "VARCHAR", "SHA-256 of its log as stored", "9f86d08..."),
    Column("digest", "VARCHAR", "SHA-256 of its commit.json", "9f86d08..."),
    Column("previous", "VARCHAR", "that of the run before it; NULL for the first", "NULL"),
    Column("counts", "VARCHAR", "rows of its log by what they are, as JSON", '{"version": 2}'),
)

_FIELDS = '{"author": [{"name": ["A. Name"]}], "title": ["A title"], "handle": ["RePEc:cgd:w:1"]}'

TEMPLATE = (
    Column("handle", "VARCHAR", "its handle in the canonical form", "RePEc:cgd:wpaper:1"),
    Column("handle_written", "VARCHAR", "its handle as it was written", "RePEc:CGD:wpaper:1"),
    Column("type", "VARCHAR", "its type; NULL for one that ReDIF has not", "ReDIF-Paper 1.0"),
    Column("type_written", "VARCHAR", "its type as it was written", "ReDIF-Paper 1.0"),
    Column("valid", "BOOLEAN", "whether it is as ReDIF asks", "true"),
    Column("text", "VARCHAR", "all of its text", "Template-Type: ReDIF-Paper 1.0"),
    Column("fields", "JSON", "its values by attribute, clusters as tables of the same", _FIELDS),
    Column("tist", "BIGINT", "the run that noted it", "1352481230"),
    Column("archive", "VARCHAR", "the archive that it is of", "RePEc:cgd"),
    Column("series", "VARCHAR", "the series that it is of", "RePEc:cgd:wpaper"),
    Column("source", "VARCHAR", "the file in which it stood", "cgd/wpaper/1.rdf"),
    Column("restriction", "VARCHAR[]", "what its series or archive says of all files", "[...]"),
    Column("journal", "VARCHAR", "the name of its series, of an article", "NULL"),
    Column("series_name", "VARCHAR", "the name of its series", "Working papers"),
    Column("provider", "VARCHAR[]", "who provides its series", "[A publisher]"),
)
"""The document of a template; `fields` is the `structure` that `sheaf redif` shows."""

DOCUMENT = Column(
    "document", "VARCHAR", "what it holds, as JSON; NULL of captures and collections", "NULL"
)

TABLES: dict[str, tuple[Column, ...]] = {
    "obi": OBI,
    "version": VERSION,
    "checksum": CHECKSUM,
    "incidence": INCIDENCE,
    "refipo": REFIPO,
    "redirect": REDIRECT,
    "failure": FAILURE,
    "run": RUN,
}

ORDER: dict[str, tuple[str, ...]] = {
    "obi": ("id", "kind"),
    "version": ("id", "kind", "tist"),
    "checksum": ("digest",),
    "incidence": ("tist", "id", "kind", "what"),
    "refipo": ("handle", "position"),
    "redirect": ("tist", "origin"),
    "failure": ("tist", "id"),
    "run": ("tist",),
}
"""The columns that each table is sorted by, followed by all others."""
