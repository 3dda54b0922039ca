"""State of files: what earlier runs know of each file, and which files are due now."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from pathlib import Path

from builder.gather.incidences import Before
from builder.http.addresses import PublicAddresses, is_public
from builder.http.errors import OUTCOMES
from builder.http.limits import Limits
from builder.obi import replay
from builder.obi.content import DELETION, FILE, TEMPLATE, Row
from builder.obi.run import Committed
from functions.database import engine
from functions.snapshot.store import Reader

DAY = 86_400

_PORT = re.compile(r":([0-9]+)\Z")
_BYTES = re.compile(r"([0-9,]+) bytes\Z")
_BETWEEN = re.compile(r"[\s,]+")
_UNREACHABLE = sorted(code for code, outcome in OUTCOMES.items() if outcome.unreachable)
_SOON = sorted(code for code, outcome in OUTCOMES.items() if outcome.soon)
_OURS = sorted(code for code, outcome in OUTCOMES.items() if outcome.ours)
_TABLES = ("version", "seen", "incidence", "redirect", "failure")

_HAD = f"""
SELECT id, tist FROM version WHERE kind = '{FILE}' UNION ALL
SELECT id, tist FROM seen WHERE kind = '{FILE}' UNION ALL
SELECT origin, tist FROM redirect WHERE target_key IS NOT NULL
"""
_TRIED = f"""
{_HAD} UNION ALL SELECT origin, tist FROM redirect WHERE target_key IS NULL
UNION ALL SELECT id, tist FROM failure UNION ALL SELECT id, tist FROM incidence
WHERE kind = '{FILE}'
"""
_STANDING = f"""
WITH tried AS (SELECT id, max(tist) AS tried FROM ({_TRIED}) GROUP BY id),
had AS (SELECT id, max(tist) AS had FROM ({_HAD}) GROUP BY id),
bad AS (
    SELECT f.id, count(DISTINCT f.tist) AS times, arg_max(f.code, f.tist) AS code,
        arg_max(f.detail, f.tist) AS detail
    FROM failure f LEFT JOIN had h USING (id) WHERE f.tist > coalesce(h.had, 0) GROUP BY f.id),
wanted AS (
    SELECT id, bool_or(lower(trim(format)) = 'application/pdf') AS pdf
    FROM refipo WHERE id IS NOT NULL
    AND ($handle IS NULL OR handle = $handle OR starts_with(handle, $handle || ':'))
    AND ($pattern IS NULL OR id GLOB $pattern) GROUP BY id)
SELECT w.id, trim(regexp_extract(w.id, '^[a-z]+://(\\[[^\\]]*\\]|[^/:?#]*)', 1), '[]') AS host,
    coalesce(w.pdf, false) AS pdf, t.tried, b.id IS NOT NULL AS failed,
    t.tried IS NULL OR (t.tried < $begun AND ($again OR t.tried <= $now - $interval
        OR coalesce((b.code || ' ' || b.detail) IN (SELECT unnest($lifted::VARCHAR[])), false)
        OR coalesce(list_contains($soon, b.code)
            AND t.tried <= $now - $retry * 2 ** least(b.times - 1, 16), false))) AS due
FROM wanted w LEFT JOIN tried t USING (id) LEFT JOIN bad b USING (id)
"""
_NEXT = f"""
SELECT id, host, pdf FROM ({_STANDING})
WHERE due AND NOT list_contains($resting::VARCHAR[], host)
ORDER BY row_number() OVER (PARTITION BY host ORDER BY tried NULLS FIRST, id), id LIMIT $most
"""
_LEFT = f"""
SELECT count(*) FILTER (due), count(DISTINCT host) FILTER (due),
    count(*) FILTER (failed AND tried < $begun AND NOT due)
FROM ({_STANDING})
"""
_MATCHED = f"""
SELECT EXISTS (FROM ({_STANDING})) OR EXISTS (FROM version WHERE kind = '{TEMPLATE}'
    AND (id = $handle OR starts_with(id, $handle || ':')))
