r"""Lines of an index to columns, set-wise, in SQL: for lines that are plain, which most are.

A line is plain where SQL gives exactly what builder.sources.entry gives; a test holds one against
the other. Whatever is not (escapes of escapes, session identifiers, dots in paths, user names,
values of other forms) is left to that module, line by line. Hosts, media types and file names
repeat, so each different one goes through Python once a block.

Text comes as Latin-1, of which each character is a byte.
"""

from builder.index_text import LONGEST
from builder.sources.cdx import Legend

_VALUES = (
    "url", "mime", "status", "digest", "redirect", "length", "offset", "filename", "truncated",
)  # fmt: skip
_OTHER_NAMES = {
    # field: a name that OpenWayback has for it, which is looked for where it is missing
    "mime": "mct", "status": "hsc", "digest": "sha", "length": "rle", "offset": "ref",
    "filename": "ref",
}  # fmt: skip


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


SPLIT = "CREATE OR REPLACE TEMP TABLE split AS SELECT unnest(string_split($text, chr(10))) AS line"
"""The statement that makes the table `split` of the lines of the parameter $text.

DuckDB takes more than twice as long where lines are made and read in one statement.
"""

_NUMBERED = "SELECT rowid + 1 AS n, line FROM split"


def _cdxj() -> str:
    """Return SQL that gives the values of CDXJ lines; `known` tells which are plain so far."""
    place = {name: f"v[{number}]" for number, name in enumerate(_VALUES, 1)}
    values = ", ".join(f'{at} AS "{name}"' for name, at in place.items())
    known = " AND ".join(
        f"({place[name]} IS NOT NULL OR NOT contains(j, '\"{other}\"'))"
        for name, other in _OTHER_NAMES.items()
    )
    paths = ", ".join(f"'$.{name}'" for name in _VALUES)
    return (
        f"SELECT n, line, date, {values}, coalesce({known} "
        f"AND ({place['mime']} IS DISTINCT FROM 'warc/revisit' OR NOT contains(j, '\"ro')), false) "
        "AND v IS NOT NULL AS known FROM ("
        "SELECT n, line, j, substr(line, space + 1, brace - space - 1) AS date, "
        "CASE WHEN brace - space IN (15, 18) AND NOT contains(line, '\\') AND NOT contains(j, '[') "
        "AND NOT contains(substr(line, brace + 2), '{') "  # so that all values are plain
        "AND (ends_with(line, '\"}') OR regexp_matches(line, '[0-9]}$')) "
        f"THEN TRY(json_extract_string(j, [{paths}])) END AS v FROM ("
        "SELECT n, line, brace, space, substr(line, brace + 1) AS j FROM ("
        "SELECT n, line, strpos(line, ' {') AS brace, strpos(line, ' ') AS space "
        f"FROM ({_NUMBERED})) "
        "WHERE line != '' AND NOT starts_with(line, '!')))"
    )


def _cdx(legend: Legend, extra: int) -> str:
    """Return the same of the lines below a CDX legend."""
    places = legend.places()
    values = ", ".join(
        f"v[{places[name] + 1}]" + f' AS "{name}"' if name in places else f'NULL AS "{name}"'
        for name in ("date", *_VALUES)
    )
    count = len(legend.letters)
    separator = f"chr({legend.separator[0]})"
    return (
        f"SELECT n, line, {values}, len(v) IN ({count}, {count + extra}) AS known FROM ("
        f"SELECT n, line, string_split(line, {separator}) AS v FROM ({_NUMBERED}) WHERE line != '')"
    )


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
    "(contains(query, 'id=') OR contains(query, 'sessionid')) "
    f"AND regexp_matches(query, '{_QUERY_SESSION}')"
)
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


def _unescaped(part: str) -> str:
    """Return SQL that undoes the escapes of characters that a SURT holds (see surt)."""
    text = part
    for code in _ESCAPES.split():
        text = f"replace({text}, '%{code}', {quoted(chr(int(code, 16)))})"
    return f"CASE WHEN contains({part}, '%') THEN {text} ELSE {part} END AS {part}"


# By name, then by value: a byte below all others stands for the `=` between them.
_SORTED = (
    "replace(array_to_string(list_sort(string_split(replace(query, '=', chr(1)), '&')), '&'), "
    "chr(1), '=')"
)
_SECOND = (
    "concat(left(date, 4), '-', substr(date, 5, 2), '-', substr(date, 7, 2), 'T', "
    "substr(date, 9, 2), ':', substr(date, 11, 2), ':', substr(date, 13, 2), 'Z')"
)
_TIME = (
    "try_cast(CASE WHEN strlen(date) = 14 THEN second "
    "ELSE concat(left(second, 19), '.', substr(date, 15)) END AS TIMESTAMP)"
)
_URL = r"^https?://[0-9A-Za-z._:\-]+(?:/[!$-;=?-\[\]-~]*)?$"
"""URLs without user name, fragment or backslash, of which all bytes are text as they are."""


