r"""SQL that splits plain index lines into columns. Most lines are plain.

A line is plain if SQL gives exactly what builder.sources.webarchives.cdx.index_entry gives; a test
compares both. Other lines go to that module one by one: with escapes of escapes, session
identifiers, dots in paths, user names, or values of other forms. Hosts, media types and file names
repeat, so each distinct value passes through Python once a block.

Text is read as Latin-1, so that each character is one byte.
"""

from builder.sources.webarchives.cdx.index_entry import SHA1
from builder.sources.webarchives.cdx.notation import Legend
from builder.sources.webarchives.identity import FIRST_YEAR, LAST_YEAR
from functions.snapshot.surt import METHOD
from functions.store import engine

LONGEST = 1 << 20
"""Bytes of the longest line that is read."""

_VALUES = (
    "url",
    "mime",
    "status",
    "digest",
    "redirect",
    "length",
    "offset",
    "filename",
    "truncated",
)
_OTHER_NAMES = {
    # field: its name in OpenWayback, used if the field is missing
    "mime": "mct",
    "status": "hsc",
    "digest": "sha",
    "length": "rle",
    "offset": "ref",
    "filename": "ref",
}


# These files are read once. Higher levels of zstd, dictionaries of values that hardly repeat, and
# filters would save little space.
PARQUET = (
    "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, WRITE_BLOOM_FILTER false, "
    "DICTIONARY_SIZE_LIMIT 1000"
)
"""Options of the intake's Parquet files."""

_NUMBERED = "SELECT row_number() OVER () AS n, line FROM text"


def _cdxj() -> tuple[str, list[str]]:
    """Return SQL for the values of CDXJ lines, and the conditions of plain lines."""
    values = ", ".join(f'v[{number}] AS "{name}"' for number, name in enumerate(_VALUES, 1))
    conditions = [
        f'("{n}" IS NOT NULL OR NOT contains(j, \'"{o}"\'))' for n, o in _OTHER_NAMES.items()
    ]
    conditions.append("NOT contains(j, '\"method\"')")
    conditions.append("(mime != 'warc/revisit' OR mime IS NULL OR NOT contains(j, '\"ro'))")
    paths = ", ".join(f"'$.{name}'" for name in _VALUES)
    source = (
        f"SELECT n, line, j, date, {values} FROM ("
        "SELECT n, line, j, substr(line, space + 1, brace - space - 1) AS date, "
        "CASE WHEN (brace - space = 15 OR brace - space = 18) "
        "AND NOT contains(line, '\\') AND NOT contains(j, '[') "
        "AND NOT contains(substr(j, 2), '{') "  # so that all values are plain
        "AND (ends_with(line, '\"}') OR regexp_matches(line, '[0-9]}$')) "
        f"THEN TRY(json_extract_string(j, [{paths}])) END AS v FROM ("
        "SELECT n, line, brace, space, substr(line, brace + 1) AS j FROM ("
        "SELECT n, line, strpos(line, ' {') AS brace, strpos(line, ' ') AS space "
        f"FROM ({_NUMBERED}) WHERE line != '' AND NOT starts_with(line, '!'))))"
    )
    return source, conditions


def _cdx(legend: Legend, extra: int) -> tuple[str, list[str]]:
    """Return the same for the lines below a CDX legend."""
    places = legend.places()
    values = ", ".join(
        f"v[{places[name] + 1}]" + f' AS "{name}"' if name in places else f'NULL AS "{name}"'
        for name in ("date", *_VALUES)
    )
    count = len(legend.letters)
    separator = f"chr({legend.separator[0]})"
    source = (
        f"SELECT n, line, {values}, len(v) AS fields FROM ("
        f"SELECT n, line, string_split(rtrim(line, chr(13)), {separator}) AS v "
        f"FROM ({_NUMBERED}) WHERE line != '')"
    )
    # With further fields, those of the legend must have their forms (cdx.parse_cdx_line).
    return source, [f"(fields = {count} OR fields = {count + extra} AND strlen(date) = 14)"]


