"""Pages of record lists, complete even if snapshots are published meanwhile.

OAI-PMH 2.0, sections 2.7.1 (selective harvesting) and 3.5 (flow control).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from functions.http.http_message import show
from functions.kinds import DOCUMENTED
from functions.oai import token as tokens
from functions.oai.answer import ColumnsOf, RecordList, Render, Resumption
from functions.oai.format import Format, FormatDrift, Formats, is_selective, select_available
from functions.oai.request import (
    LIST_IDENTIFIERS,
    NO_FORMAT,
    NO_RECORDS,
    NO_SETS,
    OAIError,
    OaiFault,
    OaiRequest,
    error,
)
from functions.oai.token import Token, find_manifest, is_known, name_set
from functions.reading.as_of import PointerReading
from functions.reading.record_rows import DOCUMENT, join_pages
from functions.reading.repository import PublishedRecord, RecordSelection, Repository
from functions.snapshot import instant
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Manifest, Span

_NEAR = 32  # records behind a page
_HEADERS, _READ, _DOCUMENTS = 8000, 2000, 128
"""Headers, records and records with documents in a page's first batch, when their size is unknown.
Few documents, because they may be large; many headers, because each batch may cost a request."""
_GROWTH = 4
"""A batch has at most this many times the records so far: the next ones may be larger."""


@dataclass(frozen=True, slots=True)
class _Walk:
    """A list and its progress: the next page begins at `position` of the snapshot."""

    verb: str
    format: Format
    set: str | None
    start: datetime | None
    end: datetime | None
    manifest: Manifest
    position: int = 1
    cursor: int = 0
    size: int = 0
    pinned: bool = False

    def selection(self) -> RecordSelection:
        """Return the rest of the list in its snapshot."""
        chosen = self.manifest.select(self.start, self.end, self.format.prefix)
        span = Span(max(chosen[0].first, self.position), chosen[-1].last) if chosen else Span(1, 0)
        return RecordSelection(tuple(self.format.crosswalks), span, self.set)

    @property
    def sifts(self) -> bool:
        """Whether some records may be unavailable in the format."""
        return is_selective(self.format, self.manifest.kinds())

    def arguments(self) -> tuple[tuple[str, str], ...]:
        """Return the original arguments of the list."""
        arguments = {
            "metadataPrefix": self.format.prefix,
            "set": self.set,
            "from": self.start and instant.to_text(self.start),
            "until": self.end and instant.to_text(self.end),
        }
        return tuple((name, value) for name, value in arguments.items() if value)

    def token(self) -> str:
        """Return the token that continues the list."""
        return Token(
            verb=self.verb,
            prefix=self.format.prefix,
            set=self.set,
            start=self.start,
            end=self.end,
            snapshot=self.manifest.snapshot,
            position=self.position,
            cursor=self.cursor,
            size=self.size,
            namespace=self.manifest.namespace,
            store=self.manifest.store,
        ).to_text()


class _Batches:
    """Records of a list, read in batches of as many as are likely to fit on a page.

    `read` returns records of a selection, up to a number. The first batch has up to `first`, and
    all have up to `limit` records.
    """

    def __init__(
        self,
        read: Callable[[RecordSelection, int], Sequence[PublishedRecord]],
        selection: RecordSelection,
        first: int,
        limit: int,
    ) -> None:
        self._read, self._rest = read, selection
        self._first, self._limit = first, limit
        self._batches: list[Sequence[PublishedRecord]] = []
        self._count, self._more = 0, not selection.is_empty

    def read(self, likely: int | None) -> Sequence[PublishedRecord]:
        """Return the next batch, empty at the end of the list or of the page (see answer.Read)."""
        wanted = self._first
        if self._count:
            wanted = self._limit
            if likely is not None:
                wanted = min(_GROWTH * self._count, likely * 9 // 8 + 1)
        wanted = min(wanted, self._limit - self._count)
        if not self._more or wanted <= 0:
            return ()
        # One extra record shows whether more follow. The size of the list cannot: if the list
        # outlived its snapshot, the size is an estimate.
        records = self._read(self._rest, wanted + 1)
        batch, self._more = records[:wanted], len(records) > wanted
        if batch:
            self._batches.append(batch)
            self._count += len(batch)
            self._rest = self._rest.behind(batch[-1].position)
        return batch

    def take(self, count: int) -> tuple[Sequence[PublishedRecord], bool]:
        """Return the first `count` records that were read, and whether more follow.

        The others must be of the last batch.
        """
        if not self._batches:
            return (), False
        left = self._count - count
        if left:
            self._batches[-1] = self._batches[-1][:-left]
        return join_pages(self._batches), self._more or left > 0


class ListService:
    """Answers ListRecords and ListIdentifiers."""

    def __init__(
        self,
        repository: Repository,
        formats: Formats,
        drift: FormatDrift,
        fields: ColumnsOf,
        *,
        named_sets: bool = False,
    ):
        """`named_sets`: the configuration names sets, which may have no record yet."""
        self._fields = fields
        self._named_sets = named_sets
        self._drift = drift
        self._repository = repository
        self._formats = formats

    def page(
        self, request: OaiRequest, reading: PointerReading, limit: int, render: Render
    ) -> RecordList:
        """Return the requested page as of `reading`, with up to `limit` records.

        It has only as many records as `render` takes.
        """
        if request.token is None:
            return self._page(self._begin(request, reading), reading, limit, render)
        # Another reader's clock may be ahead, and the store's id may begin with that snapshot.
        newest = self._repository.manifest(reading.reached)
        token = Token.of_store(request.token, request.verb, newest)
        walk = self._resume(token, reading)
        try:
            return self._page(walk, reading, limit, render)
        except MissingObject:
            # The snapshot was retired after its manifest was read.
            if walk.manifest.snapshot >= reading.entry.snapshot:
                raise
            moved = self._move(walk, reading, walk.manifest.snapshot)
            return self._page(moved, reading, limit, render)

    def _begin(self, request: OaiRequest, reading: PointerReading) -> _Walk:
        manifest = self._repository.manifest(reading.entry.snapshot)
        prefix = request.prefix or ""
        row = self._formats.present(manifest).get(prefix)
        faults = []
        if row is None:
            faults.append(OaiFault(NO_FORMAT, f"There is no metadata format {show(prefix)} here."))
        has_sets = manifest.sets or self._named_sets or manifest.origin_sets
        if request.set is not None and not has_sets:
            faults.append(OaiFault(NO_SETS, "This repository has no sets."))
        if row is None or faults:
            raise OAIError(*faults)
        if request.set is not None and not self._repository.has_set(manifest, request.set):
            raise error(NO_RECORDS, f"There are no records in a set {show(request.set)}.")
        walk = _Walk(request.verb, row, request.set, request.start, request.end, manifest)
        size = self._size(walk)
        if not size:
            raise _nothing()
        return replace(walk, size=size)

    def _resume(self, token: Token, reading: PointerReading) -> _Walk:
        if not is_known(self._repository, token.snapshot, reading):
            raise tokens.refusal()
        manifest, retired = find_manifest(self._repository, token.snapshot, reading)
        row = self._formats.of_snapshot(manifest).get(token.prefix)
        if row is None:
            raise tokens.refusal()
        token = name_set(self._repository, manifest, token)
        walk = _Walk(
            token.verb,
            row,
            token.set,
            token.start,
            token.end,
            manifest,
            token.position,
            token.cursor,
            token.size,
            pinned=not retired,
        )
        if token.position > manifest.last_position:
            raise tokens.refusal()
        return self._move(walk, reading, token.snapshot) if retired else walk

    def _move(self, walk: _Walk, reading: PointerReading, snapshot: int) -> _Walk:
        """Continue in the snapshot in effect, by position: changed records come again, later.

        If the format's rendering changed after `snapshot`, all records changed: the list starts
        again.
        """
        manifest = self._repository.manifest(reading.entry.snapshot)
        making = manifest.formats.get(walk.format.prefix)
        anew = making is not None and making.snapshot > snapshot
        place = 1 if anew else walk.position
        moved = replace(walk, manifest=manifest, position=place, pinned=False)
        return replace(moved, size=walk.cursor + self._size(moved))

    def _page(self, walk: _Walk, reading: PointerReading, limit: int, render: Render) -> RecordList:
        page, more = self._fill(walk, limit, render)
        place: int | None = None
        if more and walk.sifts:
            place = self._find_next(walk, page)
            if place is not None and not select_available(page.records, walk.format):
                walk = replace(walk, position=place)
                page, more = self._fill(walk, limit, render)
                place = self._find_next(walk, page) if more else None
            more = place is not None
        if not page.count:
            raise _nothing()
        if walk.verb != LIST_IDENTIFIERS:
            current = self._repository.manifest(reading.entry.snapshot)
            self._drift.check(current, walk.format.prefix)
        reached = walk.cursor + page.count
        last = page.records[-1].position
        onward = replace(walk, position=place or last + 1, cursor=reached, size=reached)
        if more:
            rest: _Walk | None = replace(onward, size=max(walk.size, reached + 1))
        else:
            rest = self._roll_over(onward, reading)
        resumption = None
        if rest is not None:
            resumption = Resumption(rest.token(), rest.size, walk.cursor)
        elif walk.cursor:
            resumption = Resumption("", reached, walk.cursor)
        return replace(
            page,
            resumption=resumption,
            pinned=walk.pinned and more,
            arguments=walk.arguments() if walk.cursor else (),
        )

    def _find_next(self, walk: _Walk, page: RecordList) -> int | None:
        """Return the position of the next record behind a page that is available in the format.

        Most often it is near. Otherwise the repository searches: there may be more records without
        the format than one request can render away.
        """
        prefix = walk.format.prefix
        rest = walk.selection().behind(page.records[-1].position)
        read = partial(self._repository.page, walk.manifest, headers=False)
        near = read(rest, _NEAR, fields=self._columns(walk))
        records = select_available(near, walk.format)
        if not records and len(near) == _NEAR:
            behind = rest.behind(near[-1].position)
            records = read(replace(behind, prefix=prefix), 1, fields=(DOCUMENT,))
        return records[0].position if records else None

    def _fill(self, walk: _Walk, limit: int, render: Render) -> tuple[RecordList, bool]:
        """Return the next records of a list that fit, and whether more follow."""
        headers = walk.verb == LIST_IDENTIFIERS
        # Only the harvested documents show which records came in a format.
        sifts = headers and walk.sifts
        empty = RecordList(
            (),
            None if headers else walk.format,
            None,
            walk.manifest.snapshot,
            since=walk.manifest.since(walk.format.prefix),
            within=walk.format if sifts else None,
        )
        first, selection = _HEADERS, walk.selection()
        if sifts or not headers:
            kinds = DOCUMENTED & {*selection.kinds} & walk.manifest.kinds().keys()
            first = _DOCUMENTS if kinds else _READ
        read = partial(
            self._repository.page,
            walk.manifest,
            headers=headers and not sifts,
            fields=self._columns(walk),
        )
        batches = _Batches(read, selection, first, limit)
        body, count = render(empty, batches.read)
        records, more = batches.take(count)
        return replace(empty, records=records, body=body), more

    def _columns(self, walk: _Walk) -> Collection[str] | None:
        """Return the columns that a page needs: of headers, what shows the format of a record."""
        if walk.verb == LIST_IDENTIFIERS:
            return (DOCUMENT,)
        return self._fields(walk.format.prefix, walk.manifest.kinds())

    def _roll_over(self, walk: _Walk, reading: PointerReading) -> _Walk | None:
        """Return how an ended list continues in snapshots published since, or None."""
        if reading.entry.snapshot <= walk.manifest.snapshot:
            return None
        newer = self._repository.manifest(reading.entry.snapshot)
        # Start after this snapshot's instant, not only behind its last position: late records were
        # given a later instant. If the format's rendering changed since, all of its records count.
        behind = walk.manifest.effective + timedelta(seconds=1)
        since = [s.first for s in newer.select(behind, None, walk.format.prefix)]
        onward = replace(walk, manifest=newer, position=min(since, default=newer.last_position + 1))
        added = self._size(onward)
        return replace(onward, size=walk.cursor + added) if added else None

    def _size(self, walk: _Walk) -> int:
        selection = walk.selection()
        if selection.span.first > selection.span.last:
            return 0
        return self._repository.size(walk.manifest, selection)


def _nothing() -> Exception:
    return error(NO_RECORDS, "Nothing matches, or what matched has changed since.")
