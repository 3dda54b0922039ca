"""Rows of the table of records: columns that a list reads, and pages of records.

A page holds its records by columns, because they are read and rendered that way. Making an object
for each record and a mapping of its fields took a third of a page's time.

Positions are the ranges of a listing's versions, and a span's shares of the publishes.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any, overload

from functions.kinds import CAPTURES, DOCUMENTED, WHOLE, find_kind
from functions.kinds.kind import ItemKind
from functions.reading.repository import PublishedRecord
from functions.snapshot import oai_name, obi, schema
from functions.snapshot.errors import DamagedStore
from functions.snapshot.manifest import Key, Manifest, RowGroup, Span
from functions.snapshot.manifest import Sequence as Publish

HEADER = ("position", "identifier", "kind", "datestamp", "deleted", "sets")
"""The columns of every page: the attributes of a PublishedRecord besides its fields."""

_READ = ("position", "sequence", "identifier", "kind", "deleted", "sets")
_FIELDS = tuple(column.name for column in schema.CONTENT)
DOCUMENT = obi.DOCUMENT.name
"""The column with the fields of kinds.DOCUMENTED; read only if there are such items."""
_OF_CAPTURES = frozenset(column.name for column in schema.CAPTURE)


@dataclass(frozen=True, slots=True)
class Range:
    """Positions that may hold members of a set: in the main files, or in the set's own copy."""

    first: int
    last: int
    copied: bool


def living_sequences(manifest: Manifest, kinds: Collection[str]) -> set[int]:
    """Return the numbers of the sequences that still list an item of `kinds`."""
    return {s.number for s in manifest.sequences if any(s.records.get(kind) for kind in kinds)}


def find_spans(manifest: Manifest, living: set[int], kinds: Collection[str]) -> list[Span]:
    """Return the positions that items of `kinds` may have, ascending, adjacent spans joined.

    Only sequences whose numbers are in `living` are considered.
    """
    spans: list[Span] = []
    for s in manifest.sequences:
        for span in s.spans(kinds) if s.number in living else ():
            if spans and spans[-1].last == span.first - 1:
                spans[-1] = Span(spans[-1].first, span.last)
            else:
                spans.append(span)
    return spans


def walk_back(manifest: Manifest, kinds: Collection[str], counts: Iterable[int]) -> Iterator[Span]:
    """Yield the last positions of items of `kinds`, then those before them, and so on.

    Each span has as many such positions as the next of `counts`; the last one may have fewer.
    Positions of other kinds within it do not count.
    """
    stretches = find_spans(manifest, living_sequences(manifest, kinds), kinds)
    for count in counts:
        if not stretches:
            return
        first, last = 0, stretches[-1].last
        while stretches and count:
            stretch = stretches.pop()
            first = max(stretch.first, stretch.last - count + 1)
            count -= stretch.last - first + 1
            if first > stretch.first:
                stretches.append(Span(stretch.first, first - 1))
        yield Span(first, last)


def span_shares(manifest: Manifest, span: Span) -> dict[int, float]:
    """Return, for each sequence that meets the span, the fraction of its positions in the span."""
    return {
        s.number: inside / (s.last - s.first + 1)
        for s in manifest.sequences
        if (inside := min(s.last, span.last) - max(s.first, span.first) + 1) > 0
    }


def position_in_key(key: Key, spec: str | None, default: int) -> int:
    """Return the position in a row group's bound; `default` if the bound is another listing's."""
    if isinstance(key, tuple):
        return key[1] if key[0] == spec else default
    return key if isinstance(key, int) else default


def estimate_rows(group: RowGroup, part: Range) -> int:
    """Return the approximate number of rows of the group within the range.

    A group of copies that also holds another set's records gives 0, because the number is unknown.
    """
    if part.copied:
        bounds = {key[0] for key in (group.first, group.last) if isinstance(key, tuple)}
        return group.rows if len(bounds) == 1 else 0
    first = position_in_key(group.first, None, part.first)
    last = position_in_key(group.last, None, part.last)
    return min(last, part.last) - max(first, part.first) + 1


