"""Ingest of own records: reads the files of tables, and commits a run of the intake.

A file that was read as it is, by the same recipe, is not read again; of another, only the records
that differ are parsed (builder.sources.records.known).
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from builder.errors import UsageError
from builder.intake import intake, loss
from builder.intake.captures import FAULT_CODES, HARMLESS_CODES, Fault
from builder.intake.intake import TABLES, IntakeSource, part_path
from builder.intake.rows import IntakeWriter
from builder.sources.records.forms.form import FileForm
from builder.sources.records.known import RecordIndex
from builder.sources.records.listed import ForeignOwners, list_live
from builder.sources.records.paths import PathError
from builder.sources.records.recipe import LACKING, IdentifierError, OwnItem, Recipe
from builder.sources.records.record import (
    KnownRecord,
    ReadOptions,
    RecordFault,
    RecordsError,
    SourceRecord,
    hash_record,
)
from builder.sources.records.renewal import renew_items
from builder.sources.records.spool import ItemSpool
from builder.store.parquet.writer import RowWriter
from builder.store.workdir import KNOWN_PREFIX
from builder.text import tally
from functions.snapshot.errors import describe_failure
from functions.snapshot.item_tables import OWN_READING
from functions.snapshot.store import Writer

_MOST_FAULTS = 1000
"""Faults of one code that are named of a file."""
_SHOWN = 10
_LEFT_OUT, REPAIRED = "left out", "repaired"
NO_IDENTIFIER, REPEATED = "record-no-identifier", "record-repeated"
_LOST = (NO_IDENTIFIER, "bad-record")
"""Faults of records that may be of any item."""


@dataclass(frozen=True, slots=True)
class RecordTable:
    """A table of `[[records]]` with its recipe and its files, each with its form.

    What the configuration does not declare is a guess. It is not whole if a file of it cannot be
    read: then nothing that is missing is deleted. It `follows` guessed tables of its files, which
    had other names: their records are its own now.
    """

    recipe: Recipe
    files: Mapping[Path, FileForm]
    is_guess: bool = False
    is_whole: bool = True
    follows: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.recipe.name


@dataclass(slots=True)
class RecordsReport:
    """Counts of an ingest. `known` counts files that were read before, `same` known records.

    `renewed` counts records that no file has, made of what the store has; `superseded` identifiers
    that were deleted, as their records have others now.
    `changed` are those of `records` that came before in another form, as far as the index knows.
    `passed` are files beside records that hold none, `unchecked` formats without a schema. `unread`
    has the reason for each file without a readable record, or that ends early; `losses`
    the tables whose losses wait, each with their number, and `reasons` say why. `faults` counts
    by code.
    """

    run: str
    records: int = 0
    changed: int = 0
    same: int = 0
    deleted: int = 0
    files: int = 0
    known_files: int = 0
    renewed: int = 0
    superseded: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    guesses: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)

    @property
    def present(self) -> int:
        """How many records the files have that are items."""
        return self.records + self.same + self.deleted

    def text(self) -> str:
        """Return a summary for people, and the sections that would declare what was guessed."""
        lines = [
            f"{tally(self.records, 'record')} of {tally(self.files, 'file')}, {self.same:,} as "
            f"before, {self.deleted:,} deleted, ready to publish"
        ]
        if self.renewed or self.superseded:
            lines.append(
                f"{self.renewed:,} made anew of what the store has, {self.superseded:,} old "
                "identifiers deleted, as records have others now"
            )
        lines += [f"{count:,} x {FAULT_CODES[code]}" for code, count in self.faults.items()]
        lines += [f"  {text}" for text in self.first]
        lines += self.list_failures()
        if self.passed:
            names = ", ".join(self.passed[:_SHOWN]) + ", ..." * (len(self.passed) > _SHOWN)
            lines.append(f"{tally(len(self.passed), 'file')} without records passed over: {names}")
        if self.unchecked:
            lines.append(f"formats not checked, as there is no schema: {', '.join(self.unchecked)}")
        for guess in self.guesses:
            lines += ["this was guessed; in sheaf.toml it would be:", guess]
        return "\n".join(lines)

    def list_failures(self) -> list[str]:
        """Return what could not be read, and what is not deleted, each with the reason."""
        return [f"{name}: {reason}" for name, reason in self.unread.items()] + [
            f"{name}: {tally(count, 'record')} that the files no longer hold are not deleted, as "
            f"{self.reasons[name]}"
            for name, count in self.losses.items()
        ]


@dataclass(slots=True)
class RecordsIngest:
    """Writes the records of tables into the intake, as one run of that `name`.

    `home` has the indexes, and `scratch` is for local files. `readings` are those of files that the
    store has; with `again`, all are read. `recipes` are those of the store, and `abandoned` tables
    are declared no longer: their foreign identifiers are free. `folder` is the configuration's.
    """

    store: Writer
    home: Path
    scratch: Path
    name: str
    readings: frozenset[str] = frozenset()
    again: bool = False
    accept_loss: bool = False
    recipes: Mapping[str, str] = field(default_factory=dict)
    abandoned: frozenset[str] = frozenset()
    folder: Path = Path()
    report: RecordsReport = field(init=False)
    _rows: RowWriter = field(init=False)
    _faults: IntakeWriter = field(init=False)
    _owners: ForeignOwners = field(init=False)
    _reason: str = field(init=False, default="")
    _faulty: str = field(init=False, default="")
    _named: Counter[str] = field(init=False, default_factory=Counter)

    def carry_out(self, tables: Sequence[RecordTable]) -> RecordsReport:
        """Read the tables, commit what is new, and report. Raises UsageError and StoreError."""
        self.report = RecordsReport(self.name)
        self._faults = IntakeWriter(self.scratch, self.name)
        self._rows = self._open_rows("own_records")
        described, names = self._open_rows("own_tables"), self._open_rows("set_names")
        if tables:
            self._owners = ForeignOwners(self.store, tables[0].recipe.namespace)
        sources: list[IntakeSource] = []
        indexes: list[RecordIndex] = []
        committed = False
        try:
            for table in tables:
                index = self._open_index(table)
                indexes.append(index)
                before = len(sources)
                sources += self._read_table(table, index)
                if len(sources) > before:
                    self._renew(table, index)
                    for row in table.recipe.describe():
                        described.append(row)
                    for spec, name in table.recipe.table["set_names"].items():
                        names.append((spec, name))
                    if table.is_guess and table.recipe.formats:
                        self.report.guesses.append(table.recipe.declare())
            self.report.unchecked = sorted({p for t in tables for p in t.recipe.unchecked})
            for writer in (self._rows, described, names, self._faults):
                writer.close()
            mended = [
                self._name_file(table, path)
                for table, index in zip(tables, indexes, strict=True)
                if table.is_whole and not table.is_guess
                for path in index.gone_files
            ]
            if sources or self.report.deleted or mended:
                own = self.report.records + self.report.renewed
                run = intake.IntakeRun(self.name, tuple(sources), own=own, mended=(*mended,))
                intake.commit(self.store, run, self.scratch)
            committed = True
        finally:
            for index in indexes:
                index.close(commit=committed)
        return self.report

    def _renew(self, table: RecordTable, index: RecordIndex) -> None:
        """Make those items by the table's recipe that the store has, and no file has any more."""
        recipe, text = table.recipe, self.recipes.get(table.name)
        own = (table.name,) if text is not None else ()
        for name in (*table.follows, *own) if text != recipe.text else ():
            rows = renew_items(self.store, recipe, name, self.recipes[name], index.has_item)
            for row in rows:
                self._rows.append(row)
                self.report.renewed += not row[1]
                self.report.superseded += row[1]

    def _open_rows(self, table: str) -> RowWriter:
        unlike = ("document", "identifier", "digest") if table == "own_records" else ()
        path = part_path(self.scratch, table, self.name)
        return RowWriter(path, TABLES[table], 256, unlike)

    def _open_index(self, table: RecordTable) -> RecordIndex:
        identity = json.dumps([self.store.address, table.name])
        digest = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        readings = frozenset() if self.again else self.readings
        path = self.home / f"{KNOWN_PREFIX}{digest}" / "records.sqlite"
        return RecordIndex(path, table.recipe.text, readings)

    def _read_table(self, table: RecordTable, index: RecordIndex) -> Iterator[IntakeSource]:
        """Read the files of a table that have changed; yield each as a source."""
        changed = index.list_changed([*table.files])
        self.report.known_files += len(table.files) - len(changed)
        failed = not table.is_whole
        for path in changed:
            before = asdict(self.report)
            source = self._read_file(table, path, index)
            failed |= source.reading is None or not (source.skipped or self._named[REPEATED])
            after = asdict(self.report)
            # A query is carried out each time: if nothing is new, it leaves no trace.
            if table.files[path].name != "query" or any(
                before[name] != after[name] for name in ("records", "deleted", "faults", "unread")
            ):
                yield source
        index.end_run()
        if index.has_changes or self.accept_loss or not index.is_settled:
            reason = "a file of it could not be read, or has no record" if failed else ""
            if faulty := index.list_faulty():
                reason = reason or f"{faulty[0]} has records that could not be read"
            index.settle(done=self._delete_missing(table, index, reason))

    def _read_file(self, table: RecordTable, path: Path, index: RecordIndex) -> IntakeSource:
        """Write the rows of a file; what cannot be read of it is a fault."""
        report, form, written = self.report, table.files[path], self.report.present
        label = f"[[records]] {table.name}" if form.name == "query" else str(path)
        name = label if form.name == "query" else self._name_file(table, path)
        self._named.clear()
        self._reason, self._faulty, size, digest, reading = "", "", 0, "", None
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                size = file.tell()
            reading = hashlib.sha256(f"{table.recipe.text}{digest}".encode()).hexdigest()
            reading = OWN_READING + reading
            index.begin_file(path, reading)
            self._read_records(table, path, name, index)
        except (RecordsError, OSError) as error:
            index.doubt_file()
            digest, reading = "", None
            report.unread[label] = reason = describe_failure(error)
            self._note(name, "unreadable", None, reason, "what was read of it is used")
        else:
            repeats, faulty = self._named[REPEATED], sum(self._named[code] for code in _LOST)
            index.note_file(repeats, faulty)
            if not (report.present - written or repeats):
                index.doubt_file()  # so that each run names it; it may be damaged
        report.files += 1
        if report.present == written:
            report.unread.setdefault(label, self._reason or "it has no record")
        return IntakeSource(
            source=name,
            digest=digest,
            path=label,
            format=f"records.{form.name}" if reading else "",
            bytes=size,
            captures=0,
            skipped=report.present - written,
            faults=self._named.total(),
            skips={},
            codes={} if reading else {"unreadable": 1},
            failed=label in report.unread,
            reading=reading,
        )

    def _name_file(self, table: RecordTable, path: Path) -> str:
        """Return a file's name among the sources: seen from the configuration, if it is below it.

        What is read whole supersedes the faults of that name, so that no two files share it.
        """
        if path.is_relative_to(self.folder):
            return path.relative_to(self.folder).as_posix()
        return f"{table.name}/{path.name}"

    def _read_records(self, table: RecordTable, path: Path, name: str, index: RecordIndex) -> None:
        """Write the rows of the records of a file. Raises RecordsError where it cannot go on."""
        declared = table.recipe.table
        keys = ("element", "encoding", "separator")
        element, encoding, separator = (declared[key] or None for key in keys)
        options = ReadOptions(element, encoding, separator, index.is_known, index.expect)
        spool = ItemSpool(self.scratch / f"{self.report.files}.spool")
        for record in table.files[path].read(path, options):
            self._take(table, record, name, index, spool)
        for item, place, repeated in spool.join():
            # All records of such items are parsed, so that each has all its formats.
            digest = hash_record("", item.identifier.encode())
            self._write(table, item, (name, place), digest, index)
            for at in repeated:
                self._note(name, REPEATED, item.id, f"{at}: it came before", _LEFT_OUT)

    def _take(
        self,
        table: RecordTable,
        record: SourceRecord | KnownRecord | RecordFault,
        name: str,
        index: RecordIndex,
        spool: ItemSpool,
    ) -> None:
        """Write the row of a record, or name why there is none."""
        if isinstance(record, KnownRecord):
            if index.keep(record.digest):
                self.report.same += 1
            else:
                self._note(name, REPEATED, None, "a record equal to an earlier one", _LEFT_OUT)
            return
        if isinstance(record, RecordFault):
            detail = f"{record.place}: {record.detail}"
            done = REPAIRED if record.code in HARMLESS_CODES else _LEFT_OUT
            if self._note(name, record.code, record.field, detail, done):
                self._faulty = record.place
            return
        try:
            item = table.recipe.make(record)
        except PathError as error:
            raise UsageError(f"[[records]] {table.name}: {error}") from error
        except IdentifierError as error:
            self._note(name, NO_IDENTIFIER, None, f"{record.place}: {error}", _LEFT_OUT)
            return
        if record.prefix is not None:
            spool.add(item, record.place)
        else:
            self._write(table, item, (name, record.place), record.digest, index)

    def _write(
        self,
        table: RecordTable,
        item: OwnItem,
        where: tuple[str, str],
        digest: bytes,
        index: RecordIndex,
    ) -> None:
        """Write the row of an item, which came with that digest; `where` are file and place."""
        (name, place), replaced = where, index.replaced
        if item.identifier == item.id:  # it is foreign, and as the file gave it
            owner = self._owners.find(item.identifier, table.name)
            if owner not in (table.name, *table.follows, *self.abandoned):
                detail = f"{place}: table {table.name} has it, but it is of table {owner}"
                self._note(name, REPEATED, item.id, detail, _LEFT_OUT)
                return
            self._owners.pass_on(item.identifier, table.name)
        is_faulty = self._faulty == place
        if not index.add(item.identifier, digest):
            reason = f"{item.id!r} came before"
            if item.identifier == item.id:
                reason = "formats of an item are joined within a file alone"
            self._note(name, REPEATED, item.id, f"{place}: {reason}", _LEFT_OUT)
            return
        for code, detail in item.faults:
            done = "served without it" if code == LACKING else "served"
            is_faulty |= self._note(name, code, item.id, f"{place}: {detail}", done)
        if is_faulty:  # it is parsed again with its file, so that its faults are said again
            index.doubt_record(item.identifier)
        self._rows.append(item.row(table.name))
        self.report.records += not item.deleted
        self.report.changed += index.replaced > replaced and not item.deleted
        self.report.deleted += item.deleted

    def _delete_missing(self, table: RecordTable, index: RecordIndex, reason: str) -> bool:
        """Delete the items that the table's files no longer have, or that its list names.

        If the table is complete, those are all that are missing, unless there is a `reason` why a
        file may have them, or the loss is great. Returns whether nothing waits to be deleted.
        """
        recipe, report = table.recipe, self.report
        is_complete, listed_ids = recipe.table["complete"], frozenset(recipe.gone_items())
        missing, gone, live = dict[str, None](), dict[str, None](), 0
        if is_complete or listed_ids:
            identifiers = list_live(self.store, recipe.namespace, table.name)
            while batch := [*islice(identifiers, 1000)]:
                live += len(batch)
                for identifier in index.list_lacking(batch):
                    (gone if identifier in listed_ids else missing)[identifier] = None
        if not is_complete:
            missing.clear()
        is_held = not self.accept_loss and loss.is_held(len(missing), live)
        if missing and (reason or is_held):
            report.losses[table.name] = len(missing)
            report.reasons[table.name] = reason or (
                "they are many: `sheaf ingest --accept-loss` deletes them"
            )
            missing.clear()
        for identifier in (*missing, *gone):
            self._rows.append((identifier, True, [], [], None, None))
            report.deleted += 1
        return is_complete and table.name not in report.losses

    def _note(self, name: str, code: str, field_: str | None, detail: str, done: str) -> bool:
        """Count a fault of a file; return whether it is named, which is up to a limit."""
        self.report.faults[code] = self.report.faults.get(code, 0) + 1
        self._named[code] += 1
        if done != REPAIRED:
            self._reason = self._reason or detail
        if len(self.report.first) < _SHOWN:
            self.report.first.append(f"{name}: {detail}"[:300])
        if self._named[code] <= _MOST_FAULTS:
            self._faults.fault(Fault(name, None, code, field_, detail, done))
        elif self._named[code] == _MOST_FAULTS + 1:
            detail = f"{_MOST_FAULTS:,} of {code} are named"
            self._faults.fault(Fault(name, None, "faults-cut", None, detail, "counted"))
        return self._named[code] <= _MOST_FAULTS
