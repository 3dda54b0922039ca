"""Rows of the words of items whose texts are known in SQL (functions.kinds).

DuckDB reads the texts from the documents and cuts the plain ones, with the expressions of
builder.snapshot.word_rows.cut. Neighbours share all of their identifiers but the ends, so words of
the rest are rows of many positions. Python cuts the other texts (functions.search.words).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from functions.kinds import ItemKind
from functions.search import words
from functions.store import engine

_RECORDS, _TEXTS = engine.table("$records"), engine.table("$texts")
_LONG = 2 * words.MOST
"""From so many characters on, a text may have words that do not count."""
_WHOLE = f"(length(identifier) >= {_LONG} OR strlen(identifier) != length(identifier))"
_STEM = r"regexp_extract(identifier, '^.*:')"
_STEMS = (
    "(SELECT stem, position AS first, coalesce(lead(before) OVER (), "
    f"(SELECT max(position) FROM {_TEXTS})) AS last FROM ("
    "SELECT stem, position, lag(position) OVER () AS before, lag(stem) OVER () AS other "
    f"FROM {_TEXTS}) WHERE stem IS DISTINCT FROM other OR before IS DISTINCT FROM position - 1)"
)
_EVERY = f"(SELECT position, unnest(texts) AS text FROM {_TEXTS})"
_ODD = (
    "(starts_with(text, '{') OR starts_with(text, '[') OR contains(text, '<') "
    "OR contains(text, '&'))"
)
"""It may be JSON of no text, which has no words, or may have markup, which is removed first."""
_OTHERS = f"SELECT text, position FROM {_EVERY} WHERE NOT $plain AND NOT {_ODD}"
_ODD_DOCUMENTS = (
    f"SELECT identifier, document, position FROM {_RECORDS} "
    f"WHERE position IN (SELECT position FROM {_EVERY} WHERE {_ODD})"
)


def read_texts(
    connection: engine.Connection, row: ItemKind, records: Sequence[str], condition: str, path: Path
) -> None:
    """Write the texts of a kind's items in files of records to `path`.

    `condition` chooses records. The name is the end of the identifier, unless characters of it are
    escaped there.
    """
    shape, texts, name = row.sql_texts or ("", "", "")
    sql = f"""
    COPY (
        SELECT position, if({_WHOLE}, NULL, {_STEM}) AS stem, list_concat({texts},
            [if({_WHOLE}, identifier, substr(identifier, length({_STEM}) + 1))],
            if(identifier = {name} OR NOT {_WHOLE} AND ends_with(identifier, concat(':', {name})),
                [], [{name}])
        ) AS texts
        FROM (SELECT position, identifier, TRY(from_json(document, '{shape}')) AS read
              FROM {_RECORDS} WHERE kind = '{row.name}' AND NOT deleted AND {condition})
    ) TO {engine.quote(str(path))} (FORMAT parquet, COMPRESSION lz4)
    """
    connection.execute(sql, {"records": list(records)})


def plain_rows(words_of: Callable[[str], str], plain: Callable[[str], str]) -> str:
    """Return the query of the rows of plain texts in the files $texts.

    `words_of` gives the expression of the words of a text, `plain` that of whether it is plain.
    """
    return (
        f"SELECT {words_of('stem')}, first AS position, last - first AS following FROM {_STEMS} "
        "UNION ALL "
        f"SELECT {words_of('text')}, position, 0 FROM {_EVERY} WHERE {plain('text')} AND NOT {_ODD}"
    )


def other_rows(
    connection: engine.Connection,
    row: ItemKind,
    records: Sequence[str],
    texts: Path,
    plain: Callable[[str], str],
) -> Iterator[tuple[str, int, int]]:
    """Yield the rows of the other texts: word, position and 0. Some may come twice."""
    values = {"texts": [str(texts)]}
    sql = _OTHERS.replace("$plain", plain("text"))
    for text, position in chain.from_iterable(engine.batches(connection, sql, values)):
        yield from word_rows([text], position)
    both: Mapping[str, Sequence[str]] = {**values, "records": list(records)}
    documents = engine.batches(connection, _ODD_DOCUMENTS, both)
    for identifier, document, position in chain.from_iterable(documents):
        found_texts = row.list_texts(row.find(document), identifier)
        yield from word_rows(found_texts, position)


def word_rows(texts: Sequence[str], position: int) -> Iterator[tuple[str, int, int]]:
    """Yield a row for each word of the texts of an item."""
    for word in {w for text in texts for w in words.table_words(words.pieces(text))}:
        yield words.with_rank(word, words.PAGE), position, 0
