"""Checks of the table of words: each run must have exactly the words of its records.

The words of a file of records are cut again, and summed up as hashes of word and position. So are
the rows of the files of words. The sums of a run must agree.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from builder.snapshot.audit import SnapshotContents
from builder.store.findings import Finding
from functions.kinds import WHOLE
from functions.snapshot.layout import WORDS
from functions.store import engine

# Of a range of positions, the sum is that of its parts, so that large ranges need not be expanded.
# The texts of some kinds are in another table, so their words are left out.
SUMS = "CREATE TABLE held_word_sums (file INTEGER, count HUGEINT, total HUGEINT)"
_HASH = "hash(word, {})::HUGEINT"
_STEP = f"{_HASH.format('place + 1')} - {_HASH.format('place')}"
_KINDS = engine.texts(sorted(WHOLE))
_ELSEWHERE = f"(SELECT DISTINCT position AS place FROM held_records WHERE kind NOT IN {_KINDS})"
_CUT_SUM = (
    f"INSERT INTO held_word_sums SELECT $number, count(*), sum({_STEP}) FROM ("
    "SELECT DISTINCT word, unnest(range(position, position + following + 1)) AS place "
    f"FROM ($rows)) WHERE place NOT IN {_ELSEWHERE}"
)
_ROW_SUM = (
    "INSERT INTO held_word_sums SELECT $number, sum(following + 1), "
    f"sum({_HASH.format('position + following + 1')} - {_HASH.format('position')}) FROM $rows "
    f"UNION ALL SELECT $number, -count(*), -sum({_STEP}) FROM $rows r JOIN {_ELSEWHERE} c "
    "ON place >= position AND place <= position + following"
)


def sum_cut(
    connection: engine.Connection, number: int, rows: str, values: Mapping[str, Any]
) -> None:
    """Keep the sum of the words that a query gives for file `number`, of records."""
    sql = _CUT_SUM.replace("$rows", rows).replace("$number", str(number))
    connection.execute(sql, values)


def sum_rows(connection: engine.Connection, number: int, path: Path) -> None:
    """Keep the sum of file `number`, of words; the files of records must come before it."""
    sql = _ROW_SUM.replace("$rows", engine.table("$path")).replace("$number", str(number))
    connection.execute(sql, {"path": str(path)})


def word_findings(
    connection: engine.Connection, keys: list[str], contents: SnapshotContents
) -> Iterator[Finding]:
    """Yield findings on the words of a snapshot whose files all are in the index.

    `keys` are those of the files by number.
    """
    if WORDS not in contents.manifest.tables:
        return
    numbers = {key: number for number, key in enumerate(keys)}
    sql = "SELECT file, sum(count), sum(total) FROM held_word_sums GROUP BY file"
    sums = {f: (c or 0, total or 0) for f, c, total in connection.execute(sql).fetchall()}
    runs: dict[tuple[int, int] | None, dict[str, tuple[int, int]]] = {}
    places = {}
    for table in ("records", WORDS):
        for reference, leaf in contents.leaves.get(table, ()):
            run = runs.setdefault(reference.span, {})
            places[reference.span] = reference.key
            for file in leaf.files:
                count, total = sums.get(numbers[file.key], (0, 0))
                before = run.get(table, (0, 0))
                run[table] = before[0] + count, before[1] + total
    for span, run in runs.items():
        wanted, there = (run.get(table, (0, 0)) for table in ("records", WORDS))
        if wanted != there:
            problem = f"it has {there[0]:,} words of items, but its records have {wanted[0]:,}"
            if wanted[0] == there[0]:
                problem = f"its {there[0]:,} words of items are not those of its records"
            yield Finding("words-wrong", places[span], problem)
