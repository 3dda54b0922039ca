"""Reads a block of index lines: plain lines in SQL, others in Python, into one Parquet file."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.intake.captures import Capture, Fault
from builder.intake.intake import CAPTURES
from builder.sources.webarchives import identity, payload
from builder.sources.webarchives.cdx import columns as index_columns
from builder.sources.webarchives.cdx import index_entry, lines_sql, notation
from builder.sources.webarchives.cdx.index_entry import SHA1, IndexEntry
from builder.sources.webarchives.cdx.text import LineBlock
from builder.sources.webarchives.events import Skipped
from builder.sources.webarchives.rules import DocumentRules, refusal_reason
from builder.store.parquet.reader import lines_of
from builder.store.parquet.writer import RowWriter, columns_of
from functions.archive.record import RecordFault, RecordHeader, skip_reason
from functions.snapshot import oai_name
from functions.store import engine

MOST = 1000
"""Faults of one code that an index lists; one further row counts the rest."""

_MEMORY = 512  # megabytes, for each thread's database
_FIELDS = tuple(column.name for column in CAPTURES[2:])
_HOSTS = 1 << 15  # that are kept from block to block


@dataclass(frozen=True, slots=True)
class IndexFile:
    """An index file to read: its name, the rules, the sets of its captures, and the output folder.

    The names of its files in `folder` begin with `part`, which is unique to this index.
    """

    name: str
    folder: Path
    part: str
    rules: DocumentRules
    sets: tuple[str, ...] = ()


@dataclass(slots=True)
class Result:
    """Result of one block; `faults` are the first of each code, `codes` counts all of them.

    `foreign` counts captures whose digest cannot be that of the archive's item.
    """

    path: Path | None = None
    captures: int = 0
    foreign: int = 0
    skips: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)


def connection(index: IndexFile) -> engine.Connection:
    """Return a database for one thread that reads blocks of the index."""
    database = engine.connect(threads=1, memory_megabytes=_MEMORY)
    values = {"triples": index_columns.TRIPLES, "sets": list(index.sets)}
    database.execute(index_columns.CONSTANTS, values)
    database.execute(index_columns.NEW_HOSTS)
    return database


def read(database: engine.Connection, block: LineBlock, index: IndexFile) -> Result:
    """Read a block's lines and write its captures. Raises StoreError."""
    with engine.reading(f"the index {index.name}"):
        return _Reading(database, block, index).result()


