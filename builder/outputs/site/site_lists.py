"""The lists of a snapshot as pages of a site: which there are, and how a page is made."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain as joined
from typing import TYPE_CHECKING, Protocol

from builder.outputs.site.chain import ChainSegment, PageChain, PageFrame, list_spans
from builder.outputs.site.set_pages import SetPages, SetPlan, SetShare
from functions.config.configuration import Configuration
from functions.kinds import DOCUMENTED
from functions.oai.answer import Answer, ColumnsOf, Content, OneRecord, RecordList, Resumption
from functions.oai.application import FRAME, LARGEST
from functions.oai.format import Format, Formats, is_selective, select_available
from functions.oai.render import check
from functions.oai.render.render import NothingRenderedError, Renderer, lookups
from functions.oai.render.template_filters import escape
from functions.oai.request import GET_RECORD, LIST_IDENTIFIERS, LIST_RECORDS
from functions.oai.set_list import configured_sets
from functions.reading.as_of import PointerReading
from functions.reading.duck_repository import DuckRepository
from functions.reading.record_rows import DOCUMENT
from functions.reading.repository import PublishedRecord, RecordSelection, read_batches
from functions.snapshot import instant, oai_name
from functions.snapshot.errors import ConfigurationError
from functions.snapshot.manifest import Manifest, Span
from functions.snapshot.pointer import Pointer, PointerEntry
from functions.snapshot.site_names import LETTERS
from functions.store.files import FILE

_LEFT = (
    f"SELECT DISTINCT sequence, left_sets FROM {FILE} "
    "WHERE position >= $first AND len(left_sets) > 0"
)
if TYPE_CHECKING:
    from builder.outputs.site.people import StaticAddress

_ROWS, _DOCUMENTS = 4096, 256
"""Records read at once, and those with documents, which may be large."""
_OAI = "http://www.openarchives.org/OAI/2.0/"


@dataclass(frozen=True, slots=True)
class SiteList:
    """A list: its folder, verb and format, and the set whose records it has (None: all)."""

    folder: str
    verb: str
    format: Format
    spec: str | None = None

    @property
    def is_headers(self) -> bool:
        """Whether it is ListIdentifiers."""
        return self.verb == LIST_IDENTIFIERS

    def token(self, first: int) -> str:
        """Return the token that leads to a page."""
        parts = (LETTERS[self.verb], self.format.prefix, str(first), self.spec)
        return ",".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class CutPage:
    """A page without its frame: its first position, and the XML of its `count` records."""

    first: int
    body: tuple[bytes, ...]
    count: int


class ArchiveFiles(Protocol):
    """Archived pages as files, which are made as links to them are asked for."""

    def find(self, stamp: str, modifier: str, url: str) -> str:
        """Return the link to what is nearest to a time, for the purpose of a modifier of replay."""
        ...

    def list_files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the paths of what links lead to since the last call, and their content."""
        ...


