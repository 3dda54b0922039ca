"""Figures of the whole archive: after each change they are what its records say."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.intake.captures import Capture
from builder.publish.selection import Selection
from builder.snapshot import figures
from builder.snapshot.transaction import NothingSelectedError
from functions.snapshot import figure_rows, layout
from functions.snapshot.figure_rows import COLUMNS, FigureRows
from functions.store import engine
from tests.builder.conftest import World, capture, resize
from tests.extent import examples

pytestmark = pytest.mark.shared(2)

TYPES = ("text/html", "image/png", None, *(f"a/{n}" for n in range(9)))


def hosted(number: int, host: str | None = "a.cz", **changes: Any) -> Capture:
    domain = None if host is None else ".".join(host.split(".")[-2:])
    values: dict[str, Any] = {
        "url_host_name": host,
        "url_host_registered_domain": domain,
        "content_length": number,
    }
    return capture(number, **{**values, **changes})


def grouped(connection: engine.Connection, columns: str) -> dict[Any, tuple[int, int]]:
    sql = f"""
        SELECT {columns}, count(*), sum(coalesce(content_length, 0)) FROM (SELECT *,
            coalesce(content_mime_type, content_mime_detected, '') AS media_type,
            coalesce(fetch_status::VARCHAR, '') AS status,
            coalesce(left(fetch_date, 7), '') AS month FROM captures) GROUP BY ALL
    """
    rows = connection.execute(sql).fetchall()
    return {row[:-2] if len(row) > 3 else row[0]: (row[-2], int(row[-1])) for row in rows}


def right(world: World) -> FigureRows:
    """Compare the newest figures, and the tables behind them, with the listed records."""
    with world.views() as connection:
        return compare(world, connection)


def compare(world: World, connection: engine.Connection) -> FigureRows:
    sql = f"SELECT {', '.join(COLUMNS)} FROM figures"
    found = FigureRows.of(connection.execute(sql).fetchall())
    assert found.months == grouped(connection, "month")
    by_type = grouped(connection, "media_type, status")
    every: dict[str, dict[str, dict[str | None, tuple[int, int]]]] = {
        facet: {v: {None: c} for v, c in grouped(connection, column).items() if v is not None}
        for facet, column in (("host", "url_host_name"), ("domain", "url_host_registered_domain"))
    } | {"media_type": {t: {s: c for (u, s), c in by_type.items() if u == t} for t, _ in by_type}}
    for name, values in every.items():
        facet = found.facets[name]
        totals = [c for details in values.values() for c in details.values()]
        assert (facet.captures, facet.bytes) == (
            sum(c for c, _ in totals),
            sum(b for _, b in totals),
        )
        assert facet.different == len(values)
        order = sorted(values, key=lambda v: (-sum(c for c, _ in values[v].values()), v))
        assert set(facet.values) == set(order[: len(facet.values)])
        assert min(figures.SHOWN, len(order)) <= len(facet.values) <= figures.KEPT
        assert facet.values == {v: values[v] for v in facet.values}
    assert found.facets["media_type"].details(1, dict(found.facets["media_type"].others)) == {
        status: tuple(
            map(sum, zip(*(c for (_, s), c in by_type.items() if s == status), strict=True))
        )
        for _, status in by_type
    }
    for table, rows in (
        ("hosts", [(h, *c[None]) for h, c in every["host"].items()]),
        ("domains", [(d, *c[None]) for d, c in every["domain"].items()]),
        ("media_types", [(t, s or None, *c) for (t, s), c in by_type.items()]),
    ):
        status = "* REPLACE (status::VARCHAR AS status)" if table == "media_types" else "*"
        stored = connection.execute(f"SELECT {status} FROM {table}").fetchall()
        assert Counter(stored) == Counter(rows), table
    sql = """SELECT kind, count(*) FILTER (NOT deleted), count(*) FILTER (deleted)
        FROM records GROUP BY ALL"""
    kinds = {kind: tuple(counts) for kind, *counts in connection.execute(sql).fetchall()}
    assert found.kinds == kinds
    publishes = connection.execute("SELECT * EXCLUDE (datestamp) FROM publishes").fetchall()
    latest = {kind: (live, gone) for *_, kind, _, _, _, _, live, gone in publishes[-len(kinds) :]}
    assert latest == kinds
    assert found.publishes == figure_rows.thin(publishes, len(world.newest().sequences))
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have few rows in a file, and few values in the figures."""
    resize(monkeypatch, GROUP_ROWS=3, COUNT_GROUPS=2, FILE_GROUPS=2)
    monkeypatch.setattr(layout, "LEAF_FILES", 2)
    for module in (figures, figure_rows):
        monkeypatch.setattr(module, "SHOWN", 3)
    monkeypatch.setattr(figures, "KEPT", 5)


