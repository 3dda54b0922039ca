"""Ties: the keys by which a revisit and its original find each other, as SQL. Pure.

The table `originals` has two rows for most captures that are no revisits, of 40 bits of hash each:

- one of its URL and date, to the second: what a revisit may refer to;
- one of its payload digest (and one of the digest that it declares besides), with 24 bits of its
  URL's hash and with its date, so that the best original is found out of very many with one digest
  without any of their records being read. One whose bytes are damaged has no URL there, and a date
  behind all others: it is taken where no whole one has the digest.

The table `revisits` has for each revisit the keys of that rule by which its original was found, and
of the rules before it, for an original by one of these would be a better one; where it has none,
of all that could find one. Where a digest found it, that row has also the dates of the revisit
(`moment`) and of the original (`goal`): only one that is dated between them can be a better one.

Keys of different texts may be alike, so what they find is held against the records.
"""

SPAN = 1 << 40
"""Keys of a URL and date are below it, those of a digest are not."""
UNDATED = 1 << 38
"""Seconds since 1970 by which what has no date is ordered: behind all else."""

_DAMAGED = 2 * UNDATED
"""Seconds that are added to the date of what is damaged."""

ORIGINAL = "kind = 'capture' AND NOT deleted AND warc_record_type != 'revisit'"
REVISIT = "kind = 'capture' AND NOT deleted AND warc_record_type = 'revisit'"

SECOND = "epoch_us(fetch_time) // 1000000"
"""The date of a capture in seconds since 1970, NULL where it is less exact."""

_DATE = "rtrim({}, 'Z')"
_WHOLE = "epoch_us(try_cast({0} || substr('0001-01-01T00:00:00', length({0}) + 1) AS TIMESTAMP))"
_AT = f"coalesce({SECOND}, {_WHOLE.format(_DATE.format('fetch_date'))} // 1000000, {UNDATED})"
_REFERRED = (
    f"CASE WHEN length({_DATE.format('refers_to_date')}) >= 19 THEN "
    f"{_WHOLE.format(_DATE.format('refers_to_date'))} // 1000000 END"
)


def _hash(text: str) -> str:
    return f"('0x' || left(sha1({text}), 16))::UBIGINT"


def _date_key(mark: str, second: str) -> str:
    """Return the key of a URL, of whose text `mark` is the hash, and of a date."""
    return f"((({mark} >> 24)::BIGINT + {second} * 1000003) % {SPAN} + {SPAN}) % {SPAN}"


_DIGEST = f"{SPAN} + ({_hash('digest')} >> 24)::BIGINT"
_MARK = "(mark & 16777215)::INTEGER"
_NO_MARK = -1


def originals(items: str) -> str:
    """Return the query of the rows of originals in `items`, which has their `position`."""
    digested = (
        "SELECT {key}, if(damaged, {none}, {url}), if(damaged, {late}, 0) + moment, position "
        "FROM (SELECT *, {column} AS digest FROM m) "
    )
    return (
        "WITH m AS MATERIALIZED (SELECT position, content_digest, content_digest_declared, "
        "content_damaged IS NOT NULL AS damaged, "
        f"{SECOND} AS second, {_AT} AS moment, {_hash('url')} AS mark FROM {items}) "
        f"SELECT {_date_key('mark', 'second')} AS key, NULL::INTEGER AS url, "
        "NULL::BIGINT AS moment, position FROM m WHERE second IS NOT NULL"
    ) + "".join(
        " UNION ALL "
        + digested.format(key=_DIGEST, url=_MARK, column=column, none=_NO_MARK, late=_DAMAGED)
        + "WHERE digest IS NOT NULL"
        for column in ("content_digest", "content_digest_declared")
    )


def wanted_keys(items: str, given: str) -> str:
    """Return the query of what revisits in `items` are resolved by, one row each.

    It has the columns `given`, `dated` (the key of the URL and second that it refers to, as
    `referred` and `second`), `digested` (the key of `digest`), `mark` (of `address`, its own URL),
    and its date `moment`.
    """
    return (
        f"SELECT {given}, address, digest, referred, second, moment, {_MARK} AS mark, "
        f"CASE WHEN digest IS NOT NULL THEN {_DIGEST} END AS digested, "
        "CASE WHEN referred IS NOT NULL THEN "
        f"{_date_key(_hash('referred'), 'second')} END AS dated "
        f"FROM (SELECT {given}, url AS address, content_digest AS digest, "
        f"refers_to_url AS referred, {_REFERRED} AS second, {_AT} AS moment, "
        f"{_hash('url')} AS mark FROM {items})"
    )


def revisits(items: str) -> str:
    """Return the query of the rows of revisits in `items`, which has position, `rule` and `goal`.

    `rule` is that by which the original was found, NULL where it was not, and `goal` its date.
    """
    return f"""
SELECT unnest(ties, recursive := true), position FROM (
    SELECT position, list_filter([
        {{'key': dated, 'url': NULL::INTEGER, 'moment': NULL::BIGINT, 'goal': NULL::BIGINT}},
        {{'key': if(rule >= 2, digested, NULL), 'url': mark,
            'moment': if(rule = 2, moment, NULL), 'goal': if(rule = 2, goal, NULL)}},
        {{'key': if(rule IS NULL OR rule = 3, digested, NULL), 'url': NULL::INTEGER,
            'moment': if(rule = 3, moment, NULL), 'goal': if(rule = 3, goal, NULL)}}
    ], lambda tie: tie.key IS NOT NULL) AS ties
    FROM ({wanted_keys(items, "position, rule, goal")})
)"""
