"""Makes an intake of generated captures, shaped like a national web archive's.

What is drawn is computed from a capture's number and the seed, in Python and in SQL alike: a few
captures come from the one, millions from the other, and both are the same.
"""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from builder.intake import intake
from builder.intake.captures import Capture
from functions.snapshot import oai_name
from functions.snapshot.store import Writer
from functions.store import engine

_TYPES = (
    ("text", "html", 600),
    ("image", "jpeg", 150),
    ("image", "gif", 80),
    ("image", "png", 60),
    ("text", "css", 40),
    ("application", "javascript", 40),
    ("application", "pdf", 15),
    ("text", "plain", 10),
    ("application", "msword", 4),
    ("video", "mpeg", 1),
)
_START = datetime(2007, 11, 5, tzinfo=UTC)
_WORDS = ("zprávy", "sport", "kultura", "archiv", "obec", "škola", "knihovna", "počasí", "mapa")
_DRAWN = [(major, minor) for major, minor, share in _TYPES for _ in range(share)]
PER_FILE = 30_000
"""Captures of an archive file, and of the part of the intake that it gives."""

_HOST, _TYPE, _PATH, _LENGTH, _TITLE = range(5)  # what is drawn; a title's words come after it


def _draw(number: int, what: int, seed: int) -> int:
    """Return 32 bits that look like chance."""
    mixed = (number * 2654435761 + what * 40503 * 65537 + seed * 97_531_113) % 2**32
    mixed = ((mixed ^ mixed >> 15) * 2246822519) % 2**32
    return mixed ^ mixed >> 13


def _drawn(what: int, seed: int) -> str:
    """Return `_draw` of a column `number` as SQL."""
    offset = what * 40503 * 65537 + seed * 97_531_113
    first = f"((number * 2654435761 + {offset}) % 4294967296)::UBIGINT"
    second = f"(xor({first}, {first} >> 15) * 2246822519 % 4294967296)"
    return f"xor({second}, {second} >> 13)::BIGINT"