_ESCAPES = (
    "21 22 24 26 27 28 29 2a 2b 2c 2d 2e 2f 3a 3b 3c 3d 3e 3f 40 5b 5c 5d 5e 5f 60 7b 7c 7d 7e"
)
_ODD_ESCAPE = r"%(?:$|.$|[^0-9a-f]|.[^0-9a-f]|2[1-24-9a-f]|[3-6]|7[0-9a-e])"
_PATH_SESSION = ";jsessionid=[0-9a-z]{32}"
_QUERY_SESSION = (
    "(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}"
    "|cfid=[^&]{1,100}&cftoken=[^&]{1,100})(?:&|$)"
)
_IN_SESSION = (
    "(contains(query, 'sid=') OR contains(query, 'sessionid') OR contains(query, 'cfid=')) "
    f"AND regexp_matches(query, '{_QUERY_SESSION}')"
)
_SIMPLE = " AND ".join(
    [
        "NOT ends_with(tail, '/')",
        "NOT ends_with(tail, '?')",
        *(
            f"NOT contains(tail, '{part}')"
            for part in ("%", "&", "//", "/.", "/(", "/?", "sid=", "sessionid", "cfid=")
        ),
    ]
)
"""Conditions under which the rest of a URL equals its SURT except for case."""
# As in surt: sessions go (Python sees to those among escapes), then runs of slashes become one.
_PATH = (
    "CASE WHEN contains(path, ';jsessionid=') AND NOT contains(path, '%') "
    f"THEN regexp_replace(regexp_replace(path, '{_PATH_SESSION}', '', 'g'), '/{{2,}}', '/', 'g') "
    "WHEN contains(path, '//') THEN regexp_replace(path, '/{2,}', '/', 'g') ELSE path END AS path"
)
_QUERY = (
    f"CASE WHEN {_IN_SESSION} AND NOT contains(query, '%') "
    f"THEN rtrim(regexp_replace(query, '{_QUERY_SESSION}', '', 'g'), '&') ELSE query END AS query"
)


def _unescape(part: str) -> str:
    """Return SQL that decodes the escapes of characters that a SURT holds (see surt)."""
    text = part
    for code in _ESCAPES.split():
        text = f"replace({text}, '%{code}', {engine.quote(chr(int(code, 16)))})"
    return f"CASE WHEN contains({part}, '%') THEN {text} ELSE {part} END AS {part}"


# By name, then by value: a byte below all others replaces the `=` between them.
_SORTED = (
    "replace(array_to_string(list_sort(string_split(replace(query, '=', chr(1)), '&')), '&'), "
    "chr(1), '=')"
)
_SECONDS = "try_strptime(left(date, 14), '%Y%m%d%H%M%S')"
_TIME = (
    "CASE WHEN strlen(date) = 14 THEN seconds "
    "ELSE seconds + to_milliseconds(try_cast(substr(date, 15) AS BIGINT)) END"
)
_SECOND = "strftime(seconds, '%Y-%m-%dT%H:%M:%SZ')"
_URL = r"^https?://[0-9A-Za-z._:\-]+(?:/[!$-;=?-\[\]-~]*)?$"
"""URLs without user name, fragment or backslash, whose bytes are all plain text."""


def _none(name: str) -> str:
    return f'"{name}" IS NULL OR "{name}" = \'\' OR "{name}" = \'-\''


def _none_or(name: str, form: str) -> str:
    return f"(regexp_matches(\"{name}\", '^(?:{form})$') OR {_none(name)})"


_PLAIN = (
    f"strlen(line) <= {LONGEST}",
    f"NOT (contains(line, '{METHOD}=') OR contains(line, '_post_data='))",
    f"regexp_matches(url, '{_URL}')",
    "strlen(base) <= 300",
    "NOT ends_with(base, ':')",  # of a repeated scheme
    "regexp_matches(date, '^[0-9]{14}(?:[0-9]{3})?$')",
    f"date >= '{FIRST_YEAR}' AND date < '{LAST_YEAR + 1}'",
    "seconds IS NOT NULL",
    # Neither nested JSON nor a number: a file name has a letter other than E.
    "(contains(mime, '/') AND NOT starts_with(mime, '{') OR "
    f"{_none('mime')} OR mime = 'unk' OR mime = 'no-type' OR mime = 'warc-info')",
    "(regexp_matches(filename, '[A-DF-Za-df-z_]') AND contains(filename, '.') "
    f"AND NOT starts_with(filename, '{{') OR {_none('filename')})",
    _none_or("status", "[1-9][0-9]{2}"),
    f"NOT (({_none('status')}) AND ({_none('mime')}))",  # as of requests
    _none_or("digest", "(?:sha1:)?[A-Z2-7]{32}|[0-9a-f]{32}|sha-?256:[0-9a-f]{64}"),
    _none_or("length", "[0-9]{1,18}"),
    _none_or("offset", "[0-9]{1,18}"),
    f"({_none('redirect')})",
    f"({_none('truncated')} OR truncated = 'length' OR truncated = 'time' "
    "OR truncated = 'disconnect' OR truncated = 'unspecified')",
)
_PLAIN_PARTS = (
    # As in surt, after decoding:
    r"NOT (contains(path, '/.') AND regexp_matches(path, '/\.{1,2}(?:/|$)'))",
    "NOT contains(path, '/(')",
    "NOT contains(path, ';jsessionid=')",
    f"NOT (contains(path, '%') AND regexp_matches(path, '{_ODD_ESCAPE}'))",
    f"NOT (contains(query, '%') AND regexp_matches(query, '{_ODD_ESCAPE}'))",
    "NOT (contains(query, '&') AND regexp_matches(query, '=[^&]*='))",
    f"NOT ({_IN_SESSION})",
)
_DIGEST = (
    "CASE WHEN strlen(digest) = 32 THEN CASE WHEN lower(digest) = digest "
    "THEN concat('md5:', digest) ELSE digest END "
    "WHEN strlen(digest) > 40 THEN concat('sha256:', right(digest, 64)) "
    f"WHEN strlen(digest) > 1 THEN right(digest, {SHA1}) END"
)
_REST = (
    "CASE WHEN NOT simple THEN concat(CASE WHEN path = '' THEN '/' "
    "WHEN ends_with(path, '/') AND path != '/' THEN left(path, strlen(path) - 1) ELSE path END, "
    "CASE WHEN query != '' THEN '?' END, "
    f"CASE WHEN contains(query, '&') AND plain THEN {_SORTED} ELSE query END) "
    "WHEN tail = '' THEN '/' ELSE tail END"
)


