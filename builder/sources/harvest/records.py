"""Records of a run: the writer to a sink, and the part files that hold their rows.

The writer takes the records of a page, or requests those of its headers. It counts lost ones. A
part is in one of folder.FORMS.
"""

import json
import mmap
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.sources.harvest.errors import HarvestError, Unanswered
from builder.sources.harvest.page import ListPage, PageEntry, records
from builder.sources.harvest.state import LOST, RunState
from builder.sources.harvest.version import DC, ROW, HarvestedRow, Sight
from builder.sources.harvest.window import LONGEST, delay, is_before, is_later, is_outside
from builder.store.durable import sync
from builder.store.parquet.reader import read_rows
from builder.store.parquet.writer import RowWriter
from functions.snapshot.errors import StoreError, describe_failure
from functions.snapshot.instant import from_datestamp

if TYPE_CHECKING:
    from builder.sources.harvest.folder import HarvestFolder

NO_STAMP = "its datestamp is not valid in OAI-PMH"
NO_METADATA = "it has no metadata, and is not deleted"
Ask = Callable[[Mapping[str, str]], ListPage]
"""Sends a request and returns the response; raises Unanswered, and Deferred to stop everything."""
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<records>\n'
_FOOT = "</records>\n"
_FAULT = re.compile(rb"<\?fault (.*?)\?>", re.DOTALL)
_BATCH = 2048
_BEHIND = -5
"""Where the columns behind those of Dublin Core begin."""
_encode = json.JSONEncoder(ensure_ascii=False).encode
_OPTIONAL = dict.fromkeys((*(f"dc_{name}" for name in DC), "fault", "single"))


@dataclass(slots=True)
class RecordWriter:
    """Writer of a run's records; `date` is the responseDate of their page."""

    ask: Ask
    sink: "HarvestFolder"
    run: RunState
    date: str = ""

    def take(self, entry: PageEntry) -> None:
        """Store a record, or request the record of a header."""
        run, is_dated = self.run, from_datestamp(entry.datestamp) is not None
        if is_dated:
            if run.last and is_before(entry.datestamp, run.last):
                run.ordered = False
            run.rises += run.last not in ("", entry.datestamp)
            run.last = entry.datestamp
        if run.verb == "ListRecords":
            self._measure_lag(entry)
            is_new = self._keep(entry)
            # Count a record whose datestamp lies outside the request.
            if is_new and is_dated and is_later(entry.datestamp, run):
                run.counts.later += 1
            elif is_new and is_dated and (run.begin or run.until):
                run.counts.outside += is_outside(entry.datestamp, run)
        elif sight := self.sink.seen.meet(run.number, entry.identifier, entry.datestamp):
            run.counts.add(sight)
        elif not self.fetch(entry.identifier, ""):
            run.bad = max(run.bad, entry.datestamp)
        if not run.high or is_before(run.high, run.last):
            run.high = run.last

    def _measure_lag(self, entry: PageEntry) -> None:
        """Count a record that is new, though the walk before should have listed it."""
        run = self.run
        if not run.former or from_datestamp(entry.datestamp) is None:
            return
        lag = delay(entry.datestamp, run.former)
        exact = 86_400 if len(entry.datestamp) == 10 else 0
        if lag > exact and not self.sink.seen.has(entry.identifier, entry.datestamp):
            run.late += 1
            # What appears years later was hidden; no overlap finds it.
            run.lag = max(run.lag, lag if lag <= LONGEST / 2 else 0.0)

    def _keep(self, entry: PageEntry, single: bool | None = None) -> bool:
        """Store a record. Return whether this version is new in the run.

        `single` is true if GetRecord gave it, which speaks for all sets.
        """
        run, counts = self.run, self.run.counts
        if not entry.identifier:
            run.lose("", "it has no identifier")
            return False
        faults = [entry.fault] if entry.fault is not None else []
        faults += [NO_STAMP] if from_datestamp(entry.datestamp) is None else []
        mended = bool(faults)
        faults += [NO_METADATA] if entry.bare else []
        fault = "; ".join(faults) or None
        row = HarvestedRow(*entry[:6], self.date, run.number, fault, single)
        sight = self.sink.add(row)
        run.find(entry.identifier)
        counts.add(sight)
        if sight is Sight.AGAIN:
            return False
        run.gained += sight is not Sight.ANOTHER
        if sight is not Sight.SAME:
            counts.deleted += entry.deleted
            counts.mended += mended
            if entry.bare and len(run.bare) < LOST and entry.identifier not in run.bare:
                run.bare.append(entry.identifier)
            counts.bare += entry.bare
        return True

    def fetch(self, identifier: str, why: str, listed: bool = False) -> bool:
        """Request one record and store it, or count it as lost. Return whether it is not lost.

        A record that does not exist is deleted, unless it was `listed` just now.
        """
        if not identifier:
            self.run.lose("", why)
            return False
        prefix = self.sink.state.prefix
        arguments = {"verb": "GetRecord", "metadataPrefix": prefix, "identifier": identifier}
        try:
            page = self.ask(arguments)
        except Unanswered as error:
            if error.later:
                raise
            self.run.lose(identifier, why or str(error))
            return False
        if page.errors and page.errors[0][0] == "idDoesNotExist" and not listed:
            self.run.find(identifier)
            return True
        came = next((entry for entry in page.entries if entry.identifier == identifier), None)
        if came is not None:
            self.date = page.date or self.date
            self._keep(came, single=True)
            return True
        fault = page.errors[0] if page.errors else ("a response without that record",)
        self.run.lose(identifier, why or ": ".join(fault))
        return False


