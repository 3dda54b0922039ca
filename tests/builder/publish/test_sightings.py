"""What the lists of one repository said is put together by what was asked and answered."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builder.kinds.records import sightings
from builder.kinds.records.sightings import decide
from builder.store.parquet.writer import RowWriter
from functions.snapshot.item_tables import INTAKE
from functions.store import engine

Row = tuple[str, str, str, str]
"""List, place of the run, datestamp, and the digest of its content; "" if it is ended."""

RUNS = {
    "early": "2026-11-01T10:00:00Z",
    "middle": "2026-11-02T10:00:00Z",
    "late": "2026-11-03T10:00:00Z",
}
RULES = {
    # the rows in the order in which they came, each with the list, the run, the datestamp and the
    # digest, and the digest that counts; None: ended
    "a later run of a list": ("all early 2 x, all late 1 y", "y"),
    "a later run, ingested first": ("all late 1 y, all early 2 x", "y"),
    "a deletion of a later run": ("all early 2 x, all late 1 gone", None),
    "live and deleted in one list, the later datestamp": ("all early 2 x, all early 1 gone", "x"),
    "deleted and live in one list, the later datestamp": ("all early 1 gone, all early 2 x", "x"),
    "one datestamp in one list, the later row": ("all early 1 x, all early 1 y", "y"),
    "left a set, listed in another one after that": (
        "a early 1 x, b early 1 x, a middle 2 gone, b late 2 y",
        "y",
    ),
    "left a set, listed in another one before that": (
        "a early 1 x, b middle 2 y, a late 2 gone",
        "y",
    ),
    "left a set, the other one says nothing new": ("a early 1 x, b early 1 y, a late 2 gone", "y"),
    "deleted in all sets": ("a early 1 x, b early 1 x, a middle 2 gone, b late 2 gone", None),
    "deleted in a set, and listed there again": ("a early 1 x, a middle 2 gone, a late 3 y", "y"),
    "deleted in a list of all, after a set had it live": ("a early 1 x, all late 2 gone", None),
    "live in a set after a list of all had it deleted": ("all early 1 gone, a late 2 x", "x"),
    "live in a list of all after it left a set": ("a early 1 gone, all late 1 x", "x"),
    "left a set after a list of all had it live": ("all early 1 x, a late 2 gone", "x"),
}


def parse(text: str) -> Iterator[Row]:
    for row in text.split(", "):
        list_, run, stamp, digest = row.split()
        yield list_.replace("all", ""), RUNS[run], stamp, digest.replace("gone", "")


def write(path: Path, rows: Sequence[Row]) -> str:
    """Write a file of the intake with rows of one item in one format."""
    writer = RowWriter(path, INTAKE)
    for list_, run, stamp, digest in rows:
        values: dict[str, Any] = {
            "identifier": "oai:a.cz:1",
            "id": "oai:a.cz:1",
            "prefix": "oai_dc",
            "base_url": "http://a.cz/oai",
            "deleted": not digest,
            "datestamp": stamp,
            "digest": digest or None,
            "place": "a.cz/oai",
            "list": list_,
            "run": run,
        }
        writer.append(tuple(values.get(column.name) for column in INTAKE))
    writer.close()
    return str(path)


@pytest.mark.parametrize("whole", [True, False], ids=["at once", "run by run"])
@pytest.mark.parametrize(("text", "expected"), RULES.values(), ids=RULES)
def test_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str | None, whole: bool
) -> None:
    """They hold however the rows were spread over publishes."""
    rows = [*parse(text)]
    names = dict.fromkeys(row[1] for row in rows)
    runs = [rows] if whole else [[row for row in rows if row[1] == name] for name in names]
    draft: Any = SimpleNamespace(tables={})
    digests: dict[str, str] = {}
    published = tmp_path / "sightings.parquet"
    for number, part in enumerate(runs):
        for list_, run, _, digest in sorted(part, key=lambda row: row[2]):
            digests[f"{run} {list_}"] = digest
        earlier = [str(published)] if number else []
        monkeypatch.setattr(sightings, "fetch_groups", lambda *_, paths=earlier: paths)
        with closing(engine.connect()) as connection:
            decide(connection, draft, [write(tmp_path / f"{number}.parquet", part)])
            ((ended, chosen),) = connection.execute(
                "SELECT f.ended, s.run || ' ' || s.list FROM decided_formats f "
                "LEFT JOIN latest_sightings s USING (place, id, prefix, list)"
            ).fetchall()
            connection.execute(f"COPY latest_sightings TO '{published}'")
    assert (None if ended else digests[chosen]) == expected
