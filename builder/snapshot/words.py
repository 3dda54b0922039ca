"""The table of words: what a full-text search finds.

Its runs are those of the records, and it is made of their files: a run of records that is written
anew gets its words anew. So no word outlives the last version that has it. A row says that all
items at `following` + 1 positions from `position` on have the word.

The rows come from builder.snapshot.word_rows.
"""

from collections.abc import Collection, Sequence

from builder.snapshot.compaction import LeafRun, leaf_runs
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import fetch_groups
from builder.snapshot.word_rows.cut import ALL_ROWS, cut_words
from functions.kinds import WHOLE
from functions.search import words
from functions.snapshot import layout
from functions.snapshot.manifest import DataFile, Key, Span
from functions.store import engine

TABLE = layout.WORDS

# Columns beside the key, and long numbers, make the sort much slower.
_NARROW = (
    "SELECT word, position::UINTEGER AS position, following::UINTEGER AS following FROM ($rows)"
)

_HOLDING = engine.texts(sorted(WHOLE))
_ELSEWHERE = (
    f"SELECT identifier FROM {engine.table('$records')} "
    f"WHERE kind NOT IN {_HOLDING} AND NOT deleted"
)
_WITHDRAWN = "SELECT position FROM item_versions"
# Of a row with withdrawn positions, what lies between these becomes rows of their own.
_KEPT = (
    f"WITH gone AS (SELECT DISTINCT position AS place FROM ({_WITHDRAWN})), "
    f"rows AS (FROM {engine.table('$files')}), hits AS (SELECT * FROM rows JOIN gone "
    "ON place >= position AND place <= position + following), "
    "cuts AS (SELECT word, place, coalesce(lag(place) OVER (PARTITION BY word, position "
    "ORDER BY place) + 1, position) AS start FROM hits) "
    "SELECT * FROM rows ANTI JOIN hits USING (word, position) "
    "UNION ALL SELECT word, start, place - 1 - start FROM cuts WHERE place > start "
    "UNION ALL SELECT word, max(place) + 1, position + following - max(place) - 1 FROM hits "
    "GROUP BY word, position, following HAVING max(place) < position + following ORDER BY ALL"
)

# The last row of a row group may reach beyond its last bound, up to the next row group.
_MEETS = (
    f"SELECT 1 {ALL_ROWS} WHERE word BETWEEN $first AND $last "
    "AND (word > $first OR position + following >= $place) "
    "AND (word < $last OR position < $limit) LIMIT 1"
)


def complete(connection: engine.Connection, draft: Draft) -> None:
    """Make the table of a store that has none yet, if it is to have one."""
    if draft.tables.get(TABLE) == () and draft.tables.get("records"):
        renew(connection, draft, ())


def renew(connection: engine.Connection, draft: Draft, spans: Collection[Span]) -> None:
    """Make the words of the runs of records with these spans; all, if the table has no rows."""

    def write(run: LeafRun, records: Sequence[str]) -> Sequence[DataFile]:
        with engine.reading("the words"):
            documents = _find_documents(connection, draft, records)
            rows = cut_words(connection, draft.folder, records, documents)
            sql = (
                _NARROW.replace("$rows", rows.query[0])
                if run.span.last >> 32 == 0
                else rows.query[0]
            )
            sorts = draft.sort(TABLE, (sql, rows.query[1]), "ALL", rows.count, rows.united)
            files = draft.write(TABLE, sorts)
        rows.remove()
        return files

    draft.renew(TABLE, spans if draft.tables.get(TABLE) else None, write)


def _find_documents(
    connection: engine.Connection, draft: Draft, records: Sequence[str]
) -> list[str]:
    """Return files with the documents of those records that do not hold them."""
    return fetch_groups(connection, draft, "documents", (_ELSEWHERE, {"records": list(records)}))


def scrub(connection: engine.Connection, draft: Draft) -> None:
    """Remove the words of the positions in `item_versions` from the files of the draft.

    The records of these versions must still be in the draft.
    """
    if not draft.tables.get(TABLE):
        return
    with engine.reading("the last snapshot"):
        homes = fetch_groups(connection, draft, "records", (_WITHDRAWN, {}))
        if not homes:
            return
        documents = _find_documents(connection, draft, homes)
        there = f"position IN ({_WITHDRAWN})"
        rows = cut_words(connection, draft.folder, homes, documents, there)
        files = _find_files(connection, draft, rows.query)
    rows.remove()
    changed = {}
    for file in files:
        changed[file.key] = draft.write(TABLE, [(_KEPT, {"files": draft.paths([file])})])
    draft.substitute(TABLE, changed)


def _find_files(connection: engine.Connection, draft: Draft, rows: Query) -> list[DataFile]:
    """Return the files of the table that can have the rows of a query."""
    path = draft.folder / "cut-sorted.parquet"
    target = f"{engine.quote(str(path))} (FORMAT parquet, ROW_GROUP_SIZE 4096)"
    connection.execute(f"COPY (FROM ({rows[0]}) ORDER BY word, position) TO {target}", rows[1])
    files: dict[str, DataFile] = {}
    for run in leaf_runs(draft.tables[TABLE]):
        groups = [(g, file) for file in draft.files(run.leaves) for g in file.groups]
        ends = [group.first for group, _ in groups[1:]] + [(words.BEHIND, 0)]
        for (group, file), end in zip(groups, ends, strict=True):
            (first, place), (last, limit) = _as_bound(group.first), _as_bound(end)
            values = {"first": first, "place": place, "last": last, "limit": limit}
            if file.key not in files:
                met = connection.execute(_MEETS, {"words": [str(path)], **values}).fetchall()
                files |= {file.key: file} if met else {}
    path.unlink()
    return [*files.values()]


def _as_bound(key: Key) -> tuple[str, int]:
    assert isinstance(key, tuple)
    return key
