"""Walk through a list in data files: the counterpart of ListWalk, without pages.

After each finished span the state has the token of the rest of the list. It is the one that the
repository itself would send. So pages can take over at any point, and an interrupted walk resumes.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from builder.harvest import records
from builder.harvest.data_files.file_list import (
    FileAccess,
    OfferedSnapshot,
    RecordSource,
    never,
    open_snapshot,
)
from builder.harvest.data_files.offer import read_offer
from builder.harvest.errors import FilesError
from builder.harvest.folder import HarvestFolder
from builder.harvest.page import PageEntry
from builder.harvest.records import Ask, RecordWriter
from builder.harvest.state import SECOND, RunState
from builder.harvest.window import earlier, is_before
from builder.http.errors import Deferred
from builder.ingest.pool import map_tasks
from builder.parquet.texts import list_values
from builder.store.durable import DRAFT
from functions.oai import request
from functions.oai.repository import RecordSelection
from functions.oai.request import OAIError, OaiRequest
from functions.oai.token import Token
from functions.snapshot import instant
from functions.snapshot.errors import SheafError
from functions.snapshot.manifest import Manifest, Span

_ROWS = 65_536
"""Records of a span, and so of a part and of what an interruption repeats."""
_ALONE = threading.Lock()
"""One walk at a time in a process: each uses all processors."""


@dataclass(frozen=True, slots=True)
class SpanTask:
    """Positions of a list to be read into a file of rows at `path`, in a form of folder.FORMS."""

    source: RecordSource
    selection: RecordSelection
    path: Path
    form: str
    run: int
    date: str


@dataclass(frozen=True, slots=True)
class SpanResult:
    """The result of a task: the rows at `path`, how many are deleted, and their runs of datestamps.

    Beside the rows is a file of their versions, sorted by item and joined: many results may wait.
    They are of one length, as all datestamps of a snapshot are.
    """

    path: Path
    count: int
    deleted: int
    stamps: list[str]

    @property
    def beside(self) -> Path:
        """The file of versions."""
        return self.path.with_name(self.path.name + DRAFT)


@dataclass(slots=True)
class FileWalk:
    """Walk through a run's list; `ask`, `advance` and `paused` are those of ListWalk.

    If `exact`, the list begins behind the last snapshot that was harvested, without an overlap.
    """

    access: FileAccess
    ask: Ask
    kept: HarvestFolder
    going: RunState
    advance: Callable[[int, int | None], None]
    paused: Callable[[], None]
    exact: bool

    def to_end(self) -> tuple[str, str]:
        """Walk to the list's end; return the store's id and the snapshot's instant.

        Raises FilesError if the data files are unavailable, altered or of no use, and Deferred.
        """
        try:
            with _ALONE:
                self._report(0, 0)  # perhaps the harvest has ended meanwhile
                return self._walk()
        except (FilesError, Deferred):
            raise
        except (SheafError, OAIError, OSError) as error:
            raise FilesError(str(error)) from error

    def _walk(self) -> tuple[str, str]:
        offer = read_offer(self.going.files or {})
        access = replace(self.access, stop=never)  # for other processes, too
        source = RecordSource(offer, self.kept.state.prefix, access)
        snapshot = open_snapshot(source)
        try:
            manifest = snapshot.manifest
            self._begin(manifest)
            asked = self._request(snapshot)
            if chosen := manifest.select(asked.start, asked.end, snapshot.prefix):
                span = Span(chosen[0].first, chosen[-1].last)
                kinds = tuple(snapshot.format.crosswalks)
                whole = RecordSelection(kinds, span, asked.set)
                self._take(snapshot, source, asked, whole)
            return manifest.store, instant.to_text(manifest.effective)
        finally:
            open_snapshot.cache_clear()
            snapshot.close()

    def _begin(self, manifest: Manifest) -> None:
        """Let a new list begin behind the last harvested snapshot, if that is of the same store."""
        going, reached = self.going, self.kept.state.reached
        if not self.exact or going.token or reached is None or reached[0] != manifest.store:
            return
        if going.begin is not None and is_before(going.begin, reached[1]):
            going.begin = going.since = earlier(reached[1], -1, SECOND)

    def _request(self, snapshot: OfferedSnapshot) -> OaiRequest:
        """Return the request of this run's list. Raises FilesError if it might be refused."""
        going, set_, manifest = self.going, self.kept.state.set, snapshot.manifest
        named = {"from": going.begin, "until": going.until, "set": set_}
        given = [(name, value) for name, value in named.items() if value is not None]
        prefix = ("metadataPrefix", snapshot.prefix)
        try:
            asked = request.parse([("verb", request.LIST_RECORDS), prefix, *given])
        except OAIError as error:
            raise FilesError(f"the repository may refuse the request: {error}") from error
        if set_ is not None and not snapshot.repository.has_set(manifest, set_):
            raise FilesError(f"snapshot {manifest.snapshot} has no set {set_}")
        return asked

    def _take(
        self,
        snapshot: OfferedSnapshot,
        source: RecordSource,
        asked: OaiRequest,
        selection: RecordSelection,
    ) -> None:
        """Read the rest of a list, span by span."""
        going, manifest, form = self.going, snapshot.manifest, self.kept.state.form
        size = snapshot.repository.size(manifest, selection)
        going.size = going.size or size
        passed = 0
        if going.token is not None:
            token = Token.of_store(going.token, request.LIST_RECORDS, manifest)
            selection, passed = selection.behind(token.position - 1), token.cursor
        spans = snapshot.spans(selection, _ROWS)
        tasks = [
            SpanTask(
                source,
                RecordSelection(selection.kinds, span, selection.set),
                self.kept.draft(going.number, number),
                form,
                going.number,
                going.dated,
            )
            for number, span in enumerate(spans)
        ]
        for task, result in zip(
            tasks, map_tasks(read_span, tasks, self.access.jobs, self._report), strict=True
        ):
            self._store(result)
            passed += result.count
            behind = task.selection.span.last + 1
            if passed:
                whole = max(size, passed + 1)
                going.token = _token(manifest, asked, behind, passed, whole)
            self.paused()
        going.token = None

    def _report(self, count: int, _: int) -> None:
        if self.access.stop():
            raise Deferred("ended")
        self.advance(count, self.going.size)

    def _store(self, result: SpanResult) -> None:
        """Take over the rows of a span, or store them one by one if some items are known."""
        going, counts = self.going, self.going.counts
        many = result.count
        counts.files += many
        if not many:
            result.path.unlink(missing_ok=True)
            return
        versions = result.beside.read_bytes()
        result.beside.unlink()
        if not going.lost and self.kept.adopt(result.path, going.number, versions, many):
            counts.new += many
            counts.deleted += result.deleted
            going.gained += many
            for stamp in result.stamps:
                going.ordered &= not (going.last and is_before(stamp, going.last))
                going.rises += going.last not in ("", stamp)
                going.last = stamp
                going.high = max(going.high, stamp)
            return
        later = counts.later  # a snapshot is whole, so none of these changed meanwhile
        writer = RecordWriter(self.ask, self.kept, going, going.dated)
        for row in records.read_part(result.path, going.number):
            writer.take(
                PageEntry(row.identifier, row.datestamp, row.deleted, row.sets, row.dc, row.record)
            )
        counts.later = later
        result.path.unlink()


