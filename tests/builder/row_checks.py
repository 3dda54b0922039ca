"""Checks that the tables of each snapshot agree row by row, which tests make after a publish.

`sheaf verify` proves that a store has the bytes that were published, by digests. This proves that
they were right: what sets, copies and look-ups say is computed again from the listed records.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builder.kinds import KINDS
from builder.snapshot import lookup, match_keys
from builder.snapshot.consistency import DISTINCT, kept_snapshots
from builder.snapshot.match_keys import LISTED_CAPTURE
from functions.kinds import DOCUMENTED
from functions.snapshot import layout, oai_name, schema
from functions.snapshot.manifest import DataFile, Manifest
from functions.snapshot.store import Reader
from functions.store import columns, engine
from functions.store.catalog import Catalogue

_FILE = engine.table("$path")
_TABLES = ("records", "copies", "sets", "lookup", "singles", "dead", *sorted(layout.TIES), "urls")
_WHOLE = ("lookup", lookup.URLS, layout.WORDS)  # sorted by all columns of their order
_DONE: set[str] = set()
"""Digests of the manifests and keys of the files that were checked: they name all their bytes."""

_ROW = f"hash({', '.join(schema.names('records'))})"
_LINEAGE = (
    "list_distinct(flatten(list_transform({sets}, lambda s: list_transform("
    "range(1, len(string_split(s, ':')) + 1), "
    "lambda n: array_to_string(string_split(s, ':')[:n], ':')))))"
)
_DEPARTED = (
    "CASE WHEN len(left_sets) = 0 THEN [] ELSE list_filter("
    f"{_LINEAGE.format(sets='left_sets')}, lambda s: NOT coalesce(list_bool_or("
    "list_transform(sets, lambda o: o = s OR starts_with(o, s || ':'))), false)) END"
)
_REVISITS = f"(FROM live WHERE {match_keys.REVISIT})"
_HANDLES, _FOREIGN = (
    engine.texts(name for kind in KINDS if kind.identifiers == form for name in kind.names)
    for form in ("handle", "foreign")
)
_FIELDS = " OR ".join(f"{column.name} IS NOT NULL" for column in schema.CONTENT)
_DERIVED = f"""
CREATE OR REPLACE TEMP TABLE versions AS SELECT *, {oai_name.LOOKUP_KEY} AS key,
    {_LINEAGE.format(sets="list_concat(sets, left_sets)")} AS listings, {_DEPARTED} AS departed,
    {_ROW} AS content FROM records;
CREATE OR REPLACE TEMP VIEW live AS FROM versions ANTI JOIN dead USING (position);
CREATE OR REPLACE TEMP VIEW members AS SELECT position, sequence, kind, listing,
    NOT deleted AND NOT list_contains(departed, listing) AS lives
FROM (SELECT *, unnest(listings) AS listing FROM live);
CREATE OR REPLACE TEMP TABLE superseded AS SELECT position, heir FROM versions JOIN (
    SELECT identifier, max(position) AS heir FROM versions GROUP BY ALL
) USING (identifier) WHERE position < heir;
CREATE OR REPLACE TEMP VIEW ranges AS
SELECT listing, unnest(r) FROM (SELECT set_spec AS listing, unnest(ranges) AS r FROM sets);
CREATE OR REPLACE TEMP TABLE owed AS
{match_keys.original_keys(f"(FROM versions WHERE {match_keys.ORIGINAL})")};
CREATE OR REPLACE TEMP TABLE referring AS
{match_keys.wanted_keys(f"(FROM versions WHERE {match_keys.REVISIT})", "position, refers_to")};
CREATE OR REPLACE TEMP TABLE resolved AS SELECT f.*, r.position AS original
FROM (FROM referring SEMI JOIN live USING (position)) f
LEFT JOIN (FROM live WHERE {match_keys.ORIGINAL}) r ON f.refers_to = r.identifier;
CREATE OR REPLACE TEMP VIEW findable AS SELECT {lookup.URL_SURT} AS surt,
    {lookup.URL_STAMP} AS stamp, position FROM versions WHERE {LISTED_CAPTURE};