def lines(legend: Legend | None, extra: int) -> str:
    """Return the statement that creates the table `lines` from the text in `text`.

    It has all values of plain lines, and the text of others. Without `legend` it reads CDXJ.

    A CASE evaluates its conditions in turn, each only for the lines that remain. An AND elsewhere
    evaluates all of them for all lines. So all expensive expressions are below a CASE.
    """
    source, conditions = _cdx(legend, extra) if legend else _cdxj()
    # The host ends before the first slash after the scheme, and no host is empty.
    source = (
        f"SELECT *, strpos(substr(url, 9), '/') + 8 AS slash, {_SECONDS} AS seconds FROM ({source})"
    )
    source = (
        "SELECT *, lower(CASE WHEN slash = 8 THEN url ELSE left(url, slash - 1) END) AS base, "
        f"CASE WHEN slash = 8 THEN '' ELSE lower(substr(url, slash)) END AS tail FROM ({source})"
    )
    source = f"SELECT *, CASE WHEN {_SIMPLE} THEN true ELSE false END AS simple FROM ({source})"
    source = f"SELECT *, CASE WHEN NOT simple THEN strpos(tail, '?') END AS mark FROM ({source})"
    # The separator of path and query is not `?`, which escapes may produce.
    source = (
        "SELECT *, CASE WHEN mark > 0 THEN concat(left(tail, mark - 1), chr(1), "
        f"substr(tail, mark + 1)) WHEN mark = 0 THEN tail END AS parted FROM ({source})"
    )
    source = f"SELECT * REPLACE ({_unescape('parted')}) FROM ({source})"
    source = f"SELECT *, strpos(parted, chr(1)) AS mid FROM ({source})"
    source = (
        "SELECT *, CASE WHEN mid = 0 THEN parted WHEN mid > 0 THEN left(parted, mid - 1) END "
        "AS path, CASE WHEN mid = 0 THEN '' WHEN mid > 0 THEN substr(parted, mid + 1) END "
        f"AS query FROM ({source})"
    )
    source = f"SELECT * REPLACE ({_PATH}, {_QUERY}) FROM ({source})"
    is_plain = " AND ".join((*conditions, *_PLAIN, f"(simple OR {' AND '.join(_PLAIN_PARTS)})"))
    source = f"SELECT *, CASE WHEN {is_plain} THEN true ELSE false END AS plain FROM ({source})"
    return (
        "CREATE OR REPLACE TEMP TABLE lines AS SELECT n, plain, "
        f"CASE WHEN NOT plain THEN line END AS line, url, {_SECOND} AS second, "
        f"substr(date, 15) AS fraction, {_TIME} AS time, mime, "
        "CASE WHEN plain THEN try_cast(status AS SMALLINT) END AS status, "
        f"CASE WHEN plain THEN {_DIGEST} END AS digest, "
        "CASE WHEN plain THEN try_cast(length AS BIGINT) END AS length, "
        'CASE WHEN plain THEN try_cast("offset" AS BIGINT) END AS "offset", '
        f"filename, truncated, base, {_REST} AS rest FROM ({source})"
    )
