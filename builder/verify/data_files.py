"""Index of data files: reads each file of a store once, into a database on disk.

Each file is checked against its leaf. Only the columns that the checks of whole snapshots need are
kept. Memory use is limited by the database's setting; disk use is about the size of the data files.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from builder.kinds import KINDS
from builder.snapshot import lookup, match_keys
from builder.snapshot.consistency import DISTINCT
from builder.snapshot.word_rows.cut import cut_words
from builder.store.durable import read_chunks
from builder.store.findings import Finding
from builder.verify.words import SUMS, sum_cut, sum_rows
from functions.kinds import DOCUMENTED
from functions.snapshot import figure_tables, layout, oai_name, schema
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.manifest import DataFile
from functions.snapshot.store import Reader
from functions.store import columns, engine

_FILE = engine.table("$path")
_ROW = f"hash({', '.join(schema.names('records'))})"
_LINEAGE = (
    "list_distinct(flatten(list_transform({sets}, lambda s: list_transform("
    "range(1, len(string_split(s, ':')) + 1), "
    "lambda n: array_to_string(string_split(s, ':')[:n], ':')))))"
)
_LISTINGS = _LINEAGE.format(sets="list_concat(sets, left_sets)")
_DEPARTED = (
    "CASE WHEN len(left_sets) = 0 THEN [] ELSE list_filter("
    f"{_LINEAGE.format(sets='left_sets')}, lambda s: NOT coalesce(list_bool_or("
    "list_transform(sets, lambda o: o = s OR starts_with(o, s || ':'))), false)) END"
)
_TABLES = {
    # table: the columns kept of it, and the expressions that read them from its files
    "records": (
        "part INTEGER, position BIGINT, sequence INTEGER, kind VARCHAR, "
        "deleted BOOLEAN, key BIGINT, name UBIGINT, listings VARCHAR[], departed VARCHAR[], "
        "content UBIGINT, single UBIGINT, host VARCHAR, domain VARCHAR, media_type VARCHAR, "
        "status SMALLINT, month VARCHAR, bytes BIGINT",
        "file_row_number // $group, position, sequence, kind, deleted, "
        f"{oai_name.LOOKUP_KEY}, hash(identifier), {_LISTINGS}, {_DEPARTED}, {_ROW}, "
        f"hash({columns.join_row(schema.SINGLE)}), "
        "url_host_name, url_host_registered_domain, "
        "coalesce(content_mime_type, content_mime_detected, ''), fetch_status, "
        "coalesce(left(fetch_date, 7), ''), coalesce(content_length, 0)",
    ),
    "copies": (
        "listing VARCHAR, position BIGINT, content UBIGINT",
        f"listing, position, {_ROW}",
    ),
    **{
        table: (
            ", ".join(f"{column.name} {column.type}" for column in schema.TABLES[table]),
            ", ".join(schema.names(table)),
        )
        for table in ("sets", *sorted(layout.TIES), *figure_tables.TABLES)
    },
    "lookup": ("key BIGINT, position BIGINT", "key, position"),
    "dead": ("position BIGINT", "position"),
    layout.SINGLES: ("position BIGINT, single UBIGINT", "position, hash(text)"),
    "urls": ("mark UBIGINT, position BIGINT", "hash(surt, stamp), position"),
}
# From the same files: the keys that originals should have, and the keys that resolve revisits.
_OWED = (
    "CREATE TABLE held_owed (file INTEGER, key BIGINT, url INTEGER, moment BIGINT, position BIGINT)"
)
_OWING = (
    "INSERT INTO held_owed SELECT $number, key, url, moment, position FROM "
    f"({match_keys.original_keys(f'(FROM {_FILE} WHERE {match_keys.ORIGINAL})')})"
)
_REFERRING = (
    "CREATE TABLE held_referring (file INTEGER, position BIGINT, original_name UBIGINT, "
    "date_key BIGINT, digest_key BIGINT, url_hash INTEGER, moment BIGINT)"
)
_FINDABLE = "CREATE TABLE held_findable (file INTEGER, mark UBIGINT, position BIGINT)"
_FOUND_BY = (
    "INSERT INTO held_findable "
    f"SELECT $number, hash({lookup.URL_SURT}, {lookup.URL_STAMP}), position FROM {_FILE} "
    f"WHERE {match_keys.LISTED_CAPTURE}"
)
_REVISITS = f"(FROM {_FILE} WHERE {match_keys.REVISIT})"
_REFERS = (
    "INSERT INTO held_referring SELECT $number, position, "
    "if(refers_to IS NULL, NULL, hash(refers_to)), date_key, digest_key, url_hash, moment "
    f"FROM ({match_keys.wanted_keys(_REVISITS, 'position, refers_to')})"
)
_FIELDS = " OR ".join(f"{column.name} IS NOT NULL" for column in schema.CONTENT)
_FULL = (
    f"SELECT count(*), min(position) FROM {_FILE} "
    f"WHERE (deleted AND ({_FIELDS})) OR (NOT deleted AND reason IS NOT NULL)"
)
_DOCUMENTED = engine.texts(sorted(DOCUMENTED))
_UNREADABLE = (
    f"SELECT count(*), min(position) FROM {_FILE} "
    f"WHERE (kind IN {_DOCUMENTED} AND NOT deleted) != coalesce(json_valid(document), false)"
)
_WRONG = (
    (
        "tombstone-full",
        _FULL,
        "tombstones with metadata, or records with the reason of a withdrawal",
    ),
    (
        "template-wrong",
        _UNREADABLE,
        "templates or datasets without content, or other items with content",
    ),
)
_HELD_PREFIXES = (
    "CREATE TABLE held_prefixes (file INTEGER, handled BOOLEAN, prefix VARCHAR, position BIGINT)"
)
# Identifiers without the local part, or without a template's handle: a sound file has one prefix.
_HANDLES, _FOREIGN = (
    engine.texts(name for kind in KINDS if kind.identifiers == form for name in kind.names)
    for form in ("handle", "foreign")
)
_HANDLED = r"^oai:([A-Za-z][A-Za-z0-9-]*([.][A-Za-z][A-Za-z0-9-]*)+:)?"
_PREFIXES = (
    f"INSERT INTO held_prefixes SELECT $number, kind IN {_HANDLES} AS handled, if(handled, "
    f"regexp_extract(identifier, '{_HANDLED}'), regexp_replace(identifier, '[^:]*$', '')) "
    f"AS prefix, min(position) FROM {_FILE} WHERE kind NOT IN {_FOREIGN} GROUP BY ALL"
)
_MAGIC = b"PAR1"
_METADATA = """
SELECT row_group_id, row_group_num_rows, total_compressed_size, data_page_offset,
    dictionary_page_offset