def _none_or(name: str, form: str) -> str:
    return (
        f"(\"{name}\" IS NULL OR \"{name}\" IN ('', '-') "
        f"OR regexp_matches(\"{name}\", '^(?:{form})$'))"
    )


_PLAIN = (
    "known",
    f"strlen(line) <= {LONGEST}",
    f"regexp_matches(url, '{_URL}')",
    "strlen(netloc) <= 300",
    "regexp_matches(date, '^[0-9]{14}(?:[0-9]{3})?$')",
    "left(date, 4) != '0000'",
    "substr(date, 9, 2) != '24'",  # which DuckDB takes for the next day
    "time IS NOT NULL",
    # Neither another form of JSON nor a number, of which a file's name has none of the letters.
    "(mime IS NULL OR mime IN ('', '-', 'unk', 'no-type', 'warc-info') "
    "OR contains(mime, '/') AND NOT starts_with(mime, '{'))",
    "(filename IS NULL OR filename IN ('', '-') OR contains(filename, '.') "
    "AND regexp_matches(filename, '[A-DF-Za-df-z_]') AND NOT starts_with(filename, '{'))",
    _none_or("status", "[1-9][0-9]{2}"),
    _none_or("digest", "(?:sha1:)?[A-Z2-7]{32}|[0-9a-f]{32}|sha-?256:[0-9a-f]{64}"),
    _none_or("length", "[0-9]{1,18}"),
    _none_or("offset", "[0-9]{1,18}"),
    "(redirect IS NULL OR redirect IN ('', '-'))",
    _none_or("truncated", "length|time|disconnect|unspecified"),
    "NOT ends_with(netloc, ':')",  # as of a scheme that is there twice
    # As in surt, after unescaping:
    r"NOT (contains(path, '/.') AND regexp_matches(path, '/\.{1,2}(?:/|$)'))",
    "NOT contains(path, '/(')",
    "NOT contains(path, ';jsessionid=')",
    f"NOT (contains(path, '%') AND regexp_matches(path, '{_ODD_ESCAPE}'))",
    f"NOT (contains(query, '%') AND regexp_matches(query, '{_ODD_ESCAPE}'))",
    "NOT (contains(query, '&') AND regexp_matches(query, '=[^&]*='))",
    f"NOT ({_IN_SESSION})",
)


def lines(legend: Legend | None, extra: int) -> str:
    """Return the statement that makes the table `lines` out of `split`.

    It has all values of plain lines, and of others the text. Without `legend` it reads CDXJ.
    """
    source = _cdx(legend, extra) if legend else _cdxj()
    source = (
        "SELECT *, substr(url, CASE WHEN starts_with(url, 'https') THEN 9 ELSE 8 END) AS rest, "
        f"{_SECOND} AS second FROM ({source})"
    )
    source = f"SELECT *, {_TIME} AS time, strpos(rest, '/') AS slash FROM ({source})"
    source = (
        "SELECT *, lower(CASE WHEN slash = 0 THEN rest ELSE left(rest, slash - 1) END) AS netloc, "
        "CASE WHEN slash = 0 THEN '' ELSE lower(substr(rest, slash)) END AS tail "
        f"FROM ({source})"
    )
    source = f"SELECT *, strpos(tail, '?') AS mark FROM ({source})"
    source = (
        "SELECT * EXCLUDE (rest, slash, tail, mark), "
        "CASE WHEN mark = 0 THEN tail ELSE left(tail, mark - 1) END AS path, "
        f"CASE WHEN mark = 0 THEN '' ELSE substr(tail, mark + 1) END AS query FROM ({source})"
    )
    source = f"SELECT * REPLACE ({_unescaped('path')}, {_unescaped('query')}) FROM ({source})"
    source = f"SELECT * REPLACE ({_PATH}, {_QUERY}) FROM ({source})"
    source = f"SELECT *, coalesce({' AND '.join(_PLAIN)}, false) AS plain FROM ({source})"
    return (
        "CREATE OR REPLACE TEMP TABLE lines AS SELECT n, plain, "
        "CASE WHEN NOT plain THEN line END AS line, url, second, substr(date, 15) AS fraction, "
        "time, mime, CASE WHEN plain THEN try_cast(status AS SMALLINT) END AS status, digest, "
        "CASE WHEN plain THEN try_cast(length AS BIGINT) END AS length, "
        'CASE WHEN plain THEN try_cast("offset" AS BIGINT) END AS "offset", '
        "filename, truncated, starts_with(url, 'https') AS secure, netloc, concat("
        "CASE WHEN path = '' THEN '/' WHEN ends_with(path, '/') AND path != '/' "
        "THEN left(path, strlen(path) - 1) ELSE path END, "
        "CASE WHEN query = '' THEN NULL ELSE '?' END, "
        f"CASE WHEN contains(query, '&') AND plain THEN {_SORTED} ELSE query END) AS rest "
        f"FROM ({source})"
    )
