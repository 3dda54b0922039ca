"""Tables of the next snapshot, built from the last snapshot and the changes.

The changes are the DuckDB tables `new_versions` and `superseded_versions`, which they replace.
builder.snapshot.scratch_tables describes them. Each table gets a new run. Small preceding runs are
merged into it (see compaction). The files of touched sets are rewritten.
"""

from collections import abc
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import accumulate, chain

from builder.runtime import Advance, Progress
from builder.snapshot import compaction, figures, lookup, match_keys, set_listings, words
from builder.snapshot.compaction import (
    LOOKUP_RATIO,
    LeafRun,
    Rewrite,
    leaf_runs,
    runs_to_merge,
)
from builder.snapshot.draft import Draft, Query, SortedRows
from builder.snapshot.lookup import WITHIN_KIND, VersionCounts, rows_of
from builder.snapshot.set_listings import COPY_ORDER, NewRun, SetIndex
from functions.snapshot import layout, oai_name, schema, seal
from functions.snapshot.manifest import (
    UNSTAMPED,
    DataFile,
    LeafReference,
    Manifest,
    Sequence,
    Span,
)
from functions.store import columns, engine

_FILES = engine.table("$files")
_EARLIER_POSITIONS = f"INSERT INTO superseded_positions SELECT position FROM {_FILES}"
_KEPT = (
    f"SELECT * FROM {_FILES} "
    "WHERE position NOT IN (SELECT position FROM superseded_positions) ORDER BY position"
)
# Sorted for each kind: sorting by the kind as well would make comparisons more expensive.
_FRESH = "SELECT * FROM new_versions WHERE kind = $kind"
_OWN_KEYS = (
    f"SELECT {oai_name.LOOKUP_KEY} AS key, position FROM {engine.table('$records')} "
    "WHERE position >= $base"
)
# A scan without ORDER BY keeps the order of the rows: a sort would take time and memory.
_SINGLES = (
    f"SELECT position, text FROM (SELECT position, {columns.join_row(schema.SINGLE)} AS text "
    f"FROM {engine.table('$records')}) WHERE strlen(text) <= {layout.SINGLE_BYTES}"
)
_OWN_DEAD = (
    "SELECT position FROM superseded_versions WHERE NOT EXISTS "
    "(SELECT 1 FROM rewritten_spans WHERE position BETWEEN first AND last)"
)
_OWN_RECORDS = f"(FROM {engine.table('$records')} WHERE position >= $base AND {{}})"
_OWN_REVISITS = (
    f"(FROM {_OWN_RECORDS.format(match_keys.REVISIT)} LEFT JOIN revisit_matches USING (identifier))"
)
_OWN_ORIGINALS = match_keys.original_keys(_OWN_RECORDS.format(match_keys.ORIGINAL))
_OWN_TIES = {
    # table: the query of its rows, the condition on records, the maximum rows of a record
    "originals": (_OWN_ORIGINALS, match_keys.ORIGINAL, 2),
    "revisits": (match_keys.keys_of_revisits(_OWN_REVISITS), match_keys.REVISIT, 3),
}
_TIES_EACH = 2  # usual number of rows of a record
_OWN_URLS = (
    f"SELECT {lookup.URL_SURT} AS surt, {lookup.URL_STAMP} AS stamp, position "
    f"FROM {_OWN_RECORDS.format(match_keys.LISTED_CAPTURE)}"
)
_THERE = f"WHERE position IN (SELECT position FROM {engine.table('$there')})"