FROM parquet_metadata($path)
"""


class DataFileIndex:
    """Index of the rows of data files, in tables `held_<table>`; `file` is the file's number."""

    def __init__(self, connection: engine.Connection, scratch: Path) -> None:
        self.connection = connection
        self._path = scratch / "file.parquet"
        self.keys: list[str] = []
        self.broken: set[str] = set()
        for table, (types, _) in _TABLES.items():
            connection.execute(f"CREATE TABLE held_{table} (file INTEGER, {types})")
        for sql in (_HELD_PREFIXES, _OWED, _REFERRING, _FINDABLE, SUMS):
            connection.execute(sql)

    def add(
        self,
        store: Reader,
        table: str,
        file: DataFile,
        advance: Callable[[int], None],
        *,
        keep: bool = True,
    ) -> list[Finding]:
        """Read a whole data file and return its faults; with `keep`, also index its rows.

        `advance` is called with the number of bytes read.
        """
        try:
            if (foreign := self._fetch(store, file, advance)) is not None:
                findings = [Finding("file-digest", file.key, foreign)]
            else:
                findings = list(self._examine(table, file, keep=keep))
        except MissingObject:
            findings = [Finding("file-missing", file.key, "a kept snapshot names it")]
        except DamagedStore as error:
            findings = [Finding("file-unreadable", file.key, str(error))]
        finally:
            self._path.unlink(missing_ok=True)
        if findings:
            self.broken.add(file.key)
        return findings

    def _fetch(self, store: Reader, file: DataFile, advance: Callable[[int], None]) -> str | None:
        """Copy the file to local disk; return the fault of its bytes, or None."""
        digest, size = hashlib.sha256(), 0
        with store.open(file.key) as source, self._path.open("wb") as out:
            for chunk in read_chunks(source, file.key):
                digest.update(chunk)
                out.write(chunk)
                size += len(chunk)
                advance(len(chunk))
        is_same = digest.hexdigest()[:32] == layout.digest_of(file.key)
        return None if is_same else f"its {size:,} bytes do not match its name"

    def _examine(self, table: str, file: DataFile, *, keep: bool) -> Iterator[Finding]:
        with engine.reading(file.key):
            for problem in (*self._footer(file), *self._bounds(table, file)):
                yield Finding("file-wrong", file.key, problem)
            if (unsorted := self._order(table)) is not None:
                yield Finding("rows-unsorted", file.key, unsorted)
            if table in {"records", "copies"}:
                for code, sql, what in _WRONG:
                    ((count, first),) = self._rows(sql)
                    if count:
                        problem = f"{count:,} rows, the first at position {first}, are {what}"
                        yield Finding(code, file.key, problem)
            if keep and table == layout.WORDS:
                self.keys.append(file.key)
                sum_rows(self.connection, len(self.keys) - 1, self._path)
            if keep and table in _TABLES:
                number, read = len(self.keys), _TABLES[table][1]
                self.keys.append(file.key)
                values: dict[str, Any] = {"path": str(self._path), "number": number}
                if table == "records":
                    for sql in (_PREFIXES, _OWING, _REFERS, _FOUND_BY):
                        self.connection.execute(sql, values)
                    values["group"] = layout.GROUP_ROWS
                rows = match_keys.stored_rows(_FILE) if table in layout.TIES else _FILE
                self.connection.execute(
                    f"INSERT INTO held_{table} SELECT $number, {read} FROM {rows}", values
                )
                if table == "records":
                    cut = cut_words(self.connection, self._path.parent, [str(self._path)])
                    sum_cut(self.connection, number, *cut.query)
                    cut.remove()

    def _footer(self, file: DataFile) -> Iterator[str]:
        with self._path.open("rb") as source:
            source.seek(max(0, file.bytes - 8))
            length = int.from_bytes(source.read(4), "little") + 8
        if self._path.stat().st_size != file.bytes:
            yield f"it has {self._path.stat().st_size:,} bytes, but {file.bytes:,} in its leaf"
        elif length != file.footer:
            yield f"its footer has {length:,} bytes, but {file.footer:,} in its leaf"
        actual = self._groups()
        declared = [(group.rows, group.offset, group.length) for group in file.groups]
        if actual != declared:
            shown = actual if len(actual) < 4 else f"{actual[:3]} and {len(actual) - 3} more"
            yield f"its row groups (rows, offset, bytes) are {shown}, but {declared} in its leaf"
        with self._path.open("rb") as source:
            for group in file.groups:
                source.seek(sum(group.byte_range) - 8)
                if group.tail and source.read(8) != (group.tail - 8).to_bytes(4, "little") + _MAGIC:
                    yield f"no footer of {group.tail:,} bytes ends at {sum(group.byte_range):,}"

    def _groups(self) -> list[tuple[int, int, int]]:
        """Return the number of rows, the offset and the length in bytes of each row group.

        Computed in Python: a file has few row groups, and planning the same in SQL takes longer.
        """
        spans: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for number, rows, size, page, words in self._rows(_METADATA):
            start = min(page, words or page)
            spans.setdefault((number, rows), []).append((start, start + size))
        groups = []
        for (_, rows), parts in sorted(spans.items()):
            first, end = min(parts)[0], max(end for _, end in parts)
            groups.append((rows, first, end - first))
        return groups

    def _bounds(self, table: str, file: DataFile) -> Iterator[str]:
        names = schema.ORDER[table][: schema.KEY[table]]
        edges: list[int] = []
        for group in file.groups:
            start = edges[-1] + 1 if edges else 0
            edges += [start, start + group.rows - 1]
        rows = self._rows(
            f"SELECT {', '.join(names)}, file_row_number FROM {_FILE} "
            "WHERE list_contains($edges, file_row_number)",
            edges=edges,
        )
        actual = {row[-1]: row[:-1] if len(names) > 1 else row[0] for row in rows}
        declared = [bound for group in file.groups for bound in (group.first, group.last)]
        for edge, bound in zip(edges, declared, strict=True):
            if actual.get(edge) != bound:
                yield f"its row {edge} has {actual.get(edge)!r}, but {bound!r} in its leaf"
                return

    def _order(self, table: str) -> str | None:
        is_whole = table in ("lookup", lookup.URLS, layout.WORDS)
        names = schema.ORDER[table] if is_whole else schema.ORDER[table][: schema.KEY[table]]
        distinct = table in DISTINCT or is_whole
        key = f"row({', '.join(names)})"
        ((count, first),) = self._rows(
            f"SELECT count(*), min(n) FROM (SELECT file_row_number AS n, {key} AS key, "
            f"lag({key}) OVER (ORDER BY file_row_number) AS before FROM {_FILE}) "
            f"WHERE before {'>=' if distinct else '>'} key"
        )
        return f"{count:,} rows are not in order, the first of them row {first}" if count else None

    def _rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        values["path"] = str(self._path)
        rows: list[tuple[Any, ...]] = self.connection.execute(sql, values).fetchall()
        return rows
