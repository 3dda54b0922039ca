"""State of files: what earlier runs know of each file, and which files are due now."""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from builder.http.errors import OUTCOMES
from builder.obi import key, replay
from builder.obi.content import FILE, TEMPLATE, Row, SeenRow
from builder.obi.run import Committed
from builder.sources.fulltexts import file_table
from builder.sources.fulltexts.choice import FileChoice, host_of
from builder.sources.fulltexts.file_table import STATEMENTS
from builder.sources.fulltexts.incidences import Before
from builder.sources.fulltexts.sitemaps import Sitemap
from functions.snapshot.store import Reader, Writer
from functions.store import engine

_SOON = sorted(code for code, outcome in OUTCOMES.items() if outcome.soon)
_FRESH = 30  # seconds
_OURS = sorted(code for code, outcome in OUTCOMES.items() if outcome.ours)


@dataclass(frozen=True, slots=True)
class HostWork:
    """Numbers of a host's files: all, due ones, ones that wait because they failed, excluded ones.

    `pause` is the longest pause in seconds that a rule demands for one of the due files. `sure`
    counts the due files of which a sitemap may say that they are unchanged.
    """

    host: str
    files: int
    due: int
    put_off: int
    excluded: int
    pause: float | None = 0
    sure: int = 0


@dataclass(frozen=True, slots=True)
class HostEstimate:
    """A host's files, and the seconds until all that are due will have been requested."""

    work: HostWork
    seconds: float


def estimate(hosts: Iterable[HostWork], interval: Callable[[str], float]) -> list[HostEstimate]:
    """Return an estimate of each host, the slowest first, by the pause between its requests.

    Hosts are asked side by side. The time of the responses themselves is not known.
    """
    estimates = [
        HostEstimate(host, host.due * max(host.pause or 0, interval(host.host))) for host in hosts
    ]
    return sorted(estimates, key=lambda host: (-host.seconds, -host.work.due, host.work.host))


@dataclass(frozen=True, slots=True)
class DueFile:
    """A file to fetch, its host, and whether a template says that it is a PDF.

    `pause` is the time in seconds to leave between requests to its host, by the rules.
    """

    url: str
    host: str
    pdf: bool
    pause: float = 0