@pytest.mark.usefixtures("small")
@settings(max_examples=examples(4))
@given(st.integers(0, 2**32))
def test_any_history(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Publishes, withdrawals and reinstatements at random."""
    pick = random.Random(seed)
    world = World(tmp_path_factory.mktemp("figures") / "store")
    for step in range(pick.randint(3, 8)):
        world.clock.sleep(60)
        how = pick.choice(["publish", "publish", "withdraw", "reinstate"]) if step else "publish"
        selection = Selection(set=f"domain:cz:example:h{pick.randrange(17)}")
        try:
            if how == "withdraw":
                world.withdraw(selection)
            elif how == "reinstate":
                world.reinstate(selection)
            else:
                world.add([any_capture(pick) for _ in range(pick.randint(1, 60))])
        except NothingSelectedError:
            continue
        right(world)
    assert world.verify().findings == ()
    world.close()


def any_capture(pick: random.Random) -> Capture:
    number = pick.randrange(120)
    return hosted(
        number,
        pick.choice([None, f"www.d{number % 13}.cz", f"h{number % 7}.d{number % 5}.cz"]),
        content_mime_type=pick.choice(TYPES),
        content_length=pick.choice([None, 1, 10]),
        fetch_status=pick.choice([200, 404, None]),
        fetch_date=pick.choice([None, "2007", "2007-11", "2007-12-05T00:00:00Z"]),
    )


@pytest.mark.thorough
@pytest.mark.usefixtures("small")
def test_a_host_that_becomes_rare_lets_another_in(world: World) -> None:
    """There are ten hosts with 10 to 1 captures; five are kept, and three are always there."""
    hosts = [f"h{n}.cz" for n in range(10) for _ in range(10 - n)]
    world.add([hosted(n, host) for n, host in enumerate(hosts)])
    assert set(right(world).facets["host"].values) == {f"h{n}.cz" for n in range(5)}
    for rare in range(4):
        world.clock.sleep(60)
        some = [n for n, host in enumerate(hosts) if host == f"h{rare}.cz"]
        world.add([hosted(n, "z.cz" if k else None) for k, n in enumerate(some)])
        right(world)
    assert set(right(world).facets["host"].values) >= {"z.cz", "h4.cz", "h5.cz"}


def test_each_publish_says_what_it_changed(world: World) -> None:
    world.add([hosted(n) for n in range(9)], ("collection:news",))
    world.clock.sleep(60)
    world.add([hosted(1, title="Another"), hosted(2, "b.cz"), hosted(17)])
    world.withdraw(Selection(set="domain:cz:example:h3"))
    world.clock.sleep(60)
    world.reinstate(Selection(set="domain:cz"))
    assert [row for row in right(world).publishes if row[1] == "capture"] == [
        (1, "capture", 9, 0, 0, 0, 9, 0),
        (2, "capture", 1, 2, 0, 0, 10, 0),
        (3, "capture", 0, 0, 1, 0, 9, 1),
        (4, "capture", 0, 0, 0, 1, 10, 0),
    ]


def test_of_many_publishes_a_bounded_number_is_in_the_figures() -> None:
    rows: list[tuple[Any, ...]] = []
    for sequence in range(1, 3000):
        rows = figure_rows.thin([*rows, (sequence, "capture")], sequence)
        assert len(rows) <= 2 * figure_rows.SHOWN
    numbers = [number for number, _ in rows]
    assert numbers[-100:] == [*range(2900, 3000)]
    assert numbers[:-100] == [*range(32, 2900, 32)]
