"""The table of words: what a full-text search finds.

Its runs are those of the records, and it is made of their files: a run of records that is written
anew gets its words anew. So no word outlives the last version that has it. A row says that all
items at `following` + 1 positions from `position` on have the word.

Plain texts are cut into words in SQL, the others in Python (functions.search.words); for plain
texts, both give the same. Captures of one host lie side by side, so its words are rows of its
captures. Everything passes through scratch files, and little is in memory.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from builder.parquet.writer import RowWriter
from builder.snapshot.compaction import leaf_runs
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import fetch_groups, rows_of
from functions.database import engine
from functions.search import fields, words
from functions.snapshot import layout, schema
from functions.snapshot.manifest import DataFile, Key, Span

TABLE = layout.WORDS

_AT_ONCE = 8
"""Files of records whose titles are in memory at once."""
_EACH = 6
"""Rows of a record, about."""
# Columns beside the key, and long numbers, make the sort much slower.
_NARROW = (
    "SELECT word, position::UINTEGER AS position, following::UINTEGER AS following FROM ($rows)"
)
_ALL_ROWS = f"FROM {engine.table('$words')}"

_RECORDS = engine.table("$records")
_PLAIN = (
    r"[\x00-\x7f\x{a0}\x{ab}\x{b0}\x{b7}\x{bb}\x{c0}-\x{c5}\x{c7}-\x{cf}\x{d1}-\x{d6}\x{d9}-\x{dd}"
    r"\x{e0}-\x{e5}\x{e7}-\x{ef}\x{f1}-\x{f6}\x{f9}-\x{fd}\x{ff}-\x{10f}\x{112}-\x{125}"
    r"\x{128}-\x{12f}\x{134}-\x{137}\x{139}-\x{13e}\x{143}-\x{148}\x{14c}-\x{151}\x{154}-\x{165}"
    r"\x{168}-\x{17e}\x{400}-\x{481}\x{2013}\x{2014}\x{2018}-\x{201f}]*"
)
"""Texts of these characters are cut in SQL: of letters, those that lower and strip_accents fold."""
_PATH = (
    "if(contains(url, '://'), substr(url, nullif(strpos(substr(url, strpos(url, '://') + 3), '/'), "
    "0) + strpos(url, '://') + 3), url)"
)
_CAPTURES = (
    f"(SELECT position, url_host_name AS host, url, title FROM {_RECORDS} "
    "WHERE kind = 'capture' AND NOT deleted AND $condition)"
)
# A scan without ORDER BY keeps the order of the rows, and so do windows without it.
_HOSTS = (
    "(SELECT host, position AS first, coalesce(lead(before) OVER (), "
    f"(SELECT max(position) FROM {_CAPTURES})) AS last FROM ("
    "SELECT host, position, lag(position) OVER () AS before, lag(host) OVER () AS other "
    f"FROM {_CAPTURES}) WHERE host IS DISTINCT FROM other OR before IS DISTINCT FROM position - 1)"
)
_PATHS = f"(SELECT {_PATH} AS path, url, position FROM {_CAPTURES})"


def _is_plain(text: str) -> str:
    return f"(strlen({text}) = length({text}) OR regexp_full_match({text}, '{_PLAIN}'))"


def _list_of(text: str) -> str:
    folded = f"if(strlen({text}) = length({text}), lower({text}), strip_accents(lower({text})))"
    letters = r"[0-9a-z\x{400}-\x{52f}]+"
    return f"list_slice(regexp_extract_all({folded}, '{letters}'), 1, {words.MOST})"


def _words_of(text: str) -> str:
    return f"unnest({_list_of(text)}) AS word"


_PLAIN_HOST = f"(NOT contains(host, 'xn--') AND {_is_plain('host')})"
_PLAIN_TITLE = _is_plain("title")
_PLAIN_URL = f"(NOT contains(url, '%') AND {_is_plain('url')})"
_CUT = f"if(strlen(word) > {words.LONGEST}, left(word, {words.LONGEST}), word) AS word"
_SHORT = f"(strlen(word) <= {words.LONGEST_NUMBER} OR NOT regexp_matches(word, '[0-9]'))"
# Titles repeat, so that each is cut once. Paths hardly do.
_TITLES = f"(SELECT title, position FROM {_CAPTURES} WHERE {_PLAIN_TITLE})"
_PLAIN_ROWS = (
    f"SELECT {_CUT}, first AS position, last - first AS following "
    f"FROM (SELECT {_words_of('host')}, first, last FROM {_HOSTS} WHERE {_PLAIN_HOST}) "
    f"UNION ALL SELECT {_CUT}, position, 0 FROM (SELECT unnest(found) AS word, position "
    f"FROM {_TITLES} JOIN (SELECT title, {_list_of('title')} AS found "
    f"FROM (SELECT DISTINCT title FROM {_TITLES})) USING (title)) "
    f"UNION ALL SELECT {_CUT}, position, 0 "
    f"FROM (SELECT {_words_of('path')}, position FROM {_PATHS} WHERE {_PLAIN_URL}) WHERE {_SHORT}"
)
_OTHER_TEXTS = (
    f"SELECT 'host' AS what, host AS text, first, last FROM {_HOSTS} WHERE NOT {_PLAIN_HOST} "
    f"UNION ALL SELECT 'title', title, position, position FROM {_CAPTURES} "
    f"WHERE NOT {_PLAIN_TITLE} UNION ALL SELECT 'path', url, position, position FROM {_CAPTURES} "
    f"WHERE NOT {_PLAIN_URL}"
)
_CUTS = {"host": words.host_pieces, "title": words.pieces, "path": words.path_pieces}
_DOCUMENTS = (
    f"SELECT kind, identifier, position, document FROM {_RECORDS} "
    "WHERE kind != 'capture' AND NOT deleted AND $condition"
)
_ALL_DOCUMENTS = (
    "SELECT kind, identifier, position, coalesce(r.document, d.document) "
    f"FROM ({_DOCUMENTS}) r LEFT JOIN {engine.table('$documents')} d USING (identifier)"
)
_HOLDING = engine.texts(sorted(schema.DOCUMENTED | {"capture"}))
_ELSEWHERE = f"SELECT identifier FROM {_RECORDS} WHERE kind NOT IN {_HOLDING} AND NOT deleted"
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
    f"SELECT 1 {_ALL_ROWS} WHERE word BETWEEN $first AND $last "
    "AND (word > $first OR position + following >= $place) "
    "AND (word < $last OR position < $limit) LIMIT 1"
)


def complete(connection: engine.Connection, draft: Draft) -> None:
    """Make the table of a store that has none yet, if it is to have one."""
    if draft.tables.get(TABLE) == () and draft.tables.get("records"):
        renew(connection, draft, ())


def renew(connection: engine.Connection, draft: Draft, spans: Collection[Span]) -> None:
    """Make the words of the runs of records with these spans; all, if the table has no rows."""
    earlier = leaf_runs(draft.tables.get(TABLE, ()))
    found = {run.span.first: run.leaves for run in earlier if not _is_within(run.span, spans)}
    for run in leaf_runs(draft.tables.get("records", ())):
        if not earlier or run.span in spans:
            records = draft.paths(draft.files(run.leaves))
            with engine.reading("the words"):
                documents = _find_documents(connection, draft, records)
                rows = cut_words(connection, draft.folder, records, documents)
                united = len(rows.paths) == 1
                sql = (
                    _NARROW.replace("$rows", rows.query[0])
                    if run.span.last >> 32 == 0
                    else rows.query[0]
                )
                sorts = draft.sort(TABLE, (sql, rows.query[1]), "ALL", rows.count, united)
                files = draft.write(TABLE, sorts)
            rows.remove()
            found[run.span.first] = draft.leaves(files, run.span)
    draft.tables[TABLE] = tuple(leaf for _, leaves in sorted(found.items()) for leaf in leaves)


def _find_documents(
    connection: engine.Connection, draft: Draft, records: Sequence[str]
) -> list[str]:
    """Return files with the documents of those records that do not hold them."""
    return fetch_groups(connection, draft, "documents", (_ELSEWHERE, {"records": list(records)}))


def _is_within(span: Span, spans: Collection[Span]) -> bool:
    return any(s.first <= span.first and span.last <= s.last for s in spans)


@dataclass(frozen=True, slots=True)
class WordRows:
    """Rows of the table, unsorted: a query, about how many rows it has, and its scratch files."""

    query: Query
    count: int
    paths: Sequence[Path]

    def remove(self) -> None:
        """Remove the scratch files."""
        for path in self.paths:
            path.unlink()


def cut_words(
    connection: engine.Connection,
    folder: Path,
    records: Sequence[str],
    documents: Sequence[str] = (),
    condition: str = "true",
) -> WordRows:
    """Return the words of the records that meet a condition; some rows may overlap.

    `records` are local files of records, in the order of positions, and `documents` those of the
    table of documents. `folder` gets scratch files.
    """
    others = folder / "cut-others.parquet"
    writer = RowWriter(others, schema.TABLES[TABLE])
    for row in _other_rows(connection, records, documents, condition):
        writer.append(row)
    writer.close()
    paths = [others]
    plain = _with(_PLAIN_ROWS, condition)
    values = {"records": list(records), "words": [str(others)]}
    for number, start in enumerate(range(0, len(records), _AT_ONCE)):
        if len(records) > _AT_ONCE:
            paths.append(folder / f"cut-{number}.parquet")
            target = f"{engine.quote(str(paths[-1]))} (FORMAT parquet, COMPRESSION lz4)"
            some = {"records": list(records[start : start + _AT_ONCE])}
            connection.execute(f"COPY ({plain}) TO {target}", some)
    count = _EACH * rows_of(connection, engine.table(f"[{', '.join(map(engine.quote, records))}]"))
    if len(paths) == 1:
        return WordRows((f"{plain} UNION ALL {_ALL_ROWS}", values), count, paths)
    return WordRows((_ALL_ROWS, {"words": [str(path) for path in paths]}), count, paths)


def _other_rows(
    connection: engine.Connection, records: Sequence[str], documents: Sequence[str], condition: str
) -> Iterator[tuple[str, int, int]]:
    """Yield the rows of texts that are cut in Python."""
    values = {"records": list(records)}
    texts = engine.batches(connection, _with(_OTHER_TEXTS, condition), values)
    for what, text, first, last in chain.from_iterable(texts):
        for word in {*words.table_words(_CUTS[what](text))}:
            yield word, first, last - first
    sql = _with(_ALL_DOCUMENTS if documents else _DOCUMENTS, condition)
    if documents:
        values["documents"] = list(documents)
    found = engine.batches(connection, sql, values)
    for kind, identifier, position, document in chain.from_iterable(found):
        read = fields.read_document(kind, document)
        texts_ = fields.document_texts(kind, identifier, read)
        for word in {w for text in texts_ for w in words.table_words(words.pieces(text))}:
            yield word, position, 0


def _with(sql: str, condition: str) -> str:
    return sql.replace("$condition", condition)


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
    found: dict[str, DataFile] = {}
    for run in leaf_runs(draft.tables[TABLE]):
        groups = [(g, file) for file in draft.files(run.leaves) for g in file.groups]
        ends = [group.first for group, _ in groups[1:]] + [(words.BEHIND, 0)]
        for (group, file), end in zip(groups, ends, strict=True):
            (first, place), (last, limit) = _as_bound(group.first), _as_bound(end)
            values = {"first": first, "place": place, "last": last, "limit": limit}
            if file.key not in found:
                met = connection.execute(_MEETS, {"words": [str(path)], **values}).fetchall()
                found |= {file.key: file} if met else {}
    path.unlink()
    return [*found.values()]


def _as_bound(key: Key) -> tuple[str, int]:
    assert isinstance(key, tuple)
    return key