class Page(Sequence[PublishedRecord]):
    """Immutable records by columns: those of HEADER, and fields.

    As a sequence, it makes each record on access.
    """

    __slots__ = ("_columns", "_count", "_fields")

    def __init__(self, columns: Mapping[str, Sequence[Any]]):
        """`columns` are of one length."""
        self._columns = columns
        self._count = len(columns["position"])
        self._fields = [name for name in columns if name not in HEADER]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> PublishedRecord: ...

    @overload
    def __getitem__(self, index: slice) -> "Page": ...

    def __getitem__(self, index: int | slice) -> "PublishedRecord | Page":
        if isinstance(index, slice):
            return self._with({name: values[index] for name, values in self._columns.items()})
        columns, deleted = self._columns, self._columns["deleted"][index]
        return PublishedRecord(
            columns["position"][index],
            columns["identifier"][index],
            columns["kind"][index],
            columns["datestamp"][index],
            deleted,
            columns["sets"][index],
            {} if deleted else {name: columns[name][index] for name in self._fields},
        )

    def __iter__(self) -> Iterator[PublishedRecord]:
        return map(self.__getitem__, range(self._count))

    @staticmethod
    def join(pages: Sequence["Page"]) -> "Page":
        """Return pages of one class as one; a column missing in one is None in its rows."""
        names = dict.fromkeys(chain.from_iterable(page._columns for page in pages))
        columns = ((n, (p._columns.get(n) or [None] * len(p) for p in pages)) for n in names)
        return pages[0]._with({name: [*chain.from_iterable(values)] for name, values in columns})

    def _with(self, columns: Mapping[str, Sequence[Any]]) -> "Page":
        """Return a page of the same class with other columns."""
        return Page(columns)

    @property
    def names(self) -> Collection[str]:
        """Names of the columns."""
        return self._columns.keys()

    def column(self, name: str) -> Sequence[Any]:
        """Return the values of a column, also those of deleted records. Raises KeyError."""
        return self._columns[name]


class DocumentPage(Page):
    """Records of a kind by columns, HEADER and DOCUMENT; documents are parsed only when needed.

    The parsed documents of a whole page do not fit into a processor's cache; those of a part do.
    """

    __slots__ = ("_kind", "_members")

    def __init__(
        self, columns: Mapping[str, Sequence[Any]], kind: ItemKind, members: Sequence[str]
    ):
        """`members` are those that the records get of their documents."""
        super().__init__(columns)
        self._kind, self._members = kind, members

    @staticmethod
    def of(records: Page, kind: ItemKind, fields: Collection[str] | None) -> "DocumentPage":
        """Return a page of a kind; `fields` are needed (None, or none of its columns: all)."""
        names = [column.name for column in kind.columns]
        members = [name for name in names if name in (fields or ())] or names
        return DocumentPage({n: records.column(n) for n in (*HEADER, DOCUMENT)}, kind, members)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return super().__getitem__(index)
        place = range(len(self))[index]
        return self._parse(place, place + 1)[0]

    def parse(self, size: int) -> Iterator[Page]:
        """Yield pages of up to `size` records with the members as columns.

        Raises DamagedStore.
        """
        for start in range(0, len(self), size):
            yield self._parse(start, start + size)

    def column(self, name: str) -> Sequence[Any]:
        """Return the values of a column; members are parsed each time. Raises KeyError."""
        parsed = self if name in self._columns else self._parse(0, len(self))
        return super().column(name) if parsed is self else parsed.column(name)

    def _parse(self, start: int, end: int) -> Page:
        header = {name: self._columns[name][start:end] for name in HEADER}
        rows = zip(self._columns[DOCUMENT][start:end], header["deleted"], strict=True)
        texts = [None if deleted else text or "" for text, deleted in rows]
        try:
            return Page({**header, **self._kind.read_members(texts, self._members)})
        except ValueError as error:
            if end - start > 1:  # find the one that is damaged
                for place in range(start, min(end, len(self))):
                    self._parse(place, place + 1)
            name = header["identifier"][0]
            raise DamagedStore(f"the document of {name} is damaged") from error

    def _with(self, columns: Mapping[str, Sequence[Any]]) -> Page:
        return DocumentPage(columns, self._kind, self._members)