def open_part(path: Path, form: str) -> "PartWriter":
    """Return a writer of a part in that form. Raises HarvestError."""
    with _wrap_errors(path):
        if form == "parquet":
            return _Parquet(path)
        return _Texts(path, _line) if form == "jsonl" else _Texts(path, _element, _HEAD, _FOOT)


def read_part(path: Path, run: int, *, dc: bool = True) -> Iterator[HarvestedRow]:
    """Yield the rows of a part of that run, in order. Raises HarvestError.

    Rows from raw XML have no `harvested`. Their `fault` is a processing instruction before them.
    Without `dc`, the columns of Dublin Core are not read from Parquet.
    """
    columns = ROW if dc else [column for column in ROW if not column.name.startswith("dc_")]
    with _wrap_errors(path):
        if path.suffix == ".parquet":
            yield from map(_row, read_rows(path, columns, _BATCH))
        elif path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as file:
                for line in file:
                    document = _OPTIONAL | json.loads(line)
                    yield _row([document[column.name] for column in columns])
        else:
            with (
                path.open("rb") as elements,
                mmap.mmap(elements.fileno(), 0, access=mmap.ACCESS_READ) as data,
            ):
                at = 0
                for entry in records(data):
                    fault = _FAULT.search(data, at, entry.start)
                    at = entry.end
                    yield HarvestedRow(*entry[:6], "", run, fault[1].decode() if fault else None)


def read_headers(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the identifier and the sets of each row of a part, in order. Raises HarvestError."""
    if path.suffix != ".parquet":
        yield from ((row.identifier, row.sets) for row in read_part(path, 0))
        return
    columns = [column for column in ROW if column.name in ("identifier", "sets")]
    with _wrap_errors(path):
        for identifier, sets in read_rows(path, columns, _BATCH):
            yield identifier, tuple(sets)


def _row(values: Sequence[Any]) -> HarvestedRow:
    """Return the row of the values of the columns ROW, those of Dublin Core perhaps left out."""
    identifier, datestamp, deleted, sets, *lists = values[:_BEHIND]
    dc = {name: tuple(texts) for name, texts in zip(DC, lists, strict=False) if texts is not None}
    return HarvestedRow(identifier, datestamp, deleted, tuple(sets), dc, *values[_BEHIND:])


def _values(row: HarvestedRow) -> tuple[Any, ...]:
    header = row.identifier, row.datestamp, row.deleted, row.sets
    further = row.record, row.harvested, row.run, row.fault, row.single
    return (*header, *map(row.dc.get, DC), *further)


class _Parquet:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = RowWriter(path, ROW, _BATCH, unlike={"record"})

    def append(self, row: HarvestedRow) -> None:
        try:
            self._rows.append(_values(row))
        except StoreError as error:
            raise HarvestError(str(error)) from error

    def close(self) -> None:
        with _wrap_errors(self._path):
            self._rows.close()
            sync(self._path)


class _Texts:
    """A part of texts, one for each row, between a head and a foot."""

    def __init__(
        self, path: Path, write: Callable[[HarvestedRow], str], head: str = "", foot: str = ""
    ) -> None:
        self._path, self._write, self._foot = path, write, foot
        self._file = path.open("w", encoding="utf-8")
        self._file.write(head)

    def append(self, row: HarvestedRow) -> None:
        with _wrap_errors(self._path):
            self._file.write(self._write(row))

    def close(self) -> None:
        with _wrap_errors(self._path):
            self._file.write(self._foot)
            self._file.close()
            sync(self._path)


PartWriter = _Parquet | _Texts
"""Writer of a part; `append` adds a row, `close` closes the file. Both raise HarvestError."""


def _line(row: HarvestedRow) -> str:
    """Return a row as JSON without null values."""
    values = zip((column.name for column in ROW), _values(row), strict=True)
    document = {name: value for name, value in values if value is not None}
    return _encode(document) + "\n"


def _element(row: HarvestedRow) -> str:
    fault = "" if row.fault is None else f"<?fault {row.fault.replace('?>', '? >')}?>\n"
    return f"{fault}{row.record}\n"


@contextmanager
def _wrap_errors(path: Path) -> Iterator[None]:
    """Raise errors of a part file as HarvestError."""
    try:
        yield
    except StoreError as error:
        raise HarvestError(str(error)) from error
    except OSError as error:
        raise HarvestError(f"{path} cannot be used: {describe_failure(error)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise HarvestError(f"{path} is damaged: {describe_failure(error)}"[:300]) from error
