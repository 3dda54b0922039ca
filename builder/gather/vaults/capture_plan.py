"""Plan of an import: which captures count, and the rounds in which they are recorded.

A run has one result for each URL. So the captures of a URL are in successive rounds, in the order
of time. A redirect is followed to the capture of its target that is nearest in time.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from builder.gather.state import FileStates
from builder.gather.vaults.capture_index import COLUMNS
from builder.gather.vaults.faults import FaultList
from builder.http.url import MOST_REDIRECTS
from builder.obi import replay
from builder.obi.log_table import read_lines_sql
from builder.obi.run import Committed
from builder.snapshot.sql import Statements
from functions.database import engine
from functions.snapshot.store import Reader

_STATEMENTS = Statements(__file__)
_ROWS = 10_000
_HELD = (
    "number",
    "archive",
    "place",
    "requests",
    "url",
    "at",
    "status",
    "kind",
    "digest",
    "flaw",
    "faults",
    "fresh",
)


@dataclass(frozen=True, slots=True)
class PlannedFetch:
    """A URL that a template named, and the captures of it and of its redirects, by number."""

    asked: str
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlannedCapture:
    """A capture: see COLUMNS. A revisit has the archive and the place of its original.

    `fresh` is False if the store has a later response of the URL.
    """

    number: int
    archive: int
    place: int
    requests: tuple[int, ...]
    url: str
    at: int
    status: int | None
    kind: str
    digest: str | None
    flaw: str | None
    faults: tuple[str, ...]
    fresh: bool
    original: tuple[int, int] | None


@dataclass(slots=True)
class CapturePlan:
    """The plan, in a database of its own.

    `unnamed` captures are of URLs that no template named, `older` ones are not later than what the
    store has. `repeated` ones are copies, or within a stretch of equal captures. `due` counts the
    URLs to record in all rounds.
    """

    connection: engine.Connection
    unnamed: int = 0
    older: int = 0
    repeated: int = 0
    due: int = 0
    rounds: Sequence[tuple[int, int]] = ()

    @staticmethod
    def make(
        connection: engine.Connection, lines: Path, state: FileStates, store: Reader, scratch: Path
    ) -> "CapturePlan":
        """Make the plan from the lines of an index. Raises DamagedStore."""
        known = scratch / "known.parquet"
        state.write_known(known)
        with engine.reading("the captures of the archives"):
            for name, source in (
                ("capture", read_lines_sql(COLUMNS, [str(lines)], packed=False)),
                ("known", f"read_parquet({engine.quote(str(known))})"),
            ):
                connection.execute(f"CREATE TABLE {name} AS FROM {source}")
        _read_observed(connection, store, state.runs, scratch)
        with engine.reading("the captures of the archives"):
            for sql in (
                _STATEMENTS.get("wanted"),
                _STATEMENTS.get("chosen"),
                _STATEMENTS.get("linked"),
                _STATEMENTS.get("fetches"),
                _STATEMENTS.get("originals"),
            ):
                connection.execute(sql)
        return CapturePlan(connection)

    def schedule(self, faults: FaultList, names: Sequence[str]) -> None:
        """Add the fetches with redirects, and count what is due; `names` are those of archives."""
        schedule = Schedule()
        with engine.reading("the redirects of the archives"):
            rows = self.connection.execute(_STATEMENTS.get("ways")).fetchall()
        ways = [_Way(*row) for row in rows]
        found = schedule.fetches(ways)
        while some := list(islice(found, _ROWS)):
            self.connection.execute(
                _STATEMENTS.get("add"),
                {
                    "asked": [fetch.asked for fetch, _ in some],
                    "members": [list(fetch.members) for fetch, _ in some],
                    "round": [number for _, number in some],
                },
            )
        for way in schedule.open_ends:
            done = "the redirect is left out"
            faults.add(*self._place(way.number, names), "no-target", f"{way.url}", done)
        rounds = self.connection.execute(_STATEMENTS.get("rounds")).fetchall()
        self.rounds = [(int(number), int(many)) for number, many in rounds]
        self.due = sum(many for _, many in self.rounds)
        counts = self.connection.execute(_STATEMENTS.get("counts")).fetchone()
        self.unnamed, self.older, self.repeated = map(int, counts or (0, 0, 0))
        self.repeated += schedule.repeated

    def batches(self, most: int) -> Iterator[list[PlannedFetch]]:
        """Yield the fetches of the runs, at most `most` in each."""
        for number, many in self.rounds:
            for start in range(0, many, most):
                given = {"round": number, "most": most, "start": start}
                rows = self.connection.execute(_STATEMENTS.get("batch"), given).fetchall()
                yield [PlannedFetch(asked, tuple(members)) for asked, members in rows]

    def captures(self, fetches: Sequence[PlannedFetch]) -> list[PlannedCapture]:
        """Return the captures of fetches, in the order of their places in the archives."""
        numbers = sorted({number for fetch in fetches for number in fetch.members})
        rows = self.connection.execute(_STATEMENTS.get("captures"), {"numbers": numbers})
        return [_capture(row) for row in rows.fetchall()]

    def _place(self, number: int, names: Sequence[str]) -> tuple[str, int]:
        statement = "SELECT archive, place FROM capture WHERE number = $number"
        ((archive, place),) = self.connection.execute(statement, {"number": number}).fetchall()
        return names[archive], place


def _read_observed(
    connection: engine.Connection, store: Reader, runs: Sequence[Committed], scratch: Path
) -> None:
    """Create `observed`: the time of the last capture of each URL that earlier imports recorded."""
    imports = [run for run in runs if run.is_import]
    replay.read(connection, store, imports, scratch, ("row = 'exchange'",))
    connection.execute(
        'CREATE TABLE observed AS SELECT id, max(tist) AS tist, arg_max("at", tist) AS second '
        "FROM logged GROUP BY id"
    )
    connection.execute("DROP TABLE logged")


def _capture(row: Sequence[Any]) -> PlannedCapture:
    held = dict(zip(_HELD, row, strict=False))
    archive, place = row[len(_HELD) :]
    return PlannedCapture(
        **held | {"requests": tuple(held["requests"]), "faults": tuple(held["faults"])},
        original=None if archive is None else (archive, place),
    )


@dataclass(frozen=True, slots=True)
class _Way:
    """A capture of a URL on a redirect's way: see COLUMNS."""

    number: int
    url: str
    at: int
    target: str | None
    named: bool
    fresh: bool
    result: str


