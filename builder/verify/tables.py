"""Checks that the tables of one snapshot agree, row by row, from the index of data files.

Each check is one statement that returns the faults. An object gets one finding for each check, with
the first example. Counts and ranges of sets are computed again from the listed records. So are the
keys of revisits and originals, and the row of each capture in the table of URLs. The original that
a revisit names must be among the listed records.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from builder.snapshot.audit import SnapshotContents
from builder.snapshot.match_keys import LISTED_CAPTURE
from builder.store.findings import Finding
from builder.verify.data_files import DataFileIndex
from functions.snapshot import figure_tables, layout
from functions.snapshot.manifest import DataFile
from functions.store import engine

_RUNS = ("copies", "lookup", "dead", "originals", "revisits", "urls", layout.SINGLES)
PROVED = ("records", "sets", *_RUNS, *figure_tables.TABLES)
"""The tables that depend on each other."""

_VIEWS = "".join(
    f"CREATE OR REPLACE TEMP VIEW {name} AS FROM held_{name} SEMI JOIN chosen USING (file);"
    for name in PROVED
)
_LIVE = "CREATE OR REPLACE TEMP VIEW live AS SELECT * FROM records ANTI JOIN dead USING (position)"
_MEMBERS = (
    "CREATE OR REPLACE TEMP VIEW members AS "
    "SELECT * EXCLUDE (departed), NOT deleted AND NOT list_contains(departed, listing) AS lives "
    "FROM (SELECT * EXCLUDE (listings), unnest(listings) AS listing FROM live)"
)
_HOMES = (
    "CREATE OR REPLACE TEMP TABLE homes AS SELECT unnest($files)::INTEGER AS file, "
    "unnest($leaves)::INTEGER AS leaf, unnest($firsts)::BIGINT AS first, "
    "unnest($lasts)::BIGINT AS last"
)
_SEQUENCES = """CREATE OR REPLACE TEMP TABLE sequences AS
SELECT unnest($numbers) AS number, unnest($firsts) AS first, unnest($lasts) AS last"""
_SUPERSEDED = """
CREATE OR REPLACE TABLE superseded AS
SELECT position, heir FROM records
JOIN (SELECT key, name, max(position) AS heir FROM records GROUP BY key, name HAVING count(*) > 1)
USING (key, name) WHERE position < heir
"""
_CELLS = """
CREATE OR REPLACE TABLE cells AS
SELECT file, part, listing, sequence, kind, count(*) AS records,
    count(*) FILTER (WHERE lives) AS live, min(position) AS first, max(position) AS last
