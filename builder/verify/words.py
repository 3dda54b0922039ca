"""Checks of the table of words: each run must have exactly the words of its records.

The words of a file of records are cut again, and summed up as hashes of word and position. So are
the rows of the files of words (builder.verify.data_files). The sums of a run must agree.
"""

from collections.abc import Iterator

from builder.snapshot.words import TABLE
from builder.store.findings import Finding
from builder.verify.inventory import SnapshotContents
from functions.database import engine


def word_findings(
    connection: engine.Connection, keys: list[str], held: SnapshotContents
) -> Iterator[Finding]:
    """Yield findings on the words of a snapshot whose files all are in the index.

    `keys` are those of the files by number.
    """
    if TABLE not in held.manifest.tables:
        return
    numbers = {key: number for number, key in enumerate(keys)}
    rows = connection.execute("SELECT file, count, total FROM held_word_sums").fetchall()
    sums = {file: (count, total or 0) for file, count, total in rows}
    found: dict[tuple[int, int] | None, dict[str, tuple[int, int]]] = {}
    places = {}
    for table in ("records", TABLE):
        for reference, leaf in held.leaves.get(table, ()):
            run = found.setdefault(reference.span, {})
            places[reference.span] = reference.key
            for file in leaf.files:
                count, total = sums.get(numbers[file.key], (0, 0))
                before = run.get(table, (0, 0))
                run[table] = before[0] + count, before[1] + total
    for span, run in found.items():
        wanted, there = (run.get(table, (0, 0)) for table in ("records", TABLE))
        if wanted != there:
            problem = f"it has {there[0]:,} words of items, but its records have {wanted[0]:,}"
            if wanted[0] == there[0]:
                problem = f"its {there[0]:,} words of items are not those of its records"
            yield Finding("words-wrong", places[span], problem)