@dataclass(slots=True)
class Schedule:
    """Gives each fetch with redirects its round. `open_ends` are redirects without their target.

    The last round of a URL, and its capture there, bound the round of its next fetch. `repeated`
    fetches are left out: they are between equal ones.
    """

    open_ends: list[_Way] = field(default_factory=list)
    repeated: int = 0
    _by_url: dict[str, list[_Way]] = field(default_factory=dict)
    _last: dict[str, tuple[int, int]] = field(default_factory=dict)

    def fetches(self, ways: Sequence[_Way]) -> Iterator[tuple[PlannedFetch, int]]:
        """Yield the fetches with their rounds; `ways` are in the order of time."""
        for way in ways:
            self._by_url.setdefault(way.url, []).append(way)
        found: dict[str, list[list[_Way]]] = {}
        for way in ways:
            if not (way.named and way.fresh):
                continue
            if followed := self._follow(way):
                found.setdefault(way.url, []).append(followed)
            else:
                self.open_ends.append(way)
        kept = [members for some in found.values() for members in self._thin(some)]
        for members in sorted(kept, key=lambda some: (some[0].at, some[0].number)):
            number = max(map(self._earliest, members))
            self._last |= {one.url: (number, one.number) for one in members}
            yield PlannedFetch(members[0].url, tuple(one.number for one in members)), number

    def _thin(self, fetches: Sequence[list[_Way]]) -> Iterator[list[_Way]]:
        """Yield the fetches of a URL without those between equal ones."""
        results = [[(one.url, one.result) for one in members] for members in fetches]
        for place, members in enumerate(fetches):
            if 0 < place < len(fetches) - 1 and (
                results[place - 1] == results[place] == results[place + 1]
            ):
                self.repeated += 1
            else:
                yield members

    def _follow(self, way: _Way) -> list[_Way] | None:
        """Return the captures on the way; None if one is missing."""
        members, seen = [way], {way.url}
        while members[-1].target is not None and len(members) <= MOST_REDIRECTS:
            target = members[-1].target
            if target in seen:  # a loop, which the rules of redirects report
                break
            found = self._by_url.get(target)
            if not found:
                return None
            members.append(_nearest(found, way.at))
            seen.add(target)
        return members

    def _earliest(self, way: _Way) -> int:
        number, capture = self._last.get(way.url, (0, way.number))
        return max(1, number if capture == way.number else number + 1)


def _nearest(ways: Sequence[_Way], at: int) -> _Way:
    """Return the capture nearest in time, the later one of two; `ways` are in order."""
    place = bisect_left(ways, at, key=lambda way: way.at)
    around = ways[max(0, place - 1) : place + 1]
    return min(reversed(around), key=lambda way: abs(way.at - at))
