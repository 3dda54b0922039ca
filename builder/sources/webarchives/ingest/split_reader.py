"""Reads splits of archive files: the rows of captures and faults, and the result of each split."""

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from builder.intake import intake
from builder.intake.captures import Capture, Fault
from builder.intake.pool import Advance
from builder.intake.rows import IntakeWriter
from builder.sources.webarchives import recognise
from builder.sources.webarchives.backlog import ExchangeRecord
from builder.sources.webarchives.cdx.text import find_form, is_secondary
from builder.sources.webarchives.events import Edge, Event
from builder.sources.webarchives.ingest.plan import PART, SplitResult
from builder.sources.webarchives.ingest.splits import Split, reading_of
from builder.sources.webarchives.remote import files
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.side_records import Crawl
from builder.sources.webarchives.webarchive import ArchiveReader
from builder.store.durable import writing
from builder.store.workdir import Measured
from functions.config.configuration import Configuration
from functions.snapshot.errors import StoreError, describe_failure

_REPORT_EVERY = 500  # events


@dataclass(frozen=True, slots=True)
class Task:
    """Splits to read together, the settings, and the folder for their rows, which is not there yet.

    `threads` may read one index in parallel.
    """

    splits: tuple[Split, ...]
    folder: Path
    sets: tuple[str, ...]
    rules: DocumentRules
    threads: int = 1
    settings: Configuration | None = None
    """Settings for files that are not on this machine."""


def carry_out(task: Task, advance: Advance) -> list[SplitResult]:
    """Read the task's splits into its folder, and return their results. Raises StoreError."""
    with writing(task.folder):
        task.folder.mkdir(parents=True)
        rows = IntakeWriter(task.folder, PART)
        try:
            numbers = range(len(task.splits))
            results = [_SplitReading(task, number, rows, advance).read() for number in numbers]
        except BaseException:
            with contextlib.suppress(StoreError):  # the original error reports a full disk
                rows.close()
            raise
        rows.close()
    return results


class _SplitReading:
    """The reading of one split: rows are written as they come, and counted."""

    def __init__(self, task: Task, number: int, rows: IntakeWriter, advance: Advance) -> None:
        split = task.splits[number]
        self._task = task
        self._advance = advance
        self._number = number
        self._split = split
        self._rows = rows
        self._at = (rows.captured, rows.faulted)
        self._name = _text(split.file.path.name)
        self._skips: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._crawl = Crawl()
        self._edges: tuple[Edge | None, Edge | None] = (None, None)
        self._near: tuple[ExchangeRecord, ...] = ()
        self._reported = 0  # bytes and captures that were reported
        self._counted = 0
        self._own: tuple[str, ...] = ()
        self._own_captures = self._own_faults = 0
        self._bytes = split.file.bytes

    def read(self) -> SplitResult:
        """Read the split, and write its captures and faults; an unreadable file is a fault."""
        digest = form = detail = ""
        try:
            with self._open() as file:
                form, digest = self._read(file)
        except OSError as error:
            detail = describe_failure(error)
            self._fault(Fault(self._name, None, "unreadable", None, detail, "passed over"))
        captures = self._own_captures + self._rows.captured - self._at[0]
        self._tell(self._split.bytes)
        of, lost = self._split.file, "unreadable" in self._codes
        source = intake.IntakeSource(
            source=self._name,
            digest=digest,
            path=_text(of.recorded or of.label),
            format=form,
            bytes=self._bytes,
            captures=captures,
            skipped=self._skips.total(),
            faults=self._own_faults + self._rows.faulted - self._at[1],
            skips=dict(self._skips),
            codes=dict(self._codes),
            collections=tuple(s for s in self._task.sets if s.startswith("collection:")),
            reading=None if lost else reading_of(of, self._task.sets, self._task.rules),
            problem=detail,
            **asdict(self._crawl),
        )
        part, changed = self._task.folder.name, not lost and of.has_changed()
        near, own = self._near, self._own
        return SplitResult(self._split, source, part, changed, *self._at, *self._edges, near, own)

    def _open(self) -> BufferedReader:
        file = self._split.file
        if file.flaw:
            raise OSError(file.flaw)
        if file.address:
            assert self._task.settings is not None  # only files of this machine do without
            place = self._task.folder
            stream = files.open_file(self._split, self._task.settings, os.environ, place)
            self._bytes = self._bytes or stream.seek(0, os.SEEK_END)  # some servers tell no size
            stream.seek(0)
            return stream
        return file.path.open("rb")

    def _read(self, file: BufferedReader) -> tuple[str, str]:
        """Return the file's format and, if it was read completely, its digest."""
        if self._split.kind == "digest":
            return "", hashlib.file_digest(file, "sha256").hexdigest()
        whole = self._split.kind == "whole"
        head = recognise.read_head(file)
        file.seek(0)
        sought = recognise.is_zip(head)  # read by its directory, even if it is no WACZ
        stream: Any = Measured(file) if whole and not sought else file
        form = find_form(head) if whole else None
        if form:
            self._read_index(stream, form)
        elif whole and is_secondary(head):
            self._skips["secondary-index"] += 1
        else:
            start, end = self._split.start, self._split.end
            likely = self._split.file.is_likely
            events = ArchiveReader(stream, self._name, self._task.rules, start, end, further=likely)
            self._take(events, stream)
            form = events.form or recognise.recognise(head)
            self._edges, self._near = (events.first, events.next), tuple(events.near)
        if not whole:
            return form or "", ""
        if not sought:
            return form or "", stream.finish()
        file.seek(0)
        return form or "", hashlib.file_digest(file, "sha256").hexdigest()

    def _read_index(self, stream: Any, form: str) -> None:
        """Write an index's captures and faults as files of their own."""
        from builder.sources.webarchives.cdx import block, reader  # they load DuckDB

        task, name = self._task, f"own-{self._number:06}"
        index = block.IndexFile(self._name, task.folder, name, task.rules, task.sets)
        result = reader.read(stream, index, form, task.threads, self._report)
        self._skips, self._codes = result.skips, result.codes
        self._own_captures, self._own = result.captures, result.files
        self._own_faults = result.faults

    def _take(self, events: Iterable[Event], stream: BinaryIO) -> None:
        """Write the events of a file, and report progress now and then."""
        for number, event in enumerate(events, 1):
            if isinstance(event, Capture):
                self._rows.capture(event, tuple(sorted(event.sets + self._task.sets)))
            elif isinstance(event, Fault):
                self._fault(event)
            elif isinstance(event, Crawl):
                self._crawl = self._crawl.fill_from(event)
            else:
                self._skips[event.reason] += 1
            if number % _REPORT_EVERY == 0:
                self._tell(stream.tell() - self._split.start)

    def _tell(self, read: int) -> None:
        captures = self._own_captures + self._rows.captured - self._at[0]
        read = min(max(read, self._reported), self._split.bytes)
        self._report(read - self._reported, captures - self._counted)

    def _report(self, read: int, captures: int) -> None:
        self._reported += read
        self._counted += captures
        self._advance(read, captures)

    def _fault(self, fault: Fault) -> None:
        self._codes[fault.code] += 1
        self._rows.fault(fault)


def _text(path: str) -> str:
    """Return a path as text that any XML can hold, with `?` for bytes that are not UTF-8."""
    decoded = path.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "?" for c in decoded)