class _Reading:
    """The reading of one block."""

    def __init__(self, database: engine.Connection, block: LineBlock, index: IndexFile) -> None:
        self._database = database
        self._block = block
        self._index = index
        self._rules = index.rules
        self._result = Result()
        self._flaws: list[tuple[int, RecordFault]] = []

    def result(self) -> Result:
        block, result = self._block, self._result
        if not block.is_readable:
            result.skips["damaged"] = sum(1 for line in block.data.split(b"\n") if line.strip())
            return result
        extra = notation.optional_fields(block.legend) if block.legend else 0
        self._database.register("text", lines_of(block.data))
        self._database.execute(lines_sql.lines(block.legend, extra))
        self._database.unregister("text")
        # Create the tables of repeated values: hosts, media types, file names, sets by rules.
        self._hosts()
        self._media()
        sql = "SELECT DISTINCT filename FROM lines WHERE plain"
        files = [value for (value,) in self._database.execute(sql).fetchall()]
        names = [index_entry.filename(_raw(value)) for value in files]
        self._hold("files", {"filename": files, "name": names}, index_columns.FILES)
        if self._rules.set_rules:
            self._own_sets()
        self._write()
        self._place_faults()
        return result

    def _write(self) -> None:
        """Write the captures of plain lines, and after them those of others."""
        path = self._index.folder / f"captures-{self._index.part}-{self._block.number:06}.parquet"
        odd = path.with_suffix(".odd")
        plain = self._result.captures
        queries = [
            index_columns.captures(own=bool(self._rules.set_rules), further=bool(self._index.sets))
        ]
        writer: RowWriter | None = None
        for capture in self._odd():
            writer = writer or RowWriter(odd, CAPTURES)
            self._result.captures += 1
            sets = tuple(sorted(capture.sets + self._index.sets))
            values = [getattr(capture, name) for name in _FIELDS]
            writer.append((capture.identity, sets, *values))
            is_foreign = len(capture.content_digest or "") != SHA1
            self._result.foreign += capture.warc_record_type != "revisit" and is_foreign
        if writer:
            writer.close()
            queries.append(f"SELECT * FROM {engine.table(engine.quote(str(odd)))}")
        if self._result.captures:
            self._database.execute(
                f"COPY ({' UNION ALL '.join(queries if plain else queries[1:])}) "
                f"TO {engine.quote(str(path))} "
                f"({lines_sql.PARQUET})"
            )
            self._result.path = path
        if writer:
            odd.unlink()

    def _odd(self) -> Iterator[Capture]:
        """Yield the captures of lines that are not plain, and count the other results."""
        sql = "SELECT n, line FROM lines WHERE NOT plain ORDER BY n"
        with closing(engine.batches(self._database, sql)) as batches:
            for number, text in (row for batch in batches for row in batch):
                line = text.encode("latin-1")
                flaws: list[RecordFault] = []
                entry: IndexEntry | None = None
                if len(line) > lines_sql.LONGEST:
                    flaws = [("index-line-invalid", None, f"{len(line)} bytes", "left out")]
                elif self._block.legend:
                    entry, flaws = notation.parse_cdx_line(line, self._block.legend)
                else:
                    entry, flaws = notation.parse_cdxj_line(line)
                item: Capture | Skipped = Skipped("damaged")
                if entry is not None:
                    item, more = index_entry.build_capture(entry, self._rules)
                    flaws = flaws + more if isinstance(item, Capture) else more
                self._flaws += ((number, flaw) for flaw in flaws)
                if isinstance(item, Capture):
                    yield item
                else:
                    self._result.skips[item.reason] += 1

    def _hosts(self) -> None:
        """Add all hosts of this block to the table of hosts."""
        (count,) = self._database.execute("SELECT count(*) FROM hosts").fetchall()[0]
        if count > _HOSTS:
            self._database.execute(index_columns.NEW_HOSTS)
        new = [base for (base,) in self._database.execute(index_columns.UNKNOWN_HOSTS).fetchall()]
        if not new:
            return
        hosts = [identity.parse_host(*base.split("://", 1)) for base in new]
        is_set = self._rules.domain_sets
        self._hold(
            "found",
            {
                "base": new,
                "host": [host and host.name for host in hosts],
                "surt": [host and host.surt for host in hosts],
                "registered": [host and host.registered for host in hosts],
                "domain_set": [host.set_spec if host and is_set else None for host in hosts],
            },
            index_columns.HOSTS,
        )
        self._database.execute("INSERT INTO hosts SELECT * FROM found")

    def _media(self) -> None:
        """Create the table of media type and status pairs, and count the lines of each."""
        result, rows = self._result, []
        for value, status, count, foreign in self._database.execute(index_columns.KINDS).fetchall():
            raw = _raw(value)
            kind = index_entry.record_type(raw)
            record = RecordHeader(kind, b"", b"", None, mime=raw)
            if reason := skip_reason(record) or refusal_reason(record, status, self._rules):
                result.skips[reason] += count
                continue
            name = payload.essence(raw) if kind != "revisit" else None
            is_set = name and self._rules.mime_sets
            spec = oai_name.join_set("mime", *name.split("/", 1)) if name and is_set else None
            rows.append((value, status, kind, name, spec))
            result.captures += count
            result.foreign += foreign if kind != "revisit" else 0
        columns = list(zip(*rows, strict=True)) or [()] * len(index_columns.MEDIA)
        values = dict(zip(index_columns.MEDIA, columns, strict=True))
        self._hold("media", values, index_columns.MEDIA)

    def _hold(
        self, name: str, values: Mapping[str, Sequence[Any]], types: Mapping[str, str]
    ) -> None:
        self._database.register(name, columns_of(values, types))

    def _own_sets(self) -> None:
        """Create the table of the sets of each plain line, by the operator's rules."""
        numbers: list[int] = []
        lists: list[tuple[str, ...]] = []
        with closing(
            engine.batches(self._database, "SELECT n, url, mime FROM lines WHERE plain")
        ) as batches:
            for number, url, value in (row for batch in batches for row in batch):
                is_revisit = index_entry.record_type(_raw(value)) == "revisit"
                media_type = None if is_revisit else payload.essence(_raw(value))
                where = identity.parse_address(url.encode("ascii"))
                numbers.append(number)
                lists.append(self._rules.sets(where, media_type, None))
        self._hold("own", {"n": numbers, "own_sets": lists}, index_columns.OWN)

    def _place_faults(self) -> None:
        """Create faults with positions for the flawed lines, up to the limit for each code."""
        counts: Counter[str] = Counter()
        flaws: list[tuple[int, RecordFault]] = []
        for number, flaw in self._flaws:
            counts[flaw[0]] += 1
            if counts[flaw[0]] <= MOST:
                flaws.append((number, flaw))
        self._result.codes = counts
        at, line = 0, 1
        for number, (code, name, detail, done) in flaws:
            while line < number:
                at, line = self._block.data.index(b"\n", at) + 1, line + 1
            place = self._block.start + at
            self._result.faults.append(Fault(self._index.name, place, code, name, detail, done))


def _raw(value: str | None) -> bytes:
    """Return the original bytes of a text value; b"" for None."""
    return b"" if value is None or value == "-" else value.encode("latin-1")