FROM members GROUP BY ALL
"""
_RANGES = """
CREATE OR REPLACE TABLE ranges AS
SELECT file, set_spec AS listing, unnest(r)
FROM (SELECT file, set_spec, unnest(ranges) AS r FROM sets)
"""
# Most sets are checked by the bounds of row groups; only these are checked record by record.
_PLACED = """
CREATE OR REPLACE TABLE placed AS
WITH looked AS (
    SELECT listing FROM ranges WHERE copied UNION
    SELECT c.listing FROM cells c ASOF LEFT JOIN ranges r
    ON c.listing = r.listing AND c.first >= r.first
    WHERE r.last IS NULL OR c.last > r.last
)
SELECT m.listing, m.position, r.copied, coalesce(m.position > r.last, true) AS outside
FROM (SELECT listing, position FROM members SEMI JOIN looked USING (listing)) m
ASOF LEFT JOIN ranges r ON m.listing = r.listing AND m.position >= r.first
"""

# By file: number of rows, and an example.
_BY_FILE = (
    (
        "position-wrong",
        "{count:,} positions are outside of their sequence, the first {example}",
        "SELECT file, count(*), min(position) FROM records LEFT JOIN sequences ON "
        "sequence = number WHERE (position BETWEEN first AND last) IS NOT TRUE GROUP BY file",
    ),
    (
        "dead-wrong",
        "{count:,} positions are listed that were not superseded, the first {example}",
        "SELECT d.file, count(*), min(position) FROM dead d LEFT JOIN records r USING (position) "
        "WHERE (r.position IS NOT NULL AND position NOT IN (SELECT position FROM superseded)) "
        "OR position NOT BETWEEN 1 AND $last GROUP BY d.file",
    ),
    (
        "lookup-wrong",
        "{count:,} rows name a position of another item, the first {example}",
        "SELECT l.file, count(*), min(position) FROM lookup l LEFT JOIN records r USING (position) "
        "WHERE r.key != l.key OR position NOT BETWEEN 1 AND $last GROUP BY l.file",
    ),
    (
        "lookup-wrong",
        "{count:,} versions differ from the records, the first at {example}",
        "SELECT s.file, count(*), min(position) FROM singles s LEFT JOIN records r "
        "USING (position) WHERE s.single IS DISTINCT FROM r.single GROUP BY s.file",
    ),
    (
        "set-count",
        "{count:,} sets have counts that do not add up, the first {example}",
        "SELECT file, count(*), min(set_spec) FROM sets WHERE "
        "(records = list_sum(list_transform(counts, lambda c: c.records)) "
        "AND live = list_sum(list_transform(counts, lambda c: c.live)) AND turns[-1] <= $publishes "
        "AND turns[1] > 0 AND turns = list_sort(turns) AND list_unique(turns[2:]) = len(turns) - 1 "
        "AND (len(turns) % 2 = 1) = (live > 0)) IS NOT TRUE GROUP BY file",
    ),
    (
        "set-count",
        "{count:,} versions have lost a set that their item was in, the first {example}",
        "SELECT n.file, count(*), min(heir) FROM superseded JOIN records o USING (position) "
        "JOIN records n ON n.position = heir "
        "WHERE NOT list_has_all(n.listings, o.listings) GROUP BY n.file",
    ),
    (
        "set-range",
        "{count:,} ranges are empty or overlap, the first of {example}",
        "SELECT file, count(*), min(listing) FROM (SELECT *, lag(last) OVER "
        "(PARTITION BY listing ORDER BY first, last) AS before FROM ranges) "
        "WHERE first > last OR before >= first GROUP BY file",
    ),
    (
        "copy-wrong",
        "{count:,} copies differ from the current record of their set, the first of {example}",
        "SELECT c.file, count(*), min(c.listing) "
        "FROM copies c LEFT JOIN records r USING (position) WHERE c.content != r.content "
        "OR NOT list_contains(r.listings, c.listing) "
        "OR (r.position IS NULL AND c.position NOT IN (SELECT position FROM dead)) GROUP BY c.file",
    ),
)

# By leaf: number of positions outside its run, and the first. A superseded position lies before or
# in the run. The item's last version lies in the run or after it.
_BY_LEAF = (
    *(
        f"SELECT leaf, count(*), min(position) FROM {table} JOIN homes USING (file) "
        "WHERE position NOT BETWEEN first AND last GROUP BY leaf"
        for table in ("copies", "lookup", "originals", "revisits", "urls", layout.SINGLES)
    ),
    "SELECT leaf, count(*), min(position) FROM dead JOIN homes USING (file) "
    "LEFT JOIN superseded USING (position) WHERE position >= last OR heir < first GROUP BY leaf",
)
_FOREIGN = (
    "SELECT prefix, min(position) FROM held_prefixes SEMI JOIN chosen USING (file) WHERE NOT "
    "if(handled, starts_with(prefix, $begin), prefix = $own) GROUP BY prefix ORDER BY 1 LIMIT 1"
)

_COUNTED = "SELECT sequence, kind, count(*) FROM live GROUP BY ALL"
_SET_COUNTS = """
SELECT listing, what, any_value(counted), any_value(said) FROM (
    SELECT listing, unnest(['records', 'live records']) AS what,
        unnest([coalesce(a.records, 0), coalesce(a.live, 0)]) AS counted,
        unnest([coalesce(b.records, 0), coalesce(b.live, 0)]) AS said
    FROM (SELECT listing, sequence, kind, sum(records) AS records, sum(live) AS live
          FROM cells GROUP BY ALL) a
    FULL JOIN (
        SELECT listing, unnest(c) FROM (SELECT set_spec AS listing, unnest(counts) AS c FROM sets)
    ) b USING (listing, sequence, kind)
) WHERE counted != said GROUP BY listing, what ORDER BY listing, what DESC
"""
_NOT_LISTED = """
SELECT listing, position, count(*) OVER () FROM placed WHERE outside ORDER BY ALL LIMIT 1"""
_NOT_COPIED = (
    "SELECT listing, position, count(*) OVER () FROM placed ANTI JOIN copies "
    "USING (listing, position) WHERE copied AND NOT outside ORDER BY ALL LIMIT 1"
)
_NOT_DEAD = (
    "SELECT position, heir, count(*) OVER () FROM superseded ANTI JOIN dead USING (position) "
    "ORDER BY ALL LIMIT 1"
)
_NOT_FOUND = """SELECT key, position, count(*) OVER ()
FROM records ANTI JOIN lookup USING (key, position) ORDER BY ALL LIMIT 1"""

_KEY_VIEWS = "".join(
    f"CREATE OR REPLACE TEMP VIEW {table} AS SELECT * FROM held_{table} SEMI JOIN chosen "
    "USING (file);"
    for table in ("owed", "referring", "findable")
)
# The original of each listed revisit, found by the hash of its identifier.
_FOUND = (
    "CREATE OR REPLACE TEMP VIEW found AS SELECT f.*, r.position AS original "
    "FROM (SELECT * FROM referring SEMI JOIN live USING (position)) f "
    f"LEFT JOIN (SELECT name, position FROM live WHERE {LISTED_CAPTURE} "
    "AND position NOT IN (SELECT position FROM referring)) r ON f.original_name = r.name"
)
_SAME = (
    "o.key = t.key AND o.position = t.position AND o.url IS NOT DISTINCT FROM t.url "
    "AND o.moment IS NOT DISTINCT FROM t.moment"
)
# By file: number of rows, and an example.
_KEYS_BY_FILE = (
    (
        "tie-wrong",
        "{count:,} rows do not match the record at their position, the first {example}",
        "SELECT t.file, count(*), min(t.position) FROM originals t "
        f"LEFT JOIN owed o ON {_SAME} LEFT JOIN records r ON r.position = t.position "
        "WHERE (r.position IS NOT NULL AND o.key IS NULL) OR t.position NOT BETWEEN 1 AND $last "
        "GROUP BY t.file",
    ),
    (
        "tie-wrong",
        "{count:,} rows do not match the revisit at their position, the first {example}",
        "SELECT t.file, count(*), min(t.position) FROM revisits t "
        "LEFT JOIN records r ON r.position = t.position "
        "LEFT JOIN referring f ON f.position = t.position "
        "WHERE (r.position IS NOT NULL AND (t.goal IS NULL = (t.moment IS NULL) AND ("
        "(t.key = f.date_key AND t.url IS NULL AND t.goal IS NULL) OR (t.key = f.digest_key "
        "AND coalesce(t.url, f.url_hash) = f.url_hash "
        "AND coalesce(t.moment, f.moment) = f.moment))) IS NOT TRUE) "
        "OR t.position NOT BETWEEN 1 AND $last GROUP BY t.file",
    ),
    (
        "revisit-wrong",
        "{count:,} revisits refer to an item that cannot be their original, the first {example}",
        "SELECT file, count(*), min(position) FROM found "
        "WHERE original_name IS NOT NULL AND original IS NULL GROUP BY file",
    ),
    (
        "url-wrong",
        "{count:,} rows do not match the capture at their position, the first {example}",
        "SELECT u.file, count(*), min(u.position) FROM urls u "
        "LEFT JOIN records r USING (position) LEFT JOIN findable f USING (position) "
        "WHERE (r.position IS NOT NULL AND f.mark IS DISTINCT FROM u.mark) "
        "OR u.position NOT BETWEEN 1 AND $last GROUP BY u.file",
    ),
)
_NO_TIE = (
    """