"""
_SAME = (
    "o.key = t.key AND o.position = t.position AND o.url IS NOT DISTINCT FROM t.url "
    "AND o.moment IS NOT DISTINCT FROM t.moment"
)
_KNOWN = "position BETWEEN 1 AND $last"
_CHECKS = {
    # what is wrong: the query of the rows that show it
    "positions are outside of their sequence": """SELECT position FROM records
        LEFT JOIN sequences s ON sequence = number
        WHERE (position BETWEEN s.first AND s.last) IS NOT TRUE""",
    "dead positions were not superseded": f"""SELECT position FROM dead
        LEFT JOIN versions v USING (position) WHERE NOT {_KNOWN} OR (v.identifier IS NOT NULL
        AND position NOT IN (SELECT position FROM superseded))""",
    "superseded positions are not dead": "FROM superseded ANTI JOIN dead USING (position)",
    "the look-up names a position of another item": f"""SELECT position FROM lookup l
        LEFT JOIN versions r USING (position) WHERE r.key != l.key OR NOT {_KNOWN}""",
    "the look-up lacks a position": """SELECT position FROM versions
        ANTI JOIN lookup USING (key, position)""",
    "a single version differs from its record": f"""SELECT position FROM singles
        LEFT JOIN (SELECT position, {columns.join_row(schema.SINGLE)} AS single FROM records) r
        USING (position) WHERE text IS DISTINCT FROM single""",
    "counts of a set do not add up": """SELECT set_spec FROM sets WHERE
        (records = list_sum(list_transform(counts, lambda c: c.records))
        AND live = list_sum(list_transform(counts, lambda c: c.live)) AND turns[-1] <= $publishes
        AND turns[1] > 0 AND turns = list_sort(turns)
        AND list_unique(turns[2:]) = len(turns) - 1
        AND (len(turns) % 2 = 1) = (live > 0)) IS NOT TRUE""",
    "a version has lost a set of its item": """SELECT heir FROM superseded
        JOIN versions o USING (position) JOIN versions n ON n.position = heir
        WHERE NOT list_has_all(n.listings, o.listings)""",
    "ranges of a set are empty or overlap": """SELECT listing FROM (SELECT *, lag(last) OVER (
        PARTITION BY listing ORDER BY first, last) AS before FROM ranges)
        WHERE first > last OR before >= first""",
    "a copy differs from the record of its set": f"""SELECT c.listing, position
        FROM (SELECT *, {_ROW} AS content FROM copies) c LEFT JOIN versions r USING (position)
        WHERE c.content != r.content OR NOT list_contains(r.listings, c.listing)
        OR (r.identifier IS NULL AND position NOT IN (SELECT position FROM dead))""",
    "counts of a set are not those of its records": """SELECT listing, a, b FROM (
        SELECT listing, sequence, kind, (count(*), count(*) FILTER (lives)) AS a
        FROM members GROUP BY ALL
        ) FULL JOIN (SELECT listing, c.sequence, c.kind, (c.records, c.live) AS b
        FROM (SELECT set_spec AS listing, unnest(counts) AS c FROM sets)
        WHERE (c.records, c.live) != (0, 0)
        ) USING (listing, sequence, kind) WHERE a IS DISTINCT FROM b""",
    "records are outside of the ranges of their set": """SELECT m.listing, m.position
        FROM members m ASOF LEFT JOIN ranges r
        ON m.listing = r.listing AND m.position >= r.first
        WHERE coalesce(m.position > r.last, true)""",
    "a copy is missing": """SELECT m.listing, m.position FROM members m ASOF JOIN ranges r
        ON m.listing = r.listing AND m.position >= r.first
        ANTI JOIN copies c ON c.listing = m.listing AND c.position = m.position
        WHERE r.copied AND m.position <= r.last""",
    "a row of originals is of another record": f"""SELECT t.position FROM originals t
        LEFT JOIN owed o ON {_SAME} LEFT JOIN records r ON r.position = t.position
        WHERE (r.position IS NOT NULL AND o.key IS NULL)
        OR t.position NOT BETWEEN 1 AND $last""",
    "a row of revisits is of another revisit": """SELECT t.position FROM revisits t
        LEFT JOIN records r ON r.position = t.position
        LEFT JOIN referring f ON f.position = t.position
        WHERE (r.position IS NOT NULL AND (t.goal IS NULL = (t.moment IS NULL) AND (
        (t.key = f.date_key AND t.url IS NULL AND t.goal IS NULL) OR (t.key = f.digest_key
        AND coalesce(t.url, f.url_hash) = f.url_hash
        AND coalesce(t.moment, f.moment) = f.moment))) IS NOT TRUE)
        OR t.position NOT BETWEEN 1 AND $last""",
    "a revisit refers to what cannot be its original": """SELECT position FROM resolved
        WHERE refers_to IS NOT NULL AND original IS NULL""",
    "a capture cannot be found by its keys": f"""SELECT o.position
        FROM (FROM owed SEMI JOIN live USING (position)) o
        LEFT JOIN originals t ON {_SAME} WHERE t.key IS NULL""",
    # One with a URL and date needs their key, one without an original also that of its digest,
    # and one with an original a key of that.
    "a revisit cannot be found by its keys": """SELECT position FROM resolved f WHERE
        (f.date_key IS NOT NULL AND f.position NOT IN (
            SELECT t.position FROM revisits t JOIN referring d USING (position)
            WHERE t.key = d.date_key))
        OR (f.refers_to IS NULL AND f.digest_key IS NOT NULL AND f.position NOT IN (
            SELECT t.position FROM revisits t JOIN referring d USING (position)
            WHERE t.key = d.digest_key AND t.url IS NULL AND t.goal IS NULL))
        OR (f.original IS NOT NULL AND f.position NOT IN (
            SELECT t.position FROM revisits t JOIN resolved g USING (position)
            JOIN owed o ON o.position = g.original AND o.key = t.key
            AND o.moment IS NOT DISTINCT FROM t.goal AND (t.url IS NULL OR t.url = o.url)))""",
    "a row of urls is of another capture": f"""SELECT u.position FROM urls u
        LEFT JOIN records r USING (position) LEFT JOIN findable f USING (position)
        WHERE NOT {_KNOWN} OR (r.identifier IS NOT NULL
        AND (f.surt, f.stamp) IS DISTINCT FROM (u.surt, u.stamp))""",
    "a capture cannot be found by its URL": """SELECT position
        FROM (FROM findable SEMI JOIN live USING (position))
        ANTI JOIN urls USING (surt, stamp, position)""",
    "an item is of another namespace": f"""SELECT identifier FROM records
        WHERE kind NOT IN {_FOREIGN} AND NOT starts_with(identifier,
        if(kind IN {_HANDLES}, $prefix, $namespace))""",
    "a tombstone has metadata, or a record a reason": f"""SELECT position FROM records
        WHERE (deleted AND ({_FIELDS})) OR (NOT deleted AND reason IS NOT NULL)""",
    "an item has another content than its kind": f"""SELECT position FROM records
        WHERE (kind IN {engine.texts(sorted(DOCUMENTED))} AND NOT deleted)
        != coalesce(json_valid(document), false)""",
    **{
        f"rows of {table} are outside of their run": f"""SELECT position FROM {table}
        WHERE position NOT BETWEEN run_first AND run_last"""
        for table in ("copies", "lookup", "originals", "revisits", "urls", layout.SINGLES)
    },
    # A superseded position lies before or in the run, the item's last version in it or after it.
    "dead positions are outside of their run": """SELECT position FROM dead
        LEFT JOIN superseded USING (position) WHERE position >= run_last OR heir < run_first""",
}
_NUMBERS = {
    # member of the manifest: the query of its value
    "tombstones": "SELECT count(*) FROM live WHERE deleted",
    "sets": "SELECT count(*) FROM sets",
    "emptied": "SELECT count(*) FROM sets WHERE live = 0",
    "revisits": f"SELECT count(*) FROM {_REVISITS}",
    "unresolved": f"SELECT count(*) FROM {_REVISITS} WHERE refers_to IS NULL",
}


def row_problems(store: Reader) -> list[str]:
    """Return what is wrong with the rows of each kept snapshot; nothing is checked twice."""
    catalogue = Catalogue(store)
    newest = catalogue.pointer().newest()
    if newest is None:
        return []
    skipped = catalogue.manifest(newest.snapshot).skipped
    manifests = map(catalogue.manifest, kept_snapshots(catalogue.pointer(), skipped))
    problems: list[str] = []
    for manifest in (manifest for manifest in manifests if manifest.digest not in _DONE):
        with engine.connect() as connection:
            wrong = [*_load(connection, store, catalogue, manifest)]
            wrong += _compare(connection, manifest)
        problems += [f"snapshot {manifest.snapshot}: {problem}" for problem in wrong]
        if not wrong:
            _DONE.add(manifest.digest)
    return problems


def _load(
    connection: engine.Connection, store: Reader, catalogue: Catalogue, manifest: Manifest
) -> Iterator[str]:
    """Read the files of a snapshot into tables; yield what is wrong with them one by one."""
    for table in schema.TABLES:
        if table in _TABLES:
            names = ", ".join(f"{column.name} {column.type}" for column in schema.TABLES[table])
            connection.execute(
                f"CREATE TEMP TABLE {table} ({names}, run_first BIGINT, run_last BIGINT)"
            )
        for reference in manifest.tables.get(table, ()):
            first, last = reference.span or (0, manifest.last_position)
            for file in catalogue.leaf(reference).files:
                path = store.local(file.key)
                if file.key not in _DONE:
                    wrong = [*_file_problems(connection, table, file, path)]
                    yield from (f"{file.key}: {problem}" for problem in wrong)
                    _DONE.update(() if wrong else (file.key,))
                if table in _TABLES:
                    rows = match_keys.stored_rows(_FILE) if table in layout.TIES else _FILE
                    sql = f"SELECT *, {first} AS run_first, {last} AS run_last FROM {rows}"
                    connection.execute(f"INSERT INTO {table} BY NAME {sql}", {"path": str(path)})


def _file_problems(
    connection: engine.Connection, table: str, file: DataFile, path: Path
) -> Iterator[str]:
    """Compare a file with what its leaf says of it, and check the order of its rows."""
    values = {"path": str(path)}
    sql = (
        "SELECT any_value(row_group_num_rows), min(least(data_page_offset, "
        "coalesce(dictionary_page_offset, data_page_offset))) AS start, max(least("
        "data_page_offset, coalesce(dictionary_page_offset, data_page_offset)) "
        "+ total_compressed_size) - start FROM parquet_metadata($path) "
        "GROUP BY row_group_id ORDER BY row_group_id"
    )
    groups = connection.execute(sql, values).fetchall()
    if groups != [(group.rows, group.offset, group.length) for group in file.groups]:
        yield f"its row groups are {groups}"
    data = path.read_bytes()
    for end, length in [
        (len(data), file.footer),
        *((sum(group.byte_range), group.tail) for group in file.groups if group.tail),
    ]:
        if data[end - 8 : end] != (length - 8).to_bytes(4, "little") + b"PAR1":
            yield f"no footer of {length:,} bytes ends at {end:,}"
    names = schema.ORDER[table][: schema.KEY[table]]
    edges, start = [], 0
    for group in file.groups:
        edges += [(start, group.first), (start + group.rows - 1, group.last)]
        start += group.rows
    sql = f"SELECT file_row_number, {', '.join(names)} FROM {_FILE} ORDER BY 1"
    bounds = {row[0]: row[1:] if len(names) > 1 else row[1] for row in _rows(connection, sql, path)}
    if edges != [(row, bounds.get(row)) for row, _ in edges]:
        yield "its bounds are not those of its rows"
    key = f"row({', '.join(schema.ORDER[table] if table in _WHOLE else names)})"
    compare = ">=" if table in DISTINCT or table in _WHOLE else ">"
    unsorted = _rows(
        connection,
        f"SELECT n FROM (SELECT file_row_number AS n, {key} AS key, "
        f"lag({key}) OVER (ORDER BY file_row_number) AS before FROM {_FILE}) "
        f"WHERE before {compare} key",
        path,
    )
    if unsorted:
        yield f"its rows are not in order, the first of them {unsorted[0]}"


def _rows(connection: engine.Connection, sql: str, path: Path) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = connection.execute(sql, {"path": str(path)}).fetchall()
    return rows


def _compare(connection: engine.Connection, manifest: Manifest) -> Iterator[str]:
    """Yield what does not agree in the tables that were loaded."""
    connection.execute(
        "CREATE TEMP TABLE sequences (number INTEGER, first BIGINT, last BIGINT);" + _DERIVED
    )
    for sequence in manifest.sequences:
        numbers = sequence.number, sequence.first, sequence.last
        connection.execute(f"INSERT INTO sequences VALUES {numbers}")
    values = {
        "$last": str(manifest.last_position),
        "$publishes": str(len(manifest.sequences)),
        "$prefix": engine.quote(manifest.prefix),
        "$namespace": engine.quote(f"oai:{manifest.namespace}:"),
    }
    for problem, sql in _CHECKS.items():
        for name, value in values.items():
            sql = sql.replace(name, value)
        if rows := connection.execute(sql).fetchall():
            yield f"{problem}: {rows[:3]}"
    for name, sql in _NUMBERS.items():
        ((count,),) = connection.execute(sql).fetchall()
        if count != getattr(manifest, name):
            yield f"{name} are {count:,}, not {getattr(manifest, name):,}"
    rows = connection.execute("SELECT sequence, kind, count(*) FROM live GROUP BY ALL").fetchall()
    listed = {(sequence, kind): count for sequence, kind, count in rows}
    declared = {(s.number, k): n for s in manifest.sequences for k, n in s.records.items() if n}
    if listed != declared:
        yield f"numbers of records are {listed}, not {declared}"