"""
_REFUSED = """
SELECT DISTINCT code, detail FROM failure WHERE list_contains($ours, code) AND detail IS NOT NULL
"""

_BEFORE = f"""
WITH want AS (SELECT unnest($ids) AS id),
v AS (SELECT id, arg_max({{key: key, digest: sha256, text_sha256: text_sha256,
    text_method: text_method}}, tist) AS v
    FROM version SEMI JOIN want USING (id) WHERE kind = '{FILE}' GROUP BY id),
i AS (SELECT id, arg_max(what, tist) AS what
    FROM incidence SEMI JOIN want USING (id) WHERE kind = '{FILE}' GROUP BY id),
s AS (SELECT id, arg_max({{etag: etag, last_modified: last_modified}}, tist) AS s
    FROM (SELECT id, etag, last_modified, tist FROM version WHERE kind = '{FILE}' UNION ALL
          SELECT id, etag, last_modified, tist FROM seen WHERE kind = '{FILE}')
    SEMI JOIN want USING (id) GROUP BY id),
r AS (SELECT origin AS id, arg_max({{target: target, status: status, key: key}}, tist) AS r
    FROM redirect SEMI JOIN want ON want.id = redirect.origin GROUP BY origin),
heard AS (SELECT id, max(tist) AS heard FROM ({_HAD}
    UNION ALL SELECT id, tist FROM incidence WHERE kind = '{FILE}' UNION ALL
    SELECT id, tist FROM failure WHERE NOT list_contains($unreachable, code))
    SEMI JOIN want USING (id) GROUP BY id),
u AS (SELECT f.id, count(DISTINCT f.tist) AS unreached, min(f.tist) AS since
    FROM failure f SEMI JOIN want USING (id) LEFT JOIN heard h ON h.id = f.id
    WHERE list_contains($unreachable, f.code) AND f.tist > coalesce(h.heard, 0) GROUP BY f.id)
SELECT id, v.key, v.digest, v.text_sha256, v.text_method,
    coalesce(i.what = '{DELETION}', false), s.etag, s.last_modified, coalesce(u.unreached, 0),
    u.since, r.target, r.status, r.key