class SnapshotTables:
    """One attempt to build on the snapshot `before`.

    `sorted_rows` gives sorted new versions, by kind. Rows of these kinds in `new_versions` need no
    content.
    """

    def __init__(
        self,
        connection: engine.Connection,
        draft: Draft,
        before: Manifest,
        sorted_rows: Mapping[str, Iterable[SortedRows]] | None = None,
    ) -> None:
        self._connection = connection
        self._sorted_rows = sorted_rows or {}
        self._draft = draft
        self._before = before
        self._base = before.last_position + 1
        self._number = len(before.sequences) + 1
        self._fresh = VersionCounts.of(connection, "new_versions", "kind")
        self._superseded = VersionCounts.of(connection, "superseded_versions", "sequence", "kind")

    def items(self, progress: Progress) -> Manifest:
        """Write the changes; return the manifest with a new sequence.

        The sequence is UNSTAMPED.
        """
        sequences = self._sequences()
        own = Span(self._base, sequences[-1].last)
        rows = own.last - own.first + 1

        def live(span: Span) -> int:
            return sum(
                sum(s.records.values())
                for s in sequences
                if span.first <= s.first and s.last <= span.last
            )

        runs = leaf_runs(self._before.tables.get("records", ()))
        plan = compaction.plan_rewrites(runs, rows, live)
        with engine.reading("the last snapshot"):
            self._find_superseded(plan)
            spans = [rewrite.span(own) for rewrite in plan]
            self._connection.execute(
                "CREATE TABLE rewritten_spans AS "
                "SELECT unnest($firsts::BIGINT[]) AS first, unnest($lasts::BIGINT[]) AS last",
                {"firsts": [s.first for s in spans], "lasts": [s.last for s in spans]},
            )
        total = rows + sum(live(run.span) for rewrite in plan for run in rewrite.runs)
        with progress(total) as advance:
            written = self._records(plan, spans, sequences[-1].records, advance)
        renewed = spans if layout.SINGLES in self._before.tables else None
        self._draft.renew(layout.SINGLES, renewed, self._write_singles)
        index = SetIndex(self._connection, written, self._number)
        self._copies(written, index)
        sets, emptied = self._sets(index)
        there = [run for run in written if run.span.last == own.last]
        paths = [path for run in there for path in run.paths]
        values = {"records": paths, "base": own.first}
        self._append("lookup", own, rows, (_OWN_KEYS, values))
        for table, (sql, condition, most) in _OWN_TIES.items():
            count = most * self._fresh.meeting[condition]
            self._append(table, own, count, (sql, values), each=_TIES_EACH)
        count = self._fresh.meeting[match_keys.LISTED_CAPTURE]
        self._append(lookup.URLS, own, count, (_OWN_URLS, values))
        if words.TABLE in self._draft.tables:
            words.renew(self._connection, self._draft, spans)
        with engine.reading("the merge"):
            count = rows_of(self._connection, f"({_OWN_DEAD})")
        listed = sum(sum(s.records.values()) for s in sequences)
        self._append("dead", own, count, (_OWN_DEAD, {}), listed)
        figures.update(self._connection, self._draft, self._number)
        return replace(
            self._before,
            sequences=tuple(sequences),
            sets=sets,
            emptied=emptied,
            tombstones=self._before.tombstones + self._more("deleted"),
            revisits=self._before.revisits + self._more(match_keys.REVISIT),
            unresolved=self._before.unresolved + self._more(match_keys.UNRESOLVED),
            tables=self._draft.tables,
        )

    def _sequences(self) -> list[Sequence]:
        """Return the earlier sequences without superseded versions, then that of this publish."""
        kinds = {str(kind): count for (kind,), count in self._fresh.groups.items()}
        last = self._base + sum(kinds.values()) - 1
        starts = dict(zip(kinds, accumulate(kinds.values(), initial=self._base), strict=False))
        several = starts if len(starts) > 1 else {}
        new = Sequence(self._number, UNSTAMPED, self._base, last, kinds, several)
        gone = self._superseded.groups
        touched = {sequence for sequence, _ in gone}
        earlier = (
            seal.replace(
                s, records={k: n - gone.get((s.number, k), 0) for k, n in s.records.items()}
            )
            if s.number in touched
            else s
            for s in self._before.sequences
        )
        return [*earlier, new]

    def _more(self, condition: str) -> int:
        """Return by how much the number of listed records that meet a condition has grown."""
        return self._fresh.meeting[condition] - self._superseded.meeting[condition]

    def _find_superseded(self, plan: Iterable[Rewrite]) -> None:
        """Make `superseded_positions` of the rewritten runs and of this publish."""
        self._connection.execute(
            "CREATE TABLE superseded_positions AS SELECT position FROM superseded_versions"
        )
        leaves = self._draft.tables.get("dead", ())
        spans = [run.span for rewrite in plan for run in rewrite.runs]
        met = [leaf for leaf in leaves if any(leaf.meets(s.first, s.last) for s in spans)]
        if met:
            self._connection.execute(_EARLIER_POSITIONS, {"files": self._paths(met)})

    def _records(
        self, plan: list[Rewrite], spans: list[Span], kinds: Mapping[str, int], advance: Advance
    ) -> list[NewRun]:
        constants = {"position": self._base, "sequence": self._number}
        instead: dict[int, tuple[LeafReference, ...]] = {}
        written = []
        for rewrite, span in zip(plan, spans, strict=True):
            queries: list[Iterable[SortedRows]] = []
            if rewrite.runs:
                leaves = (leaf for run in rewrite.runs for leaf in run.leaves)
                queries.append([(_KEPT, {"files": self._paths(leaves)})])
            if rewrite.fresh:
                united = rows_of(self._connection, "prepared_versions") > 0
                queries += (
                    self._sorted_rows.get(kind)
                    or self._draft.sort(
                        "records", (_FRESH, {"kind": kind}), WITHIN_KIND, count, united
                    )
                    for kind, count in kinds.items()
                )
            files = self._draft.write("records", chain.from_iterable(queries), constants, advance)
            written.append(NewRun(span, self._draft.paths(files)))
            instead[span.first] = self._draft.leaves(files, span)
        self._replace("records", spans, instead)
        return written

    def _write_singles(self, run: LeafRun, records: abc.Sequence[str]) -> list[DataFile]:
        return self._draft.write(layout.SINGLES, [(_SINGLES, {"records": records})])

    def _copies(self, written: list[NewRun], index: SetIndex) -> None:
        instead = {}
        for number, run in enumerate(written):
            if run.paths:
                copies, count = index.copies(number)
                sorts = self._draft.sort("copies", copies, COPY_ORDER, count, True, run.paths)
                files = self._draft.write("copies", sorts)
                instead[run.span.first] = self._draft.leaves(files, run.span)
        self._replace("copies", [run.span for run in written], instead)

    def _replace(
        self, table: str, spans: list[Span], instead: Mapping[int, tuple[LeafReference, ...]]
    ) -> None:
        """Replace the runs within `spans` by new leaves, in the order of the log."""
        staying = {
            run.span.first: run.leaves
            for run in leaf_runs(self._draft.tables.get(table, ()))
            if not any(s.first <= run.span.first and run.span.last <= s.last for s in spans)
        }
        runs = sorted({**staying, **instead}.items())
        self._draft.tables[table] = tuple(leaf for _, leaves in runs for leaf in leaves)

    def _sets(self, index: SetIndex) -> tuple[int, int]:
        """Write the files of the touched sets.

        Returns the number of sets, and how many of them have no live record.
        """
        files = self._draft.files(self._draft.tables.get("sets", ()))
        firsts = [str(file.groups[0].first) for file in files]
        homes = index.find_files(firsts)
        earlier = [files[home] for home in homes] if files else []
        rows = index.rows(self._draft.paths(earlier))
        parts = self._draft.write_segments("sets", rows, set_listings.PART)
        if files:
            replaced = {
                files[home].key: [f for p, fs in parts.items() if index.home(p) == home for f in fs]
                for home in homes
            }
            self._draft.substitute("sets", replaced)
        else:
            every = [file for part in parts.values() for file in part]
            self._draft.tables["sets"] = self._draft.leaves(every)
        new = sum(file.rows for part in parts.values() for file in part)
        sets = self._before.sets - sum(file.rows for file in earlier) + new
        now, before = index.count_empty()
        # If all files are touched, the earlier count is not used, as it may be wrong.
        others = self._before.emptied - before if len(earlier) < len(files) else 0
        return sets, others + now

    def _append(
        self, table: str, own: Span, rows: int, query: Query, live: int = 0, each: int = 1
    ) -> None:
        """Add rows about positions as a run, merged with preceding runs.

        A row may outlive its record. If more than half of the table's rows do, the table is
        rewritten without them. `live` records need no row here; the others need about `each` rows.
        """
        runs = leaf_runs(self._draft.tables.get(table, ()))
        count = runs_to_merge([run.rows for run in runs], rows, LOOKUP_RATIO)
        there = self._draft.tables["records"]
        needed = each * (sum(leaf.rows for leaf in there) - live)
        stale = rows + sum(run.rows for run in runs) > 2 * needed + layout.GROUP_ROWS
        # Earlier versions of Sheaf had no such table, and encoded these tables otherwise.
        is_earlier = layout.SINGLES not in self._before.tables
        stale |= bool(runs) and table in layout.PLAIN and is_earlier
        if stale:
            count = len(runs)
        elif not rows:
            return
        merged, staying = runs[len(runs) - count :], runs[: len(runs) - count]
        rows += sum(run.rows for run in merged)
        sql, values = query[0], dict(query[1])
        if merged:
            values["files"] = self._paths(leaf for run in merged for leaf in run.leaves)
            earlier = match_keys.stored_rows(_FILES) if table in _OWN_TIES else _FILES
            sql = f"SELECT * FROM (({sql}) UNION ALL SELECT * FROM {earlier})"
        if stale:
            values["there"] = self._paths(there)
            sql = f"SELECT * FROM ({sql}) {_THERE}"
        span = Span(merged[0].span.first if merged else own.first, own.last)
        united = merged or table in _OWN_TIES
        sorts = self._draft.sort(table, (sql, values), "ALL", rows, bool(united))
        files = self._draft.write(table, sorts)
        leaves = (leaf for run in staying for leaf in run.leaves)
        self._draft.tables[table] = (*leaves, *self._draft.leaves(files, span))

    def _paths(self, leaves: Iterable[LeafReference]) -> list[str]:
        return self._draft.paths(self._draft.files(leaves))