def walk_files(
    access: FileAccess,
    ask: Ask,
    kept: HarvestFolder,
    going: RunState,
    advance: Callable[[int, int | None], None],
    paused: Callable[[], None],
    exact: bool,
) -> tuple[str, str]:
    """Walk through the list of a run (FileWalk.to_end)."""
    return FileWalk(access, ask, kept, going, advance, paused, exact).to_end()


def _token(manifest: Manifest, asked: OaiRequest, position: int, passed: int, size: int) -> str:
    """Return the token of a list from a position on, as the repository itself would send it."""
    return Token(
        verb=request.LIST_RECORDS,
        prefix=asked.prefix or "",
        set=asked.set,
        start=asked.start,
        end=asked.end,
        snapshot=manifest.snapshot,
        position=position,
        cursor=passed,
        size=size,
        namespace=manifest.namespace,
        store=manifest.store,
    ).to_text()


def read_span(task: SpanTask, advance: Callable[[int, int], None]) -> SpanResult:
    """Read a span into a file of rows. Raises SheafError."""
    snapshot = open_snapshot(task.source)
    versions: list[bytes] = []
    stamps: list[str] = []
    deleted = 0
    writer = records.open_part(task.path, task.form)
    for rows in snapshot.batches(task.selection):
        writer.append_columns(rows, task.date, task.run)
        versions += rows.versions(task.run)
        deleted += sum(list_values(rows.deleted))
        stamps += [stamp for stamp, _ in groupby(list_values(rows.stamps))]
        advance(len(rows.texts), 0)
    writer.close()
    runs = [stamp for stamp, _ in groupby(stamps)]
    result = SpanResult(task.path, len(versions), deleted, runs)
    if versions:
        result.beside.write_bytes(b"".join(sorted(versions)))
    return result