FROM want LEFT JOIN v USING (id) LEFT JOIN i USING (id) LEFT JOIN s USING (id)
LEFT JOIN r USING (id) LEFT JOIN u USING (id)
"""


@dataclass(frozen=True, slots=True)
class OwnLimits:
    """The limits of the configuration, which may no longer cause some earlier failures."""

    guard: PublicAddresses
    limits: Limits
    obey: bool

    def lift(self, code: str, detail: str) -> bool:
        """Return whether a failure with this detail would not happen now, as far as is known.

        Nothing is looked up: addresses, port and size are those of the last attempt.
        """
        if code == "address-refused":
            return any(map(self._allows, _BETWEEN.split(detail)))
        if code == "port-refused":
            port = _PORT.search(detail)
            return port is not None and int(port[1]) in self.guard.ports
        if code == "robots-disallowed":
            return not self.obey
        found = _BYTES.search(detail) if code == "too-large" else None
        if found is None or not (digits := found[1].replace(",", "")):
            return False
        # If its size was unknown, the file exceeded the limit of that time.
        least = int(digits) + ("more than" in detail)
        return least <= self.limits.bytes

    def _allows(self, word: str) -> bool:
        try:
            ip_address(word.partition("%")[0])
        except ValueError:  # the host's name, or other words
            return False
        return is_public(word, self.guard.allowed)


@dataclass(frozen=True, slots=True)
class FileChoice:
    """Which files to fetch, and when to fetch them again.

    `handle` selects an archive or a series, `pattern` the URLs that match it. `interval` and
    `retry` are in seconds; `retry` doubles with each failure. `lifted` returns, for a code and a
    detail, whether the configuration no longer causes that failure.
    """

    interval: int
    retry: int
    again: bool = False
    handle: str | None = None
    pattern: str | None = None
    lifted: Callable[[str, str], bool] = lambda code, detail: False


@dataclass(frozen=True, slots=True)
class Left:
    """Numbers of due files, of their hosts, and of files that wait because they failed before."""

    due: int = 0
    hosts: int = 0
    put_off: int = 0


@dataclass(frozen=True, slots=True)
class DueFile:
    """A file to fetch, its host, and whether a template says that it is a PDF."""

    url: str
    host: str
    pdf: bool


class FileStates:
    """The replay of all runs, in a database of its own. Not safe to use from threads."""

    def __init__(self, connection: engine.Connection, runs: Sequence[Committed]) -> None:
        self._connection = connection
        self.runs = tuple(runs)

    @staticmethod
    def replay(
        store: Reader, runs: Sequence[Committed], scratch: Path, megabytes: int
    ) -> "FileStates":
        """Replay the logs of the runs. Raises DamagedStore, StoreError."""
        connection = engine.connect(threads=2, memory_megabytes=megabytes, scratch=scratch)
        replay.fold(connection, store, runs, scratch, held=True)
        return FileStates(connection, runs)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def extend(self, run: Committed, rows: Iterable[Row]) -> None:
        """Add the rows of a run that was committed after the others."""
        by_table: dict[str, list[dict[str, object]]] = defaultdict(list)
        for row in rows:
            by_table[row.row].append({"tist": run.tist, **asdict(row)})
        with engine.reading("the outcomes of a run"):
            for table in sorted(by_table.keys() & set(_TABLES)):
                described = self._connection.execute(f"DESCRIBE {table}").fetchall()
                shape = json.dumps([{name: kind for name, kind, *_ in described}])
                self._connection.execute(
                    f"INSERT INTO {table} BY NAME SELECT unnest(told) FROM "
                    f"(SELECT unnest(from_json($told, '{shape}')) AS told)",
                    {"told": json.dumps(by_table[table])},
                )
        self.runs = (*self.runs, run)

    def next(
        self, choice: FileChoice, now: int, begun: int, most: int, resting: Sequence[str]
    ) -> list[DueFile]:
        """Return up to `most` due files, of as many hosts as possible.

        Files that were never tried come first, then those tried longest ago. Times are in seconds
        since 1970. Files tried since `begun` are left out.
        """
        values = {**self._values(choice, now, begun), "most": most, "resting": list(resting)}
        with engine.reading("the files that are due"):
            rows = self._connection.execute(_NEXT, values).fetchall()
        return [DueFile(*row) for row in rows]

    def count_due(self, choice: FileChoice, now: int, begun: int) -> Left:
        """Return the numbers of due and waiting files; files tried since `begun` do not count."""
        with engine.reading("the files that are due"):
            values = self._values(choice, now, begun)
            row = self._connection.execute(_LEFT, values).fetchone()
        assert row is not None
        return Left(*row)

    def matches(self, choice: FileChoice) -> bool:
        """Return whether any file or template matches the choice, due or not."""
        with engine.reading("the files that are due"):
            row = self._connection.execute(_MATCHED, self._values(choice, 0, 0)).fetchone()
        assert row is not None
        return bool(row[0])

    def before(self, urls: Iterable[str]) -> dict[str, Before]:
        """Return what is known of each URL."""
        values = {"ids": sorted(set(urls)), "unreachable": _UNREACHABLE}
        with engine.reading("the state of files"):
            rows = self._connection.execute(_BEFORE, values).fetchall()
        return {row[0]: _before(row) for row in rows}

    def _values(self, choice: FileChoice, now: int, begun: int) -> dict[str, object]:
        refused = self._connection.execute(_REFUSED, {"ours": _OURS}).fetchall()
        return {
            "interval": choice.interval,
            "retry": choice.retry,
            "again": choice.again,
            "handle": choice.handle,
            "pattern": choice.pattern,
            "soon": _SOON,
            "lifted": [f"{c} {d}" for c, d in refused if choice.lifted(c, d)],
            "now": now,
            "begun": begun,
        }


def _before(row: Sequence[object]) -> Before:
    names = (
        "key", "digest", "text_sha256", "text_method", "lost", "etag", "last_modified",
        "unreached", "since", "target", "status", "redirect",
    )  # fmt: skip
    held: Mapping[str, object] = dict(zip(names, row[1:], strict=True))
    return Before(**held)  # type: ignore[arg-type]
