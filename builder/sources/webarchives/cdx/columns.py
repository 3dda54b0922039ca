"""SQL that turns plain index lines into intake columns, as `index_entry` does.

Repeated values come from tables that Python fills: `hosts` (kept from block to block), `media`,
`files`, and `own` for the sets of an operator's rules.
"""

from builder.intake.intake import CAPTURES
from builder.sources.webarchives.cdx.index_entry import SHA1

_DIGITS = "abcdefghijklmnopqrstuvwxyz234567"
_STEP = 15  # bits: three digits of base32

TRIPLES = [a + b + c for a in _DIGITS for b in _DIGITS for c in _DIGITS]
"""Three digits of base32 for each value of 15 bits."""

_HASHED = (
    "sha256(concat(strlen(url), ' ', url, chr(10), second, chr(10), "
    "CASE WHEN kind != 'revisit' THEN status END, chr(10), digest, chr(10), '0'))"
)
HASHED = (
    "sha256(encode(octet_length(raw) || ' ') || raw || encode(chr(10) || second || chr(10) "
    "|| status || chr(10) || digest || chr(10) || ordinal))"
)
"""The input that identifier.capture_identity hashes, from the columns `raw` (a BLOB), and `second`,
`status`, `digest` (texts, empty if missing) and `ordinal`.
"""
IDENTITY = "concat({})".format(
    ", ".join(
        f"triples[(({half} >> {at}) & {(1 << _STEP) - 1}) + 1]"
        for half in ("high", "low")
        for at in range(45, -1, -_STEP)
    )
)
"""The local identifier, from the columns `high` and `low`, by the list `triples`."""


IDENTIFYING = """
coalesce(url_bytes, encode(url)) AS raw,
coalesce(regexp_replace(fetch_date, '[.][0-9]+Z$', 'Z'), '') AS second,
CASE WHEN fetch_status IS NULL OR warc_record_type = 'revisit' THEN ''
    ELSE fetch_status::VARCHAR END AS status,
coalesce(content_digest, '') AS digest
"""
"""What an identity is made of, from the columns of captures."""


def halves(source: str) -> str:
    """Return the rows of a query with a column `hash`, and its first 120 bits as two numbers."""
    return (
        "SELECT *, ('0x' || left(hash, 15))::BIGINT AS high, "
        f"('0x' || substr(hash, 16, 15))::BIGINT AS low FROM ({source})"
    )


def identities(columns: str, source: str) -> str:
    """Return a query of `columns` and the identity of each row of `source`, as HASHED makes it.

    Its parameter $triples is TRIPLES.
    """
    rows = halves(f"SELECT *, {HASHED} AS hash FROM ({source})")
    triples = "(SELECT $triples::VARCHAR[] AS triples)"
    return f"SELECT {columns}, {IDENTITY} FROM ({rows}), {triples}"


_COLUMNS = {
    "identity": IDENTITY,
    "url": "url",
    "url_surtkey": "CASE WHEN surt IS NULL THEN url ELSE concat(surt, ')', rest) END",
    "url_host_name": "host",
    "url_host_registered_domain": "registered",
    "fetch_date": "CASE WHEN fraction = '' THEN second "
    "ELSE concat(left(second, 19), '.', fraction, 'Z') END",
    "fetch_time": "time",
    "fetch_status": "status",
    "content_digest": "digest",
    "content_mime_type": "media_type",
    "content_truncated": "CASE WHEN truncated NOT IN ('', '-') THEN truncated END",
    "warc_record_type": "kind",
    "warc_filename": "name",
    "warc_record_offset": '"offset"',
    "warc_record_length": "length",
}

_SETS = (
    "CASE WHEN domain_set IS NULL THEN CASE WHEN mime_set IS NULL THEN [] ELSE [mime_set] END "
    "WHEN mime_set IS NULL THEN [domain_set] ELSE [domain_set, mime_set] END"
)
"""Sorted, since `domain` comes before `mime`."""
_MADE = (
    "SELECT l.*, host, surt, registered, domain_set, mime_set, kind, media_type, name "
    "FROM lines l JOIN hosts h ON l.base = h.base "
    "JOIN media m ON l.mime IS NOT DISTINCT FROM m.mime "
    "AND l.status IS NOT DISTINCT FROM m.status "
    "JOIN files f ON l.filename IS NOT DISTINCT FROM f.filename WHERE plain"
)

HOSTS = {
    "base": "VARCHAR",
    "host": "VARCHAR",
    "surt": "VARCHAR",
    "registered": "VARCHAR",
    "domain_set": "VARCHAR",
}
"""Columns about hosts, by scheme and authority in lower case (`base`)."""
MEDIA = {
    "mime": "VARCHAR",
    "status": "SMALLINT",
    "kind": "VARCHAR",
    "media_type": "VARCHAR",
    "mime_set": "VARCHAR",
}
"""Columns that depend on media type and status, without pairs that are left out."""
FILES = {"filename": "VARCHAR", "name": "VARCHAR"}
OWN = {"n": "BIGINT", "own_sets": "VARCHAR[]"}

NEW_HOSTS = "CREATE OR REPLACE TEMP TABLE hosts ({})".format(
    ", ".join(f"{name} {kind}" for name, kind in HOSTS.items())
)
UNKNOWN_HOSTS = "SELECT DISTINCT base FROM lines ANTI JOIN hosts USING (base) WHERE plain"
KINDS = (
    "SELECT mime, status, count(*), "
    f"count(*) FILTER (WHERE digest IS NULL OR strlen(digest) != {SHA1}) "
    "FROM lines WHERE plain GROUP BY mime, status"
)
"""Numbers of plain lines by media type and status, and of those without a SHA-1."""
CONSTANTS = """
CREATE OR REPLACE TEMP TABLE constants AS
SELECT $triples::VARCHAR[] AS triples, $sets::VARCHAR[] AS further
"""


def captures(*, own: bool, further: bool) -> str:
    """Return the query for the captures of the plain lines, with the columns of the intake.

    With `own` their sets are those of the table `own`; with `further`, common sets are added.
    """
    sets = "own_sets" if own else _SETS
    join = "JOIN own USING (n)" if own else ""
    source = halves(f"SELECT *, {_HASHED} AS hash FROM ({_MADE}) CROSS JOIN constants {join}")
    expressions = {
        **_COLUMNS,
        "sets": f"list_sort(list_concat(further, {sets}))" if further else sets,
    }
    columns = ", ".join(
        f"({expressions.get(c.name, 'NULL')})::{c.type} AS {c.name}" for c in CAPTURES
    )
    return f"SELECT {columns} FROM ({source})"