def join_pages(parts: Sequence[Sequence[PublishedRecord]]) -> Sequence[PublishedRecord]:
    """Join consecutive parts of a list."""
    if len(parts) == 1:
        return parts[0]
    pages = [part for part in parts if isinstance(part, Page)]
    is_alike = len(pages) == len(parts) and len({*map(type, parts)}) == 1
    return Page.join(pages) if is_alike else tuple(chain.from_iterable(parts))


def runs(records: Sequence[PublishedRecord]) -> Iterator[tuple[str, Sequence[PublishedRecord]]]:
    """Yield the runs of neighbouring records of one kind, each with its kind.

    Records of one kind in a publish have neighbouring positions, so runs are few, mostly one.
    """
    if isinstance(records, Page):
        kinds: Sequence[str] = records.column("kind")
    else:
        kinds = [record.kind for record in records]
    first = 0
    for kind, run in groupby(kinds):
        last = first + sum(1 for _ in run)
        yield kind, records[first:last]
        first = last


def columns(
    *, headers: bool, of_set: bool, fields: Collection[str] | None = None
) -> tuple[str, ...]:
    """Return the columns to read for a list of headers or records, of a set or of all.

    `fields` are the columns that a record needs (None: all); DOCUMENT means those of
    kinds.DOCUMENTED.
    """
    header = (*_READ, "left_sets") if of_set else _READ
    if headers:
        return header
    return (*header, *(name for name in _FIELDS if fields is None or name in fields))


def page(rows: Mapping[str, Sequence[Any]], publishes: Sequence[Publish], spec: str | None) -> Page:
    """Return rows of `columns` as a page of a list of the set `spec` (None: of all sets).

    It has the columns that items of its kinds have. `publishes` are those of the manifest.
    """
    kinds = {*rows["kind"]}
    left_out = {"sequence", "left_sets"} | (set() if kinds & CAPTURES else _OF_CAPTURES)
    left_out |= set() if kinds & DOCUMENTED else {DOCUMENT}
    shown: dict[str, Any] = {name: rows[name] for name in rows if name not in left_out}
    stamps = {number: publishes[number - 1].effective for number in {*rows["sequence"]}}
    shown["datestamp"] = [stamps[number] for number in rows["sequence"]]
    shown["sets"] = [tuple(sets or ()) for sets in rows["sets"]]
    if spec is not None and any(rows["left_sets"]):
        shown["deleted"] = [*rows["deleted"]]
        for row, left in enumerate(rows["left_sets"]):
            if left and not any(oai_name.is_within_set(s, spec) for s in shown["sets"][row]):
                shown["deleted"][row] = True
                shown["sets"][row] = tuple(s for s in left if oai_name.is_within_set(s, spec))
    return Page(shown)


def publish_of(manifest: Manifest, position: int) -> Publish | None:
    """Return the publish that assigned a position; None if none did."""
    place = bisect_right(manifest.sequences, position, key=lambda publish: publish.first) - 1
    return manifest.sequences[place] if place >= 0 else None


def lacking(records: Page) -> list[str] | None:
    """Return the sorted identifiers of records whose fields are in the table of documents.

    None if all records have their fields as columns, or if their fields were not requested.
    """
    kinds = {*records.column("kind")}
    if kinds <= CAPTURES or (kinds <= WHOLE and DOCUMENT not in records.names):
        return None
    if kinds <= WHOLE:
        return []
    return sorted(r.identifier for r in records if r.kind not in WHOLE and not r.deleted)


def fill_documents(records: Page, texts: Mapping[str, str]) -> Iterator[PublishedRecord]:
    """Yield the records with the fields of their documents, `texts` by identifier.

    Raises DamagedStore for a missing or invalid document.
    """
    for record in records:
        if record.kind in CAPTURES or record.deleted:
            yield record
            continue
        try:
            if record.kind in WHOLE:
                text = record.fields.get(DOCUMENT, "{}")
            else:
                text = texts[record.identifier]
            yield replace(record, fields=find_kind(record.kind).read(text))
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedStore(f"the document of {record.identifier} is damaged") from error
