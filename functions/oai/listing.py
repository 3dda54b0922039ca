"""Pages of record lists, complete even if snapshots are published meanwhile.

OAI-PMH 2.0, sections 2.7.1 (selective harvesting) and 3.5 (flow control).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from functions.http.http_message import show
from functions.oai import token as tokens
from functions.oai.answer import RecordList, Resumption
from functions.oai.format import Format, FormatDrift, Formats
from functions.oai.render.sheet import Sheet, fill_page
from functions.oai.render.template_filters import filter_records, sifts
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
from functions.oai.resumption import find_manifest, is_known, name_set
from functions.oai.token import Token
from functions.reading.as_of import PointerReading
from functions.reading.record_rows import DOCUMENT
from functions.reading.repository import RecordSelection, Repository
from functions.snapshot import instant
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Manifest, Span

_NEAR = 32  # records behind a page


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
        return sifts(self.format, self.manifest.kinds())

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


class ListService:
    """Answers ListRecords and ListIdentifiers."""

    def __init__(
        self,
        repository: Repository,
        formats: Formats,
        drift: FormatDrift,
        fields: Callable[[str], Collection[str] | None],
        *,
        named_sets: bool = False,
    ):
        """`fields` returns, by prefix, the columns that a format needs of a record (None: all).

        `named_sets`: the configuration names sets, which may have no record yet.
        """
        self._fields = fields
        self._named_sets = named_sets
        self._drift = drift
        self._repository = repository
        self._formats = formats

    def page(
        self,
        request: OaiRequest,
        reading: PointerReading,
        limit: int,
        new_sheet: Callable[[], Sheet | None] = lambda: None,
    ) -> RecordList:
        """Return the requested page as of `reading`, with up to `limit` records.

        It has only as many records as fit on a new sheet.
        """
        if request.token is None:
            return self._page(self._begin(request, reading), reading, limit, new_sheet)
        # Another reader's clock may be ahead, and the store's id may begin with that snapshot.
        newest = self._repository.manifest(reading.reached)
        token = Token.of_store(request.token, request.verb, newest)
        walk = self._resume(token, reading)
        try:
            return self._page(walk, reading, limit, new_sheet)
        except MissingObject:
            # The snapshot was retired after its manifest was read.
            if walk.manifest.snapshot >= reading.entry.snapshot:
                raise
            moved = self._move(walk, reading, walk.manifest.snapshot)
            return self._page(moved, reading, limit, new_sheet)

    def _begin(self, request: OaiRequest, reading: PointerReading) -> _Walk:
        manifest = self._repository.manifest(reading.entry.snapshot)
        prefix = request.prefix or ""
        row = self._formats.get(prefix)
        faults = []
        if row is None or row not in self._formats.formats_for(manifest.kinds()):
            faults.append(OaiFault(NO_FORMAT, f"There is no metadata format {show(prefix)} here."))
        if request.set is not None and not manifest.sets and not self._named_sets:
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
        row = self._formats.get(token.prefix)
        if row is None or not is_known(self._repository, token.snapshot, reading):
            raise tokens.refusal()
        manifest, retired = find_manifest(self._repository, token.snapshot, reading)
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

    def _page(
        self,
        walk: _Walk,
        reading: PointerReading,
        limit: int,
        new_sheet: Callable[[], Sheet | None],
    ) -> RecordList:
        sheet = new_sheet()
        page, more = self._fill(walk, limit, sheet)
        place: int | None = None
        if more and walk.sifts:
            place = self._find_next(walk, page)
            if place is not None and not filter_records(page.records, walk.format):
                walk, sheet = replace(walk, position=place), new_sheet()
                page, more = self._fill(walk, limit, sheet)
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
            xml=sheet.finish() if sheet else None,
        )

    def _find_next(self, walk: _Walk, page: RecordList) -> int | None:
        """Return the position of the next record behind a page that is available in the format.

        Most often it is near. Otherwise the repository searches: there may be more records without
        the format than one request can render away.
        """
        prefix = walk.format.prefix
        rest = walk.selection().behind(page.records[-1].position)
        fields = (DOCUMENT,) if walk.verb == LIST_IDENTIFIERS else self._fields(prefix)
        read = partial(self._repository.page, walk.manifest, headers=False)
        near = read(rest, _NEAR, fields=fields)
        records = filter_records(near, walk.format)
        if not records and len(near) == _NEAR:
            behind = rest.behind(near[-1].position)
            records = read(replace(behind, prefix=prefix), 1, fields=(DOCUMENT,))
        return records[0].position if records else None

    def _fill(self, walk: _Walk, limit: int, sheet: Sheet | None) -> tuple[RecordList, bool]:
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
        fields = (DOCUMENT,) if sifts else self._fields(walk.format.prefix)
        return fill_page(
            self._repository,
            walk.manifest,
            empty,
            walk.selection(),
            limit,
            sheet,
            fields=fields,
            headers=headers and not sifts,
        )

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