class FileStates:
    """The table of files in a database of its own. Not safe to use from threads."""

    def __init__(
        self, connection: engine.Connection, store: Reader, runs: Sequence[Committed], scratch: Path
    ) -> None:
        self._connection, self._store, self._scratch = connection, store, scratch
        self.runs = tuple(runs)
        self._counted: tuple[FileChoice, int, int, list[HostWork]] | None = None

    @staticmethod
    def load(
        store: Writer, runs: Sequence[Committed], scratch: Path, megabytes: int
    ) -> "FileStates":
        """Read the newest table of files and the logs of the runs since.

        A new table is written to the store if these logs are long. Raises DamagedStore, StoreError.
        """
        connection = engine.connect(threads=2, memory_megabytes=megabytes, scratch=scratch)
        table = file_table.find(store, runs, connection)
        later = file_table.load(connection, table, runs)
        file_table.add_runs(connection, store, later, scratch)
        if file_table.is_outdated(table, later):
            file_table.save(connection, store, runs[-1], scratch)
        return FileStates(connection, store, runs, scratch)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def extend(self, run: Committed, rows: Iterable[Row]) -> None:
        """Add the rows of a run that was committed after the others."""
        lines = [{"tist": run.tist, "row": row.row, **asdict(row)} for row in rows]
        with engine.reading("the outcomes of a run"):
            replay.read(self._connection, self._store, (), self._scratch)
            described = self._connection.execute("DESCRIBE logged").fetchall()
            shape = json.dumps([{name: kind for name, kind, *_ in described}])
            self._connection.execute(
                f"INSERT INTO logged BY NAME SELECT unnest(told) FROM "
                f"(SELECT unnest(from_json($told, '{shape}')) AS told)",
                {"told": json.dumps(lines)},
            )
            file_table.merge(self._connection, [])
            self._connection.execute("DROP TABLE logged")
        self.runs = (*self.runs, run)
        self._counted = None

    def next(
        self, choice: FileChoice, now: int, begun: int, most: int, resting: Sequence[str]
    ) -> list[DueFile]:
        """Return up to `most` due files, of as many hosts as possible.

        Files that were never tried come first, then those tried longest ago. Times are in seconds
        since 1970. Files tried since `begun` are left out.
        """
        rests = frozenset(resting)
        due = {h.host: h.due for h in self.work(choice, now, begun) if h.due}
        hosts = [host for host in due if host not in rests][:most]
        if not hosts or most < 1:
            return []
        # How many files of each host make up `most` files, taken in turns.
        counts = [due[host] for host in hosts]
        depth = 1 + bisect_left(range(1, most), most, key=lambda n: sum(min(n, c) for c in counts))
        values = {"hosts": hosts, "depth": depth, "most": most}
        rows = self._ask("next", choice, now, begun, values)
        return [DueFile(*row) for row in rows]

    def add_sitemap(self, sitemap: Sitemap) -> None:
        """Add what a sitemap says of its files, until the state is closed."""
        values = {
            "ids": list(sitemap.changed),
            "changed": list(sitemap.changed.values()),
            "source": sitemap.url,
        }
        with engine.reading("the sitemaps"):
            self._connection.execute(
                "INSERT INTO listed SELECT unnest($ids::VARCHAR[]), unnest($changed::BIGINT[]), "
                "$source",
                values,
            )

    def list_unchanged(self, choice: FileChoice, now: int, begun: int, most: int) -> list[SeenRow]:
        """Return rows of due files that are unchanged as their sitemaps say, by URL."""
        rows = self._ask("unchanged", choice, now, begun, {"most": most})
        return [
            SeenRow(id=url, kind=FILE, etag=etag, last_modified=modified, source=source)
            for url, etag, modified, source in rows
        ]

    def work(self, choice: FileChoice, now: int, begun: int) -> list[HostWork]:
        """Return the numbers of files of each host; files tried since `begun` are not due.

        They are counted again once rows were added, and after half a minute.
        """
        counted = self._counted
        if counted is None or counted[:2] != (choice, begun) or not 0 <= now - counted[2] < _FRESH:
            rows = self._ask("work", choice, now, begun, {})
            counted = self._counted = choice, begun, now, [HostWork(*row) for row in rows]
        return counted[3]

    def matches(self, choice: FileChoice) -> bool:
        """Return whether any file or template matches the choice, due or not."""
        statement = STATEMENTS.get("named", condition=choice.condition())
        with engine.reading("the files that are due"):
            ((exists,),) = self._connection.execute(statement, choice.values()).fetchall()
        return bool(exists) or (choice.handle is not None and self._has_template(choice.handle))

    def _has_template(self, handle: str) -> bool:
        """Return whether a template matches, which has no files. All logs are read."""
        fits = "(id = $handle OR starts_with(id, $handle || ':'))"
        condition = (f"row = 'version' AND kind = '{TEMPLATE}' AND {fits}",)
        values = {"handle": handle}
        replay.read(self._connection, self._store, self.runs, self._scratch, condition, values)
        with engine.reading("the templates"):
            ((exists,),) = self._connection.execute("SELECT EXISTS (FROM logged)").fetchall()
            self._connection.execute("DROP TABLE logged")
        return bool(exists)

    def before(self, urls: Iterable[str]) -> dict[str, Before]:
        """Return what is known of each URL."""
        wanted = sorted(set(urls))
        values: dict[str, object] = {"ids": wanted, "hosts": sorted({*map(host_of, wanted)})}
        with engine.reading("the state of files"):
            rows = self._connection.execute(STATEMENTS.get("states"), values).fetchall()
        names = [member.name for member in fields(Before)][1:]  # all but the key, in their order
        states = {
            url: Before(
                key=None if noted is None else key.key(noted, url),
                **dict(zip(names, values, strict=True)),
            )
            for url, noted, *values in rows
        }
        return {url: states.get(url, Before()) for url in wanted}

    def _ask(
        self, name: str, choice: FileChoice, now: int, begun: int, more: Mapping[str, object]
    ) -> list[Any]:
        with engine.reading("the files that are due"):
            sql = STATEMENTS.get("refused", condition=choice.condition())
            refused = self._connection.execute(sql, {"ours": _OURS, **choice.values()})
            lifted = [f"{c} {d}" for c, d in refused.fetchall() if choice.lifted(c, d)]
            chosen = STATEMENTS.get(
                "chosen", pause=choice.rules.pause(), condition=choice.condition()
            )
            values = {
                "interval": choice.interval,
                "retry": choice.retry,
                "again": choice.again,
                "soon": _SOON,
                "lifted": lifted,
                "now": now,
                "begun": begun,
                **choice.values(),
                **more,
            }
            sql = STATEMENTS.get(name, chosen=chosen)
            rows: list[Any] = self._connection.execute(sql, values).fetchall()
            return rows