@dataclass(frozen=True, slots=True)
class SiteSnapshot:
    """A snapshot as a site shows it. `formats` are those of its items.

    `archive` makes the archived pages that pages lead to.
    """

    repository: DuckRepository
    manifest: Manifest
    configuration: Configuration
    formats: Formats
    renderer: Renderer
    fields: ColumnsOf
    archive: "Callable[[SiteSnapshot, StaticAddress], ArchiveFiles] | None" = None

    @staticmethod
    def of(
        repository: DuckRepository,
        manifest: Manifest,
        configuration: Configuration,
        archive: "Callable[[SiteSnapshot, StaticAddress], ArchiveFiles] | None" = None,
    ) -> "SiteSnapshot":
        """Return a snapshot with the formats of a configuration. Raises ConfigurationError."""
        formats, renderer = check.open_formats(configuration)
        _, fields = lookups(configuration, formats, renderer)
        formats = formats.of_snapshot(manifest)
        return SiteSnapshot(repository, manifest, configuration, formats, renderer, fields, archive)

    @property
    def rows(self) -> Sequence[Format]:
        """The formats that are offered, in the order of ListMetadataFormats."""
        return self.formats.present(self.manifest).rows

    @property
    def base_url(self) -> str:
        """The base URL: the configured one, else a place for it, which a router replaces."""
        own: str = self.configuration["repository.base_url"]
        return own or f"http://{self.manifest.namespace}/oai"

    @property
    def response_date(self) -> datetime:
        """The responseDate: all until then is in the snapshot, and no later publish is earlier."""
        return self.manifest.effective + timedelta(seconds=1)

    @property
    def reading(self) -> PointerReading:
        """The snapshot as a server reads it."""
        stamp = self.response_date
        entry = PointerEntry(self.manifest.snapshot, self.manifest.effective)
        return PointerReading(stamp, Pointer((entry,)), entry, stamp, entry.snapshot)

    @property
    def has_sets(self) -> bool:
        """Whether the repository has sets, even without records."""
        manifest = self.manifest
        return bool(manifest.sets or manifest.origin_sets or configured_sets(self.configuration))

    def list_folders(self) -> Mapping[str, SiteList]:
        """Return the lists of all records, by folder.

        Formats whose headers are the same share one list of them, that of the first.
        """
        lists = (SiteList(f"oai/{row.prefix}/r", LIST_RECORDS, row) for row in self.rows)
        headers = (SiteList(self.headers_folder(row), LIST_IDENTIFIERS, row) for row in self.rows)
        folders: dict[str, SiteList] = {}
        for list_ in (*lists, *headers):
            folders.setdefault(list_.folder, list_)
        return folders

    def headers_folder(self, row: Format) -> str:
        """Return the folder with the headers of a format."""
        same = (other.prefix for other in self.rows if self._headers(other) == self._headers(row))
        return f"oai/{next(same)}/i"

    def making(self, list_: SiteList) -> str:
        """Return a text that changes if a list must be made anew."""
        since = self.manifest.since(list_.format.prefix)
        return f"{since and since.isoformat()} {self._sifts(list_.format)}"

    def spans(self, list_: SiteList) -> list[tuple[datetime, Span]]:
        """Return the datestamps of a list and their positions (chain.list_spans)."""
        return list_spans(self.manifest, self.manifest.since(list_.format.prefix))

    def limit(self, list_: SiteList) -> int:
        """Return the most records on a page."""
        limit: int = self.configuration[f"pages.{'identifiers' if list_.is_headers else 'records'}"]
        return limit

    def find_sets(self, list_: SiteList, chain: PageChain, first: int) -> SetPages:
        """Return the pages of a list of all records from a position on, by sets.

        Raises StoreError.
        """
        ranges = chain.ranges(self.spans(list_))
        stamps = {f: segment.instant for segment in chain.segments for f in segment.firsts}
        shares = defaultdict[str, dict[datetime, SetShare]](dict)
        pages = {page: span for page, span in ranges.items() if page >= first}
        for page, counts in self.count_sets(list_, pages).items():
            for spec, records in counts.items():
                share = shares[spec].setdefault(stamps[page], SetShare())
                share.records += records
                share.firsts.append(page)
        is_sharing = self.configuration["site.records"] == "ranges"
        return SetPages(shares, self._list_left(list_, first), self.limit(list_), is_sharing)

    def _list_left(self, list_: SiteList, first: int) -> Mapping[str, Collection[datetime]]:
        """Return the sets that items left from a position on, each with their datestamps."""
        manifest, left = self.manifest, defaultdict[str, set[datetime]](set)
        since = self.manifest.since(list_.format.prefix)
        groups = self.repository.catalogue.groups(
            manifest, "records", first, manifest.last_position
        )
        for number, specs in self.repository.files.look_up(_LEFT, groups, first=first):
            stamp = manifest.sequences[number - 1].effective
            for spec in joined.from_iterable(map(oai_name.set_lineage, specs)):
                left[spec].add(max(stamp, since or stamp))
        return left

    def count_sets(self, list_: SiteList, pages: Mapping[int, Span]) -> Mapping[int, Counter[str]]:
        """Return the numbers of records of each set on pages, by their first positions.

        `pages` has the positions of each, ascending. Raises StoreError.
        """
        firsts, counts = [*pages], {first: Counter[str]() for first in pages}
        headers, runs = replace(list_, verb=LIST_IDENTIFIERS), list[Span]()
        for span in pages.values():
            if runs and runs[-1].last == span.first - 1:
                span = Span(runs.pop().first, span.last)
            runs.append(span)
        for batch in joined.from_iterable(self._read(headers, span) for span in runs):
            is_sifted = self._sifts(list_.format)
            records = select_available(batch, list_.format) if is_sifted else batch
            places = Counter((bisect_right(firsts, r.position), r.sets) for r in records)
            for (place, specs), number in places.items():
                above = {*joined.from_iterable(map(oai_name.set_lineage, specs))}
                counts[firsts[place - 1]].update(dict.fromkeys(above, number))
        return counts

    def cut(self, list_: SiteList, span: Span, limit: int | None = None) -> Iterator[CutPage]:
        """Yield the pages of the records at positions of `span`, in all those that fit.

        Up to `limit` records are on a page; without a limit, all are on one page. A page none of
        whose records can be shown is left out. Raises StoreError.
        """
        headers, prefix = list_.is_headers, list_.format.prefix
        empty = RecordList(
            (),
            None if headers else list_.format,
            None,
            since=self.manifest.since(prefix),
            within=list_.format if headers and self._sifts(list_.format) else None,
        )
        sheet, first = None, 0
        for batch in self._read(list_, span):
            records = batch
            while records:
                if sheet is None:
                    largest = None if limit is None else LARGEST - FRAME
                    sheet = self.renderer.sheet(self.base_url, largest)
                    first = records[0].position
                part = records if limit is None else records[: limit - sheet.count]
                taken = sheet.take(replace(empty, records=part))
                records = records[taken:]
                if taken < len(part) or sheet.count == limit:
                    if any(body := sheet.finish()):
                        yield CutPage(first, body, sheet.count)
                    sheet = None
        if sheet is not None and any(body := sheet.finish()):
            yield CutPage(first, body, sheet.count)

    def link(
        self, list_: SiteList, chain: PageChain, first: int, plan: SetPlan | None = None
    ) -> Iterator[tuple[CutPage | None, bytes, PageChain]]:
        """Yield the pages of a list from a position on, which follow `chain`.

        Each comes with its document, and with the chain up to it. Where a `plan` shares pages, only
        the chain comes. Raises StoreError.
        """
        parts = self._list_parts(list_, first, plan)
        ahead = next(parts, None)
        while ahead is not None:
            (segment, page), ahead = ahead, next(parts, None)
            frame = PageFrame(not chain.firsts, ahead and ahead[0].firsts[0])
            chain = chain.append(segment)
            yield page, self.write_page(list_, page, frame) if page else b"", chain

    def _list_parts(
        self, list_: SiteList, first: int, plan: SetPlan | None
    ) -> Iterator[tuple[ChainSegment, CutPage | None]]:
        """Yield the pages of a list from a position on, and the segments that it shares."""
        for stamp, span in self.spans(list_):
            if plan is None or (stamp in plan and not plan[stamp]):
                rest = Span(max(first, span.first), span.last)
                for page in self.cut(list_, rest, self.limit(list_)):
                    yield ChainSegment(stamp, (page.first,)), page
            elif shared := tuple(page for page in plan.get(stamp, ()) if page >= first):
                yield ChainSegment(stamp, shared, is_shared=True), None

    def list_records(self, list_: SiteList, first: int) -> Iterator[tuple[str, bytes]]:
        """Yield the answers to GetRecord from a position on, by the identifiers of the items.

        Records that cannot be shown are left out. Raises StoreError.
        """
        row = list_.format
        since = self.manifest.since(row.prefix)
        for record in self._select(list_, first):
            arguments = {"verb": GET_RECORD, "identifier": record.identifier}
            arguments["metadataPrefix"] = row.prefix
            with suppress(NothingRenderedError):
                content = OneRecord(record, row, since)
                yield record.identifier, self.write((*arguments.items(),), content)

    def list_live(self, list_: SiteList) -> Iterator[str]:
        """Yield the live records of a list without their sets, and with the days of datestamps.

        Records that cannot be shown are left out. Raises StoreError.
        """
        row, name = list_.format, self.configuration["repository.name"]
        since = self.manifest.since(row.prefix)
        for record in self._select(list_, 1):
            if record.deleted:
                continue
            day = instant.to_text(max(record.datestamp, since or record.datestamp))[:10]
            with suppress(ConfigurationError):
                text = self.renderer.record(record, row, self.base_url, name)
                yield (
                    f'<record xmlns="{_OAI}">\n<header>\n<identifier>{escape(record.identifier)}'
                    f"</identifier>\n<datestamp>{day}</datestamp>\n</header>"
                    f"{text.partition('</header>')[2]}"
                )

    def write_page(self, list_: SiteList, page: CutPage, frame: PageFrame) -> bytes:
        """Return the document of a page."""
        resumption = None
        if frame.following is not None:
            resumption = Resumption(list_.token(frame.following), 0, 0)
        elif not frame.is_first:
            resumption = Resumption("", 0, 0)
        arguments: list[tuple[str, str]] = [("verb", list_.verb)]
        if not frame.is_first:
            arguments.append(("resumptionToken", list_.token(page.first)))
        else:
            arguments.append(("metadataPrefix", list_.format.prefix))
            arguments += [("set", list_.spec)] if list_.spec else []
        content = RecordList(
            (), None if list_.is_headers else list_.format, resumption, body=page.body
        )
        return self.write(tuple(arguments), content)

    def write(self, arguments: tuple[tuple[str, str], ...], content: Content) -> bytes:
        """Return the document of an answer."""
        answer = Answer(self.response_date, self.base_url, arguments, content)
        return self.renderer.document(replace(answer, in_effect=self.manifest.snapshot))

    def _read(self, list_: SiteList, span: Span) -> Iterator[Sequence[PublishedRecord]]:
        """Yield the records of a list by position."""
        manifest, row = self.manifest, list_.format
        living = {kind for kind, count in manifest.kinds().items() if count}
        sifts = self._sifts(row)
        columns = (DOCUMENT,) if list_.is_headers else self.fields(row.prefix, manifest.kinds())
        prefix = row.prefix if sifts else None
        selection = RecordSelection(tuple(row.crosswalks), span, list_.spec, prefix)
        headers = list_.is_headers and not sifts
        is_large = not headers and living & DOCUMENTED & row.crosswalks.keys()
        limit = _DOCUMENTS if is_large else _ROWS
        return read_batches(
            self.repository, manifest, selection, limit, headers=headers, fields=columns
        )

    def _select(self, list_: SiteList, first: int) -> Iterator[PublishedRecord]:
        """Yield the records of a list from a position on."""
        row = list_.format
        for batch in self._read(list_, Span(first, self.manifest.last_position)):
            yield from select_available(batch, row) if self._sifts(row) else batch

    def _sifts(self, row: Format) -> bool:
        return is_selective(row, self.manifest.kinds())

    def _headers(self, row: Format) -> tuple[object, ...]:
        """Return what the headers of a format depend on."""
        kinds = {kind for kind, count in self.manifest.kinds().items() if count}
        own = row.prefix if self._sifts(row) else ""
        return kinds & row.crosswalks.keys(), self.manifest.since(row.prefix), own
