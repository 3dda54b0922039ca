"""The tables of the obi store, computed from the logs of its runs. See docs/reference/store.md.

Times are tists: the time of a run, in whole seconds since 1970.
"""

from functions.snapshot.item_tables import Column

PACKS = "obi/;packs/"
"""Prefix of the packs, which are named by the SHA-256 of their bytes."""

_ID = Column("id", "VARCHAR", "a template's handle, or a file's URL", "RePEc:cgd:wpaper:1")
_KIND = Column("kind", "VARCHAR", "tobi: template, fobi: file, redif: file of ReDIF", "tobi")
_KEY = Column("key", "VARCHAR", "key of its bytes in the store", "obi/032/184/2531/RePEc%3A...")
_TIST = Column("tist", "BIGINT", "the run", "1352481230")
_PACK = Column("pack", "VARCHAR", "SHA-256 of the pack with its bytes; NULL: at `key`", "9f86d0...")
_START = Column("start", "BIGINT", "its first byte in that pack", "40960")

OBI = (
    _ID,
    _KIND,
    Column("found", "BIGINT", "run of its first version", "1352481230"),
    Column("noted", "BIGINT", "run of its newest version", "1352481230"),
    Column("lost", "BIGINT", "run that found it deleted; NULL if it exists", "NULL"),
    Column("seen", "BIGINT", "last run that found it", "1736035200"),
    Column("versions", "INTEGER", "number of versions", "2"),
    Column("key", "VARCHAR", "key of its newest bytes in the store", "obi/032/184/2531/..."),
    Column("digest", "VARCHAR", "SHA-256 of a template's text or a file's bytes", "9f86d08..."),
    Column("home", "VARCHAR", "folder of its archive", "cgd"),
)

VERSION = (
    _ID,
    _KIND,
    Column("tist", "BIGINT", "run that recorded it", "1352481230"),
    _KEY,
    Column("bytes", "BIGINT", "number of bytes", "1480"),
    Column("md5", "VARCHAR", "MD5 of these bytes, hexadecimal", "d41d8cd9..."),
    Column("sha256", "VARCHAR", "SHA-256 of these bytes, hexadecimal", "9f86d08..."),
    Column("text_md5", "VARCHAR", "MD5 of the text that is compared for changes", "d41d8cd9..."),
    Column("text_sha256", "VARCHAR", "SHA-256 of that text; not compared for files", "..."),
    Column("text_method", "VARCHAR", "method by which a file's text was extracted", "NULL"),
    Column("modified", "BIGINT", "time of the source, seconds since 1970", "1352400000"),
    Column("home", "VARCHAR", "folder of its archive", "cgd"),
    Column("source", "VARCHAR", "file of the template", "cgd/wpaper/1.rdf"),
    Column("place", "BIGINT", "offset of the template in that file", "0"),
    Column("length", "BIGINT", "its length in bytes", "1502"),
    Column("encoding", "VARCHAR", "encoding of these bytes", "utf-8-sig"),
    Column("type", "VARCHAR", "template type", "ReDIF-Paper 1.0"),
    Column("valid", "BOOLEAN", "whether a template is valid ReDIF", "true"),
    Column("handle", "VARCHAR", "a template's handle as written", "RePEc:cgd:wpaper:1"),
    Column("media_type", "VARCHAR", "Content-Type of a file", "application/pdf"),
    Column("etag", "VARCHAR", "ETag of a file, as sent", '"5d8c72a5edda8"'),
    Column("last_modified", "VARCHAR", "Last-Modified of a file, as sent", "Fri, 09 Nov 2012 ..."),
    Column("flags", "VARCHAR[]", "oddities of a file", "[landing-page]"),
    _PACK,
    _START,
)

CHECKSUM = (
    Column("digest", "VARCHAR", "SHA-256 of stored bytes, hexadecimal", "9f86d08..."),
    Column("key", "VARCHAR", "first key of these bytes", "obi/032/184/2531/..."),
    Column("bytes", "BIGINT", "number of bytes", "1480"),
    Column("copies", "BIGINT", "number of stored copies", "1"),
    _PACK,
    _START,
)

INCIDENCE = (
    _TIST,
    _ID,
    _KIND,
    Column("what", "VARCHAR", "appearance, change or deletion", "appearance"),
    Column("again", "BOOLEAN", "whether it reappeared after a deletion", "false"),
    Column("key", "VARCHAR", "key of its bytes at that time, or of the last ones", "obi/032/..."),
)

REFIPO = (
    Column("handle", "VARCHAR", "an existing template", "RePEc:cgd:wpaper:1"),
    Column("position", "BIGINT", "number of its file block, from 0", "0"),
    Column("url", "VARCHAR", "the block's URL as written", "http://www.cgdev.org/a.pdf"),
    Column(
        "id", "VARCHAR", "the file's id; NULL if the URL is invalid", "http://www.cgdev.org/..."
    ),
    Column("format", "VARCHAR", "File-Format", "application/pdf"),
    Column("function", "VARCHAR", "File-Function", "NULL"),
    Column("size", "VARCHAR", "File-Size", "NULL"),
    Column("restriction", "VARCHAR", "File-Restriction", "NULL"),
    Column("tist", "BIGINT", "run since which this holds", "1352481230"),
)

REDIRECT = (
    _TIST,
    Column("origin", "VARCHAR", "redirected URL", "http://a.org/x"),
    Column("target", "VARCHAR", "target of the redirect", "https://a.org/x"),
    Column("status", "BIGINT", "HTTP status", "301"),
    Column(
        "key", "VARCHAR", "key of the redirect in the store; NULL if it only adds a slash", "NULL"
    ),
    Column("target_key", "VARCHAR", "key of the bytes of the final URL", "obi/032/..."),
)

FAILURE = (
    _TIST,
    Column("id", "VARCHAR", "URL that could not be fetched", "http://a.org/x"),
    Column("code", "VARCHAR", "why", "timeout"),
    Column("status", "BIGINT", "HTTP status, if there was one", "503"),
    Column("detail", "VARCHAR", "details", "no byte for 30 seconds"),
)

RUN = (
    Column("tist", "BIGINT", "time of the state that it read", "1352481230"),
    Column("kind", "VARCHAR", "ingest or gather", "ingest"),
    Column("source", "VARCHAR", "source as given", "RePEc_2025-01-05.tar.gz"),
    Column("begun", "TIMESTAMP", "time of its begin, UTC", "2026-11-21 10:00:00"),
    Column("committed", "TIMESTAMP", "time of its commit, UTC", "2026-11-21 10:00:07"),
    Column("log", "VARCHAR", "SHA-256 of its log as stored", "9f86d08..."),
    Column("digest", "VARCHAR", "SHA-256 of its commit.json", "9f86d08..."),
    Column("previous", "VARCHAR", "the same of the previous run; NULL for the first", "NULL"),
    Column("counts", "VARCHAR", "numbers of rows in its log by kind, as JSON", '{"version": 2}'),
)

GATHERED = "gathered"
"""The member of a document that may be missing, which stands for null."""

DOCUMENT = Column(
    "document", "VARCHAR", "its content as JSON; NULL for captures and collections", "NULL"
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
