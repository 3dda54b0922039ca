"""Pages: neighbouring records of a list, held by columns, for that is how they are read and made.

To make an object of each record, and a table of its fields, took a third of a page's time.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, overload

from functions.oai.repository import Record

HEADER = ("position", "identifier", "kind", "datestamp", "deleted", "sets")
"""The columns that every page has; they are what a Record holds besides its fields."""


class Page(Sequence[Record]):
    """Records by columns: those of HEADER, and fields. None of it is changed.

    It is a sequence of records, each made when it is asked for.
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
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> "Page": ...

    def __getitem__(self, index: int | slice) -> "Record | Page":
        if isinstance(index, slice):
            return Page({name: values[index] for name, values in self._columns.items()})
        columns, deleted = self._columns, self._columns["deleted"][index]
        return Record(
            columns["position"][index],
            columns["identifier"][index],
            columns["kind"][index],
            columns["datestamp"][index],
            deleted,
            columns["sets"][index],
            {} if deleted else {name: columns[name][index] for name in self._fields},
        )

    def __iter__(self) -> Iterator[Record]:
        return map(self.__getitem__, range(self._count))

    @staticmethod
    def joined(pages: Sequence["Page"]) -> "Page":
        """Return pages as one; a column that one of them lacks is None in its rows."""
        names = dict.fromkeys(chain.from_iterable(page._columns for page in pages))
        columns = ((n, (p._columns.get(n) or [None] * len(p) for p in pages)) for n in names)
        return Page({name: [*chain.from_iterable(values)] for name, values in columns})

    @property
    def names(self) -> Collection[str]:
        """The names of its columns."""
        return self._columns.keys()

    def column(self, name: str) -> Sequence[Any]:
        """Return the values of a column, also those of deleted records. Raises KeyError."""
        return self._columns[name]


def joined(parts: Sequence[Sequence[Record]]) -> Sequence[Record]:
    """Return parts of a list, one behind the other, as one."""
    if len(parts) == 1:
        return parts[0]
    pages = [part for part in parts if isinstance(part, Page)]
    return Page.joined(pages) if len(pages) == len(parts) else tuple(chain.from_iterable(parts))


def runs(records: Sequence[Record]) -> Iterator[tuple[str, Sequence[Record]]]:
    """Yield the runs of neighbouring records of one kind, each with that kind.

    By position a publish's records of one kind lie together: few runs, mostly one.
    """
    if isinstance(records, Page):
        kinds: Sequence[str] = records.column("kind")
    else:
        kinds = [record.kind for record in records]
    first = 0
    for kind, some in groupby(kinds):
        last = first + sum(1 for _ in some)
        yield kind, records[first:last]
        first = last
