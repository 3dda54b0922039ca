"""Rows of words: of captures, and of all other items.

Plain texts of captures, and those known in SQL, are cut into words in SQL, the others in Python
(functions.search.words); for plain texts, both give the same. Captures of one host lie side by
side, so its words are rows of its captures. Everything passes through scratch files, and little is
in memory.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from builder.snapshot.draft import Query
from builder.snapshot.match_keys import LISTED_CAPTURE
from builder.snapshot.word_rows import documents as cut
from builder.store.parquet.writer import RowWriter
from functions.kinds import CAPTURES, ROWS, find_kind
from functions.search import words
from functions.snapshot import layout, schema
from functions.store import engine

_AT_ONCE = 8
"""Files of records whose titles are in memory at once."""
_EACH = 6
"""Rows of a record, about."""
ALL_ROWS = f"FROM {engine.table('$words')}"
_RECORDS = engine.table("$records")
_KINDS = f"SELECT kind, count(*) FROM {_RECORDS} GROUP BY kind"
_PLAIN = (
    r"[\x00-\x{a9}\x{ab}-\x{b1}\x{b6}-\x{b8}\x{bb}\x{bf}-\x{12f}\x{131}\x{134}-\x{13e}"
    r"\x{141}-\x{148}\x{14a}-\x{17e}\x{400}-\x{481}\x{2010}-\x{2027}]*"
)
"""Texts of these characters are cut in SQL: of letters, those that `_fold` folds."""
_PATH = (
    "if(contains(url, '://'), substr(url, nullif(strpos(substr(url, strpos(url, '://') + 3), '/'), "
    "0) + strpos(url, '://') + 3), url)"
)
_CAPTURES = (
    "(SELECT position, url_host_name AS host, url_host_registered_domain AS domain, url, title, "
    f"CASE WHEN fetch_status != {words.OK} THEN '' "
    f"WHEN ends_with(url_surtkey, '{words.HOME_PATH}') THEN chr({words.HOME}) "
    f"ELSE chr({words.PAGE}) END AS rank FROM {_RECORDS} WHERE {LISTED_CAPTURE} AND $condition)"
)
# A scan without ORDER BY keeps the order of the rows, and so do windows without it.
_HOSTS = (
    f"(SELECT host, domain, if(home, chr({words.HOST}), '') AS rank, position AS first, "
    f"coalesce(lead(before) OVER (), (SELECT max(position) FROM {_CAPTURES})) AS last FROM ("
    "SELECT host, domain, home, position, lag(position) OVER () AS before, "
    "lag(host) OVER () AS other, "
    f"lag(home) OVER () AS near FROM (SELECT *, rank = chr({words.HOME}) AS home FROM {_CAPTURES}))"
    " WHERE host IS DISTINCT FROM other OR home != near OR before IS DISTINCT FROM position - 1)"
)
_PATHS = f"(SELECT {_PATH} AS path, url, position FROM {_CAPTURES})"


def _is_plain(text: str) -> str:
    return f"(strlen({text}) = length({text}) OR regexp_full_match({text}, '{_PLAIN}'))"


def _fold(text: str) -> str:
    single = {letter: plain for letter, plain in words.PLAIN.items() if len(plain) == 1}
    folded = f"translate(strip_accents(lower({text})), '{''.join(single)}', "
    folded += f"'{''.join(single.values())}')"
    for letter in words.PLAIN.keys() - single:
        folded = f"replace({folded}, '{letter}', '{words.PLAIN[letter]}')"
    return f"if(strlen({text}) = length({text}), lower({text}), {folded})"


def _list_of(text: str) -> str:
    letters = r"[0-9a-z\x{400}-\x{52f}]+"
    return f"list_slice(regexp_extract_all({_fold(text)}, '{letters}'), 1, {words.MOST})"


def _words_of(text: str) -> str:
    return f"unnest({_list_of(text)}) AS word"


_PLAIN_HOST = f"(NOT contains(host, 'xn--') AND {_is_plain('host')})"
_PLAIN_TITLE = _is_plain("title")
_PLAIN_URL = f"(NOT contains(url, '%') AND {_is_plain('url')})"
_CUT = f"if(strlen(word) > {words.LONGEST}, left(word, {words.LONGEST}), word)"
_SHORT = f"(strlen(word) <= {words.LONGEST_NUMBER} OR NOT regexp_matches(word, '[0-9]'))"
# Titles repeat, so that each is cut once. Paths hardly do.
_TITLES = f"(SELECT title, rank, position FROM {_CAPTURES} WHERE {_PLAIN_TITLE})"
_PLAIN_ROWS = (
    f"SELECT concat({_CUT}, if(rank != '' AND site = [word], chr({words.SITE}), rank)) AS word, "
    f"first AS position, last - first AS following FROM (SELECT {_words_of('host')}, rank, first, "
    f"last, {_list_of('site')} AS site FROM (SELECT *, split_part(domain, '.', 1) AS site "
    f"FROM {_HOSTS}) WHERE {_PLAIN_HOST}) "
    f"UNION ALL SELECT concat({_CUT}, rank), position, 0 FROM (SELECT unnest(found) AS word, rank, "
    f"position FROM {_TITLES} JOIN (SELECT title, list_distinct({_list_of('title')}) AS found "
    f"FROM (SELECT DISTINCT title FROM {_TITLES})) USING (title)) "
    f"UNION ALL SELECT {_CUT}, position, 0 "
    f"FROM (SELECT {_words_of('path')}, position FROM {_PATHS} WHERE {_PLAIN_URL}) WHERE {_SHORT}"
)
_OTHER_TEXTS = (
    f"SELECT 'host' AS what, host AS text, domain, rank, first, last FROM {_HOSTS} "
    f"WHERE NOT {_PLAIN_HOST} UNION ALL SELECT 'title', title, NULL, rank, position, position "
    f"FROM {_CAPTURES} WHERE NOT {_PLAIN_TITLE} "
    f"UNION ALL SELECT 'path', url, NULL, '', position, position "
    f"FROM {_CAPTURES} WHERE NOT {_PLAIN_URL}"
)
_CUTS = {"host": words.host_pieces, "title": words.pieces, "path": words.path_pieces}
_SQL_KINDS = tuple(row for row in ROWS if row.sql_texts)
_IN_SQL = CAPTURES.union(row.name for row in _SQL_KINDS)
_DOCUMENTS = (
    f"SELECT kind, identifier, position, document FROM {_RECORDS} "
    f"WHERE kind NOT IN {engine.texts(sorted(_IN_SQL))} AND NOT deleted AND $condition"
)
_PLAIN_DOCUMENTS = (
    f"SELECT concat({_CUT}, chr({words.PAGE})) AS word, position, following FROM "
    f"({cut.plain_rows(_words_of, _is_plain)}) WHERE word IS NOT NULL"
)
_ALL_DOCUMENTS = (
    "SELECT kind, identifier, position, coalesce(r.document, d.document) "
    f"FROM ({_DOCUMENTS}) r LEFT JOIN {engine.table('$documents')} d USING (identifier)"
)


@dataclass(frozen=True, slots=True)
class WordRows:
    """Rows of the table, unsorted: a query, about how many rows it has, and its scratch files."""

    query: Query
    count: int
    paths: Sequence[Path]
    united: bool = False

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
    kinds = dict(connection.execute(_KINDS, {"records": list(records)}).fetchall())
    has_captures = not CAPTURES.isdisjoint(kinds)
    others = folder / "cut-others.parquet"
    writer = RowWriter(others, schema.TABLES[layout.WORDS])
    for words_row in _other_rows(connection, kinds.keys(), records, documents, condition):
        writer.append(words_row)
    own: dict[Path, int] = {}
    for row in (row for row in _SQL_KINDS if row.name in kinds):
        texts, path = folder / "cut-texts.parquet", folder / f"cut-{row.name}.parquet"
        cut.read_texts(connection, row, records, condition, texts)
        for words_row in cut.other_rows(connection, row, records, texts, _is_plain):
            writer.append(words_row)
        target = f"{engine.quote(str(path))} (FORMAT parquet, COMPRESSION lz4)"
        values = {"texts": [str(texts)]}
        ((own[path],),) = connection.execute(
            f"COPY ({_PLAIN_DOCUMENTS}) TO {target}", values
        ).fetchall()
        texts.unlink()
    writer.close()
    paths = [others, *own]
    count = _EACH * sum(kinds.values()) + sum(own.values())
    plain = _PLAIN_ROWS.replace("$condition", condition)
    if has_captures and len(records) <= _AT_ONCE:
        both = {"records": list(records), "words": [str(path) for path in paths]}
        return WordRows((f"{plain} UNION ALL {ALL_ROWS}", both), count, paths, united=True)
    for start in range(0, len(records) if has_captures else 0, _AT_ONCE):
        paths.append(folder / f"cut-{start}.parquet")
        target = f"{engine.quote(str(paths[-1]))} (FORMAT parquet, COMPRESSION lz4)"
        batch = {"records": list(records[start : start + _AT_ONCE])}
        connection.execute(f"COPY ({plain}) TO {target}", batch)
    return WordRows((ALL_ROWS, {"words": [str(path) for path in paths]}), count, paths)


def _other_rows(
    connection: engine.Connection,
    kinds: Set[str],
    records: Sequence[str],
    documents: Sequence[str],
    condition: str,
) -> Iterator[tuple[str, int, int]]:
    """Yield the rows of texts of captures that are not plain, and of items not known in SQL."""
    values = {"records": list(records)}
    if not CAPTURES.isdisjoint(kinds):
        texts = engine.batches(connection, _OTHER_TEXTS.replace("$condition", condition), values)
        for what, text, domain, rank, first, last in chain.from_iterable(texts):
            for word in {*words.table_words(_CUTS[what](text))}:
                is_site = domain and rank and word == words.site_word(domain)
                yield word + (chr(words.SITE) if is_site else rank), first, last - first
    if kinds - _IN_SQL:
        values |= {"documents": list(documents)} if documents else {}
        sql = (_ALL_DOCUMENTS if documents else _DOCUMENTS).replace("$condition", condition)
        rows = engine.batches(connection, sql, values)
        for kind, identifier, position, document in chain.from_iterable(rows):
            row = find_kind(kind)
            yield from cut.word_rows(row.list_texts(row.find(document), identifier), position)
