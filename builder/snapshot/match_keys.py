"""Keys by which revisits and originals find each other, as rows of two tables.

The table `originals` has two rows for most captures that are not revisits. Keys have 32 bits of
hash:

- one row for the URL and date, to the second: a revisit may refer to these;
- one row for the payload digest, and one for a declared digest. They also have 16 bits of the
  URL's hash and the date, so the best of many originals with one digest is found without reading
  records. A damaged original has no URL there, and a date after all others.

Earlier versions of Sheaf wrote keys of 40 bits, and 24 bits of the URL's hash. Such rows are read
by `stored_rows`, which gives their first bits.

The table `revisits` has, for each revisit, the keys of the rule that found its original and of
the rules before it. A revisit without an original has the keys of all rules. If the original was
found by its digest, the row also has the dates of the revisit (`moment`) and of the original
(`goal`): only an original dated between them is better. Different texts may have the same key,
so matches are checked against the records.
"""

from functions.kinds import CAPTURES
from functions.store import engine

KEY_SPAN = 1 << 40
"""Hashes of keys are below this value, and digests' keys beyond those of URLs and dates."""
_FIRST_KEY, _DROPPED = 1 << 41, 8  # the lowest key, and how many bits of the hash it lacks
_URLS = (1 << 16) - 1  # the highest hash of a URL
UNDATED = 1 << 38
"""Sort value of undated captures, in seconds since 1970: after all dates."""

CAPTURE = f"kind IN {engine.texts(sorted(CAPTURES))}"
LISTED_CAPTURE = f"{CAPTURE} AND NOT deleted"
ORIGINAL = f"{LISTED_CAPTURE} AND warc_record_type != 'revisit'"
REVISIT = f"{LISTED_CAPTURE} AND warc_record_type = 'revisit'"

UNRESOLVED = f"{REVISIT} AND refers_to IS NULL"

SECOND = "epoch_us(fetch_time) // 1000000"
"""The date of a capture in seconds since 1970; NULL if the date is less exact."""

_DATE = "rtrim({}, 'Z')"
_WHOLE = "epoch_us(try_cast({0} || substr('0001-01-01T00:00:00', length({0}) + 1) AS TIMESTAMP))"
_AT = f"coalesce({SECOND}, {_WHOLE.format(_DATE.format('fetch_date'))} // 1000000, {UNDATED})"
_REFERRED = (
    f"CASE WHEN length({_DATE.format('refers_to_date')}) >= 19 THEN "
    f"{_WHOLE.format(_DATE.format('refers_to_date'))} // 1000000 END"
)


def _hash(text: str) -> str:
    return f"('0x' || left(sha1({text}), 16))::UBIGINT"


def shorten(key: int) -> int:
    """Return a stored key as this version of Sheaf writes it; the order of keys stays."""
    return key if key >= _FIRST_KEY else _FIRST_KEY + (key >> _DROPPED)


def stored_rows(files: str) -> str:
    """Return the rows of files of `originals` or `revisits` as this version writes them."""
    return (
        f"(SELECT * REPLACE (if(key >= {_FIRST_KEY}, key, {_shorten('key')}) AS key, "
        f"if(url > {_URLS}, url & {_URLS}, url) AS url) FROM {files})"
    )


def _shorten(key: str) -> str:
    return f"{_FIRST_KEY} + (({key}) >> {_DROPPED})"


def _date_key(url_hash: str, second: str) -> str:
    """Return the key of a URL and a date; `url_hash` is the hash of the URL."""
    key = f"(({url_hash} >> 24)::BIGINT + {second} * 1000003)"
    return _shorten(f"({key} % {KEY_SPAN} + {KEY_SPAN}) % {KEY_SPAN}")


_DIGEST = _shorten(f"{KEY_SPAN} + ({_hash('digest')} >> 24)::BIGINT")
_URL_HASH = f"(url_hash & {_URLS})::INTEGER"


def original_keys(items: str) -> str:
    """Return the query of the table rows for the originals in `items` (with `position`)."""
    by_digest = (
        "SELECT {key}, if(damaged, {none}, {url}), if(damaged, {late}, 0) + moment, position "
        "FROM (SELECT *, {column} AS digest FROM m) "
    )
    return (
        "WITH m AS MATERIALIZED (SELECT position, content_digest, content_digest_declared, "
        "content_damaged IS NOT NULL AS damaged, "
        f"{SECOND} AS second, {_AT} AS moment, {_hash('url')} AS url_hash FROM {items}) "
        f"SELECT {_date_key('url_hash', 'second')} AS key, NULL::INTEGER AS url, "
        "NULL::BIGINT AS moment, position FROM m WHERE second IS NOT NULL"
    ) + "".join(
        " UNION ALL "
        + by_digest.format(key=_DIGEST, url=_URL_HASH, column=column, none=-1, late=2 * UNDATED)
        + "WHERE digest IS NOT NULL"
        for column in ("content_digest", "content_digest_declared")
    )


def wanted_keys(items: str, columns: str) -> str:
    """Return the query of the search keys of the revisits in `items`, one row each.

    Its columns are `columns`, `date_key` (the key of the URL `referred` and the second `second`
    that the revisit refers to), `digest_key` (the key of `digest`), `url_hash` (the hash of
    `address`, its own URL) and its date `moment`.
    """
    return (
        f"SELECT {columns}, address, digest, referred, second, moment, {_URL_HASH} AS url_hash, "
        f"CASE WHEN digest IS NOT NULL THEN {_DIGEST} END AS digest_key, "
        "CASE WHEN referred IS NOT NULL THEN "
        f"{_date_key(_hash('referred'), 'second')} END AS date_key "
        f"FROM (SELECT {columns}, url AS address, content_digest AS digest, "
        f"refers_to_url AS referred, {_REFERRED} AS second, {_AT} AS moment, "
        f"{_hash('url')} AS url_hash FROM {items})"
    )


def keys_of_revisits(items: str) -> str:
    """Return the query of the table rows for the revisits in `items`.

    `items` has their position, `rule` and `goal`. `rule` found the original (NULL without an
    original); `goal` is the original's date.
    """
    return f"""
SELECT unnest(ties, recursive := true), position FROM (
    SELECT position, list_filter([
        {{'key': date_key, 'url': NULL::INTEGER, 'moment': NULL::BIGINT, 'goal': NULL::BIGINT}},
        {{'key': if(rule >= 2, digest_key, NULL), 'url': url_hash,
            'moment': if(rule = 2, moment, NULL), 'goal': if(rule = 2, goal, NULL)}},
        {{'key': if(rule IS NULL OR rule = 3, digest_key, NULL), 'url': NULL::INTEGER,
            'moment': if(rule = 3, moment, NULL), 'goal': if(rule = 3, goal, NULL)}}
    ], lambda tie: tie.key IS NOT NULL) AS ties
    FROM ({wanted_keys(items, "position, rule, goal")})
)"""