SELECT count(DISTINCT o.position), min(o.position)
FROM (FROM owed SEMI JOIN live USING (position)) o
LEFT JOIN originals t ON """
    + _SAME
    + " WHERE t.key IS NULL"
)
# A revisit with a URL and date needs their key. A revisit without an original also needs the key of
# its digest. A revisit with an original needs a key of that original.
_NO_KEY = """
SELECT count(*), min(f.position) FROM found f WHERE
    (f.date_key IS NOT NULL AND f.position NOT IN (
        SELECT t.position FROM revisits t JOIN referring d USING (position)
        WHERE t.key = d.date_key))
    OR (f.original_name IS NULL AND f.digest_key IS NOT NULL AND f.position NOT IN (
        SELECT t.position FROM revisits t JOIN referring d USING (position)
        WHERE t.key = d.digest_key AND t.url IS NULL AND t.goal IS NULL))
    OR (f.original IS NOT NULL AND f.position NOT IN (
        SELECT t.position FROM revisits t JOIN found g USING (position)
        JOIN owed o ON o.position = g.original AND o.key = t.key
        AND o.moment IS NOT DISTINCT FROM t.goal AND (t.url IS NULL OR t.url = o.url)))
"""
_COUNTS = (
    "SELECT count(*), count(*) FILTER (WHERE original_name IS NULL) "
    "FROM referring SEMI JOIN live USING (position)"
)
_NO_URL = (
    "SELECT count(*), min(position) FROM (FROM findable SEMI JOIN live USING (position)) "
    "ANTI JOIN urls USING (mark, position)"
)


_MISSING = (
    ("tie-missing", "captures cannot be found by their keys", _NO_TIE),
    ("tie-missing", "revisits cannot be found by their keys", _NO_KEY),
    ("url-missing", "captures cannot be found by their URLs", _NO_URL),
)


class TableChecks:
    """The checks of one snapshot; all its files are in the index."""

    def __init__(self, evidence: DataFileIndex, contents: SnapshotContents) -> None:
        self._connection = evidence.connection
        self._keys = evidence.keys
        self._contents = contents
        self._manifest = contents.manifest
        self._key = layout.manifest_key(contents.manifest.snapshot)
        self._runs = [
            (reference, leaf, reference.span)
            for table in _RUNS
            for reference, leaf in contents.leaves.get(table, ())
            if reference.span is not None
        ]

    def findings(self) -> Iterator[Finding]:
        """Yield the findings. Raises StoreError if scratch space or memory is insufficient."""
        with engine.reading(self._key):
            self._prepare()
            yield from self._by_file(_BY_FILE)
            for sql in _BY_LEAF:
                for number, count, example in self._rows(sql):
                    reference, _, (first, last) = self._runs[number]
                    run = f"its run, {first} to {last}"
                    problem = f"{count:,} positions are outside of {run}, the first {example}"
                    yield Finding("leaf-wrong", reference.key, problem)
            namespace, begin = self._manifest.namespace, self._manifest.prefix
            for prefix, position in self._rows(_FOREIGN, own=f"oai:{namespace}:", begin=begin):
                problem = f"its namespace is {namespace}, but the item at {position} is {prefix}..."
                yield Finding("manifest-wrong", self._key, problem)
            yield from self._counts()
            yield from self._missing()
            yield from self._check_keys()

    def _prepare(self) -> None:
        numbers = {key: number for number, key in enumerate(self._keys)}
        self._connection.execute(
            _HOMES,
            {
                "files": [numbers[file.key] for _, leaf, _ in self._runs for file in leaf.files],
                "leaves": [n for n, (_, leaf, _) in enumerate(self._runs) for _ in leaf.files],
                "firsts": [span[0] for _, leaf, span in self._runs for _ in leaf.files],
                "lasts": [span[1] for _, leaf, span in self._runs for _ in leaf.files],
            },
        )
        chosen = sorted({numbers[file.key] for file in self._contents.files(*PROVED)})
        self._connection.execute(
            "CREATE OR REPLACE TEMP TABLE chosen AS SELECT unnest($files)::INTEGER AS file",
            {"files": chosen},
        )
        sequences = self._manifest.sequences
        self._connection.execute(
            _SEQUENCES,
            {
                "numbers": [s.number for s in sequences],
                "firsts": [s.first for s in sequences],
                "lasts": [s.last for s in sequences],
            },
        )
        for sql in (_VIEWS, _LIVE, _MEMBERS, _SUPERSEDED, _CELLS, _RANGES, _PLACED):
            self._connection.execute(sql)

    def _by_file(self, checks: Sequence[tuple[str, str, str]]) -> Iterator[Finding]:
        last, publishes = self._manifest.last_position, len(self._manifest.sequences)
        for code, text, sql in checks:
            for number, count, example in self._rows(sql, last=last, publishes=publishes):
                yield Finding(code, self._keys[number], text.format(count=count, example=example))

    def _counts(self) -> Iterator[Finding]:
        listed = {(sequence, kind): n for sequence, kind, n in self._rows(_COUNTED)}
        declared = {
            (s.number, k): n for s in self._manifest.sequences for k, n in s.records.items()
        }
        for sequence, kind in sorted(listed.keys() | declared.keys()):
            counted, expected = (counts.get((sequence, kind), 0) for counts in (listed, declared))
            if counted != expected:
                problem = (
                    f"sequence {sequence} has {counted:,} records of kind {kind}, not {expected:,}"
                )
                yield Finding("records-count", self._key, problem)
        for code, table, total, what in (
            ("records-count", "live WHERE deleted", self._manifest.tombstones, "tombstones"),
            ("set-count", "sets", self._manifest.sets, "sets"),
            ("set-count", "sets WHERE live = 0", self._manifest.emptied, "sets without a record"),
        ):
            ((count,),) = self._rows(f"SELECT count(*) FROM {table}")
            if count != total:
                yield Finding(code, self._key, f"there are {count:,} {what}, not {total:,}")
        reported = set()
        for spec, what, counted, expected in self._rows(_SET_COUNTS):
            key = self._home("sets", spec)
            if key not in reported:
                reported.add(key)
                problem = f"{spec} has {counted:,} {what} of a publish, not {expected:,}"
                yield Finding("set-count", key, problem)

    def _missing(self) -> Iterator[Finding]:
        for spec, position, count in self._rows(_NOT_LISTED):
            where = f"the first at position {position} of {spec}"
            problem = f"{count:,} records are outside of their set's ranges, {where}"
            yield Finding("set-range", self._home("sets", spec), problem)
        for spec, position, count in self._rows(_NOT_COPIED):
            problem = f"{count:,} copies are missing, the first of position {position} of {spec}"
            yield Finding("copy-missing", self._home("copies", (spec, position), position), problem)
        for position, heir, count in self._rows(_NOT_DEAD):
            where = f"the first is {position}, superseded by {heir}"
            problem = f"{count:,} superseded positions are not listed, {where}"
            yield Finding("dead-missing", self._home("dead", position, heir), problem)
        for key, position, count in self._rows(_NOT_FOUND):
            problem = f"{count:,} positions are not listed, the first is {position}"
            yield Finding("lookup-missing", self._home("lookup", key, position), problem)

    def _check_keys(self) -> Iterator[Finding]:
        """Check the keys and URLs of revisits and originals."""
        self._connection.execute(_KEY_VIEWS)
        self._connection.execute(_FOUND)
        yield from self._by_file(_KEYS_BY_FILE)
        for code, text, sql in _MISSING:
            ((count, first),) = self._rows(sql)
            if count:
                yield Finding(code, self._key, f"{count:,} {text}, the first at {first}")
        (counts,) = self._rows(_COUNTS)
        revisits, unresolved = self._manifest.revisits, self._manifest.unresolved
        if counts != (revisits, unresolved):
            problem = (
                f"there are {counts[0]:,} revisits, {counts[1]:,} of them without an original, "
                f"not {revisits:,} and {unresolved:,}"
            )
            yield Finding("records-count", self._key, problem)

    def _home(self, table: str, bound: Any, position: int | None = None) -> str:
        """Return the key of the file in which a row should be, else the manifest's key."""
        files: list[DataFile] = []
        for reference, leaf in self._contents.leaves.get(table, ()):
            span = reference.span
            if position is None or span is None or span[0] <= position <= span[1]:
                files += leaf.files
        before = [file for file in files if file.groups[0].first <= bound]
        return (before or files)[-1 if before else 0].key if files else self._key

    def _rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        wanted = {name: value for name, value in values.items() if f"${name}" in sql}
        rows: list[tuple[Any, ...]] = self._connection.execute(sql, wanted).fetchall()
        return rows