def captures(count: int, seed: int = 1, numbers: Iterable[int] | None = None) -> Iterator[Capture]:
    """Yield `count` captures of about count / 40 hosts, the same for the same seed, or some."""
    hosts = max(1, count // 40)
    for number in range(count) if numbers is None else numbers:
        host = f"h{hosts * (_draw(number, _HOST, seed) >> 8) ** 2 >> 48}"
        major, minor = _DRAWN[_draw(number, _TYPE, seed) % len(_DRAWN)]
        if number % 10_000 == 5_000:
            major, minor = "model", "vrml"  # rare and scattered: 1 in 10,000
        path = _WORDS[_draw(number, _PATH, seed) % len(_WORDS)][:3]
        url = f"http://www.{host}.cz/{path}/{number}.{minor}"
        date = (_START + timedelta(seconds=number // 3)).strftime("%Y-%m-%dT%H:%M:%SZ")
        digest = hashlib.sha1(str(number // 2).encode()).hexdigest()[:32].upper()
        words = (_draw(number, _TITLE + n, seed) % len(_WORDS) for n in range(5))
        yield Capture(
            identity=oai_name.capture_identity(url.encode(), date, 200, digest),
            url=url,
            url_surtkey=f"cz,{host})/{number % 7}/{number}.{minor}",
            sets=(f"domain:cz:{host}:www", f"mime:{major}:{minor}"),
            url_host_name=f"www.{host}.cz",
            url_host_registered_domain=f"{host}.cz",
            fetch_date=date,
            fetch_time=_START + timedelta(seconds=number // 3),
            fetch_status=200,
            content_digest=digest,
            content_length=200 + _draw(number, _LENGTH, seed) % 89_800,
            content_mime_type=f"{major}/{minor}",
            content_charset="utf-8" if minor == "html" else None,
            content_charset_source="declared" if minor == "html" else None,
            content_languages="cs" if minor == "html" else None,
            title=" ".join(_WORDS[n] for n in words) if minor == "html" else None,
            warc_filename=f"harvest-{number // PER_FILE:05}.warc.gz",
            warc_record_offset=number % PER_FILE * 14_000,
            warc_record_length=14_000,
        )


def _sql(count: int, seed: int, revisits: int, every: int, *, has_sets: bool) -> str:
    """Return the rows of intake.CAPTURES of the numbers in $first to $end."""
    last = revisits - 1  # the number before it has the same digest
    hosts = max(1, count // 40)
    words = f"[{', '.join(repr(word) for word in _WORDS)}]"
    types = f"[{', '.join(repr(f'{major}/{minor}') for major, minor in _DRAWN)}]"
    host = f"({hosts} * (({_drawn(_HOST, seed)} >> 8) ** 2)::HUGEINT >> 48)"
    title = " || ' ' || ".join(
        f"{words}[{_drawn(_TITLE + n, seed)} % {len(_WORDS)} + 1]" for n in range(5)
    )
    # Five hexadecimal digits of a digest are four of base32.
    base32 = " || ".join(
        f"substr('abcdefghijklmnopqrstuvwxyz234567', (d[{group + 1}] >> {shift} & 31) + 1, 1)"
        for group in range(6)
        for shift in (15, 10, 5, 0)
    )
    five = ", ".join(f"('0x' || substr(sha, {5 * n + 1}, 5))::INTEGER" for n in range(6))
    given = {
        "identity": base32,
        "sets": "['domain:cz:' || host || ':www', 'mime:' || replace(media, '/', ':')]"
        if has_sets
        else "[]",
        "url": "url",
        "url_surtkey": "'cz,' || host || ')/' || number % 7 || '/' || number || '.' || minor",
        "url_host_name": "'www.' || host || '.cz'",
        "url_host_registered_domain": "host || '.cz'",
        "fetch_date": "date",
        "fetch_time": "time",
        "fetch_status": "200",
        "content_digest": "digest",
        "content_length": f"200 + {_drawn(_LENGTH, seed)} % 89800",
        "content_mime_type": "media",
        "content_charset": "if(minor = 'html', 'utf-8', NULL)",
        "content_charset_source": "if(minor = 'html', 'declared', NULL)",
        "content_languages": "if(minor = 'html', 'cs', NULL)",
        "title": "'Changed'" if every > 1 else f"if(minor = 'html', {title}, NULL)",
        "warc_record_type": f"if(number % {revisits} = {last}, 'revisit', 'response')"
        if revisits
        else "'response'",
        "warc_filename": f"format('harvest-{{:05d}}.warc.gz', number // {PER_FILE})",
        "warc_record_offset": f"number % {PER_FILE} * 14000",
        "warc_record_length": "14000",
    }
    columns = ", ".join(
        f"({given.get(column.name, 'NULL')})::{column.type} AS {column.name}"
        for column in intake.CAPTURES
    )
    return f"""
WITH numbered AS (SELECT range AS number FROM range($first, $end, {every})),
drawn AS (
    SELECT number, 'h' || {host} AS host,
        if(number % 10000 = 5000, 'model/vrml',
           {types}[{_drawn(_TYPE, seed)} % {len(_DRAWN)} + 1]) AS media,
        left({words}[{_drawn(_PATH, seed)} % {len(_WORDS)} + 1], 3) AS path,
        TIMESTAMP '{_START:%Y-%m-%d}' + to_seconds(number // 3) AS time,
        upper(left(sha1((number // 2)::VARCHAR), 32)) AS digest
    FROM numbered
),
named AS (
    SELECT *, split_part(media, '/', 2) AS minor,
        'http://www.' || host || '.cz/' || path || '/' || number || '.' || minor AS url,
        strftime(time, '%Y-%m-%dT%H:%M:%SZ') AS date
    FROM drawn
),
hashed AS (
    SELECT *, sha256(strlen(url) || ' ' || url || chr(10) || date || chr(10) || '200' || chr(10)
        || digest || chr(10) || '0') AS sha FROM named
),
dealt AS (SELECT *, [{five}] AS d FROM hashed)
SELECT {columns} FROM dealt
"""


def fill(
    store: Writer,
    count: int,
    folder: Path,
    seed: int = 1,
    revisits: int = 0,
    every: int = 1,
    *,
    has_sets: bool = True,
) -> None:
    """Write an intake run of `count` generated captures into the store, a part for each file.

    Every one in `revisits`, an even number, is a revisit of the capture before it; 0 for none.
    With `every`, only the first of as many captures is written, with another title.
    """
    connection = engine.connect(threads=2, memory_megabytes=1024)
    sql, step = _sql(count, seed, revisits, every, has_sets=has_sets), PER_FILE * every
    for first in range(0, count, step):
        values = {"first": first, "end": min(count, first + step)}
        path = folder / f"captures-{first // step:06}.parquet"
        connection.execute(
            f"COPY ({sql}) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 4096)",
            values,
        )
    connection.close()
    source = intake.IntakeSource(
        "generated", f"{seed}-{count}-{every}", "", "warc.gz", 0, count, 0, 0, {}, {}
    )
    intake.commit(store, intake.IntakeRun(f"generated-{seed}-{every}", (source,)), folder)
