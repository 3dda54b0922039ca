"""Pages of templates, whose documents are parsed only when they are needed.

The parsed documents of a whole page do not fit into a processor's cache; those of a part do.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, overload

from functions.oai.repository import PublishedRecord
from functions.oai.repository_duckdb.record_rows import DOCUMENT, HEADER, Page
from functions.snapshot import documents
from functions.snapshot.errors import DamagedStore


class TemplatePage(Page):
    """Templates by columns: those of HEADER, and DOCUMENT."""

    __slots__ = ("_members",)

    def __init__(self, columns: Mapping[str, Sequence[Any]], members: Sequence[str]):
        """`members` are those that the records get of their documents."""
        super().__init__(columns)
        self._members = members

    @staticmethod
    def of(records: Page, fields: Collection[str] | None) -> "TemplatePage":
        """Return a page of templates; `fields` are needed (None, or none of a template: all)."""
        wanted = {*documents.MEMBERS} & {*(fields or ())} or {*documents.MEMBERS}
        members = [name for name in documents.MEMBERS if name in wanted]
        return TemplatePage({n: records.column(n) for n in (*HEADER, DOCUMENT)}, members)

    @overload
    def __getitem__(self, index: int) -> PublishedRecord: ...

    @overload
    def __getitem__(self, index: slice) -> Page: ...

    def __getitem__(self, index: int | slice) -> PublishedRecord | Page:
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
            return Page({**header, **documents.read_members(texts, self._members)})
        except ValueError as error:
            if end - start > 1:  # find the one that is damaged
                for place in range(start, min(end, len(self))):
                    self._parse(place, place + 1)
            name = header["identifier"][0]
            raise DamagedStore(f"the document of {name} is damaged") from error

    def _with(self, columns: Mapping[str, Sequence[Any]]) -> Page:
        return TemplatePage(columns, self._members)
