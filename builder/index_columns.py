"""Plain lines of an index to the columns of the intake, in SQL: what builder.sources.entry does.

What repeats comes from tables that Python fills: `hosts`, `media`, `files`, and `own` for the sets
of an operator's rules.
"""

from builder.intake import CAPTURES
from builder.sources.entry import SHA1

_DIGITS = "abcdefghijklmnopqrstuvwxyz234567"
_STEP = 15  # bits: three digits of base32

TRIPLES = [a + b + c for a in _DIGITS for b in _DIGITS for c in _DIGITS]
"""Three digits of base32 by the 15 bits that they are."""

_DIGEST = (
    "CASE WHEN digest IS NULL OR digest IN ('', '-') THEN NULL "
    "WHEN regexp_matches(digest, '^[0-9a-f]{32}$') THEN 'md5:' || digest "
    f"WHEN strlen(digest) > 40 THEN 'sha256:' || right(digest, 64) ELSE right(digest, {SHA1}) END"
)
_HASHED = (
    "sha256(concat(strlen(url), ' ', url, chr(10), second, chr(10), "
    "CASE WHEN kind != 'revisit' THEN status END, chr(10), digest, chr(10), '0'))"
)
IDENTITY = "concat({})".format(
    ", ".join(
        f"triples[(({half} >> {at}) & {(1 << _STEP) - 1}) + 1]"
        for half in ("high", "low")
        for at in range(45, -1, -_STEP)
    )
)
"""The local identifier, of the columns `high` and `low`, by the list `triples`."""


def halves(source: str) -> str:
    """Return the rows of a query with a column `hash`, and its first 120 bits in two numbers."""
    return (
        "SELECT *, ('0x' || left(hash, 15))::BIGINT AS high, "
        f"('0x' || substr(hash, 16, 15))::BIGINT AS low FROM ({source})"
    )


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

_MADE = (
    f'SELECT l.n, url, second, fraction, time, status, {_DIGEST} AS digest, length, "offset", '
    "truncated, rest, host, surt, registered, media_type, domain_sets, mime_sets, "
    "coalesce(m.kind, 'response') AS kind, coalesce(name, '') AS name "
    "FROM lines l JOIN hosts h ON l.secure = h.secure AND l.netloc = h.netloc "
    "LEFT JOIN media m ON l.mime = m.mime LEFT JOIN files f ON l.filename = f.filename WHERE plain"
)
_REASON = (
    "CASE WHEN kind NOT IN ('response', 'resource', 'revisit') THEN kind "
    "WHEN kind = 'revisit' THEN of_revisit[status + 1] ELSE of_response[status + 1] END"
)
"""Why a line is left out, NULL where it is published. Of a status that is NULL it is NULL."""


HOSTS = """
CREATE OR REPLACE TEMP TABLE hosts AS
SELECT *, CASE WHEN set_spec IS NULL THEN [] ELSE [set_spec] END AS domain_sets FROM (
    SELECT unnest($secure)::BOOLEAN AS secure, unnest($netloc)::VARCHAR AS netloc,
        unnest($host)::VARCHAR AS host, unnest($surt)::VARCHAR AS surt,
        unnest($registered)::VARCHAR AS registered, unnest($set_spec)::VARCHAR AS set_spec)
"""
MEDIA = """
CREATE OR REPLACE TEMP TABLE media AS
SELECT *, CASE WHEN set_spec IS NULL THEN [] ELSE [set_spec] END AS mime_sets FROM (
    SELECT unnest($mime)::VARCHAR AS mime, unnest($kind)::VARCHAR AS kind,
        unnest($media_type)::VARCHAR AS media_type, unnest($set_spec)::VARCHAR AS set_spec)
"""
FILES = """
CREATE OR REPLACE TEMP TABLE files AS
SELECT unnest($filename)::VARCHAR AS filename, unnest($name)::VARCHAR AS name
"""
OWN = """
CREATE OR REPLACE TEMP TABLE own AS
SELECT unnest($n)::BIGINT AS n, unnest($sets)::VARCHAR[] AS own_sets
"""
CONSTANTS = """
CREATE OR REPLACE TEMP TABLE constants AS SELECT $triples::VARCHAR[] AS triples,
    $response::VARCHAR[] AS of_response, $revisit::VARCHAR[] AS of_revisit,
    $sets::VARCHAR[] AS further
"""


def captures(*, own: bool) -> str:
    """Return the query that gives the captures of the plain lines, with columns of the intake.

    With `own` their sets are those of the table `own`.
    """
    sets = "own_sets" if own else "list_concat(domain_sets, mime_sets)"
    join = "JOIN own USING (n)" if own else ""
    source = halves(
        f"SELECT *, {_HASHED} AS hash FROM ({_MADE}) CROSS JOIN constants {join} "
        f"WHERE ({_REASON}) IS NULL"
    )
    given = {**_COLUMNS, "sets": f"list_sort(list_concat(further, {sets}))"}
    columns = ", ".join(f"({given.get(c.name, 'NULL')})::{c.type} AS {c.name}" for c in CAPTURES)
    return f"SELECT {columns} FROM ({source})"


COUNTS = (
    f"SELECT reason, count(*), count(*) FILTER (WHERE reason IS NULL AND kind != 'revisit' "
    f"AND (digest IS NULL OR strlen(digest) != {SHA1})) "
    f"FROM (SELECT kind, {_DIGEST} AS digest, {_REASON} AS reason FROM "
    "(SELECT status, digest, coalesce(m.kind, 'response') AS kind "
    "FROM lines l LEFT JOIN media m ON l.mime = m.mime WHERE plain), constants) "
    "GROUP BY reason ORDER BY reason"
)
"""Plain lines by the reason for which they are left out, and those without a SHA-1 among them."""
