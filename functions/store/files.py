"""Reads rows of a store's data files with DuckDB."""

import threading
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from functions.snapshot import schema
from functions.snapshot.errors import StoreError
from functions.snapshot.manifest import DataFile, Key, RowGroup
from functions.snapshot.store import Reader
from functions.store import columns, engine, s3_request
from functions.store.catalog import Cache
from functions.store.checked_files import CheckedFiles
from functions.store.columns import Columns
from functions.store.s3_request import Tally

FILE = engine.table("$file")
"""The file parameter in a statement."""

_AT_ONCE = 4
"""Limit on concurrent statements that join columns: they share the database's memory."""
_MOST_OWED = 256
_DECODED = 8 << 20  # bytes of decoded row groups that are kept for the next look-ups
"""Limit on row groups read ahead whose cost is not yet attributed to a request."""


class Files:
    """Reads data files of one store, after they were compared with their leaves. Thread-safe.

    The most recently used row groups are cached whole, up to `capacity` bytes, because the next
    page of a list mostly needs the same one. With `ahead`, a thread reads the next row group of a
    list while the current answer is made.
    """

    def __init__(self, reader: Reader, capacity: int, *, memory: int, ahead: bool = False) -> None:
        self._address = reader.address
        self._checked = CheckedFiles(reader)
        self._connection = engine.connect_reader(memory)
        self._idle: list[engine.Connection] = []
        self._busy: list[engine.Connection] = []
        self._lock = threading.Lock()
        self._cache, self._decoded = Cache(capacity), Cache(_DECODED)
        self._reader_ahead = ThreadPoolExecutor(1, "sheaf-ahead") if ahead else None
        self._flying: dict[Hashable, Future[None]] = {}
        self._owed: dict[Hashable, Tally] = {}
        self._open = True
        self._joining = threading.Semaphore(_AT_ONCE)

    def close(self) -> None:
        """Close DuckDB; running reads are interrupted, and later ones fail."""
        with self._lock:
            self._open = False
            for cursor in self._busy:
                cursor.interrupt()
        if self._reader_ahead is not None:
            self._reader_ahead.shutdown(cancel_futures=True)
        with self._lock:
            self._close_if_idle()

    def _close_if_idle(self) -> None:
        """Close DuckDB unless reads are running; the last of these then closes it."""
        if not self._busy:
            for cursor in self._idle:
                cursor.close()
            self._idle.clear()
            self._connection.close()

    def rows(
        self, sql: str, file: DataFile, groups: Sequence[RowGroup] | None = None, **values: Any
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a statement over FILE; only the given row groups are read."""
        with self._checked.open(file, groups) as paths:
            values["file"] = paths
            with self._cursor() as cursor, engine.reading(file.key):
                rows: list[tuple[Any, ...]] = cursor.execute(sql, values).fetchall()
                return rows

    def look_up(
        self, sql: str, homes: Iterable[tuple[DataFile, Sequence[RowGroup]]], **values: Any
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a statement over FILE for row groups of several files, in order."""
        return [row for file, groups in homes for row in self.rows(sql, file, groups, **values)]

    def path(self, file: DataFile) -> str:
        """Return the local path of a whole data file, to be named in a statement."""
        return str(self._checked.whole(file.key))

    def matching(self, pattern: str, texts: Sequence[str], *, whole: bool) -> Sequence[bool]:
        """Return for each text whether an expression matches, as engine.matching does."""
        with self._cursor() as cursor:
            return engine.matching(cursor, pattern, texts, whole=whole)

    def columns(
        self,
        names: Sequence[str],
        file: DataFile,
        groups: Sequence[RowGroup],
        condition: str,
        limit: int,
        **values: Any,
    ) -> Columns:
        """Return columns of the first `limit` rows, by position, that satisfy the condition."""
        # Up to some thousand rows, values as objects cost less than a longer statement.
        sql = f"SELECT {', '.join(names)} FROM {FILE} WHERE {condition} ORDER BY position"
        rows = self.rows(f"{sql} LIMIT $limit", file, groups, limit=limit, **values)
        return {name: [row[number] for row in rows] for number, name in enumerate(names)}

    def plain(
        self, table: str, file: DataFile, groups: Sequence[RowGroup]
    ) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield the columns of each row group of one of layout.PLAIN, in the order of its rows."""
        # Lists do without what decompresses.
        from functions.store.plain_columns import NotPlain, decode_columns

        types = [column.type for column in schema.TABLES[table]]
        # A request asks the same one several times: for what is before, at and behind a place.
        decoded = [self._decoded.find((file.key, group.offset)) for group in groups]
        missing = [g for g, values in zip(groups, decoded, strict=True) if values is None]
        pieces = iter(self._checked.cut(file, missing) if missing else ())
        for group, values in zip(groups, decoded, strict=True):
            if values is None:
                try:
                    values = decode_columns(next(pieces), types, group.rows)
                except NotPlain:
                    names = ", ".join(schema.names(table))
                    rows = self.rows(f"SELECT {names} FROM {FILE} ORDER BY ALL", file, (group,))
                    yield list(zip(*rows, strict=True))
                    continue
                size = sum(column.nbytes for column in values)
                self._decoded.add((file.key, group.offset), values, size)
            yield values

    def by_group(
        self,
        names: tuple[str, ...],
        file: DataFile,
        groups: Sequence[RowGroup],
        first: int,
        *,
        entire: bool = False,
    ) -> list[Columns]:
        """Return the columns of each of these neighbouring row groups of one listing.

        Rows before position `first` may be missing, because a list does not go back. With `entire`
        a file in a bucket is fetched as a whole for later reads. Raises engine.OutOfMemory if the
        values are too long to be joined.
        """
        for group in groups:  # wait for what is being read ahead, and count its cost here
            key = (file.key, group.offset, names)
            if (flying := self._flying.get(key)) is not None:
                with suppress(CancelledError):
                    flying.exception()  # if it failed, nothing was cached
            with self._lock:
                owed = self._owed.pop(key, None)
            if owed is not None:
                s3_request.add_to_tally(owed.requests, owed.bytes)
        parts = self._find_cached(names, file, groups, first)
        if None in parts:
            with self._joining:
                parts = self._find_cached(names, file, groups, first)  # perhaps read meanwhile
                missing = [number for number, part in enumerate(parts) if part is None]
                if missing:
                    span = slice(missing[0], missing[-1] + 1)
                    parts[span] = self._load(names, file, groups[span], first, entire=entire)
        return [part for part in parts if part is not None]

    def _find_cached(
        self, names: tuple[str, ...], file: DataFile, groups: Sequence[RowGroup], first: int
    ) -> list[Columns | None]:
        """Return the cached columns of each row group."""
        parts = [self._cache.find((file.key, group.offset, names)) for group in groups]
        # If a list began within a row group, its earlier rows are not cached.
        return [
            part if part and part["position"][0] <= max(first, _first_position(group)) else None
            for part, group in zip(parts, groups, strict=True)
        ]

    def read_ahead(self, names: tuple[str, ...], file: DataFile, group: RowGroup) -> None:
        """Begin to read a row group that is likely to be needed next, if `ahead` is set."""
        key = (file.key, group.offset, names)
        if self._reader_ahead is None or self._cache.find(key) is not None:
            return

        def read() -> None:
            with s3_request.count_requests() as cost:
                try:
                    self._load(names, file, (group,), _first_position(group), entire=False)
                finally:
                    with self._lock:
                        self._owed[key] = cost
                        if len(self._owed) > _MOST_OWED:
                            del self._owed[next(iter(self._owed))]

        with self._lock:
            if self._flying or not self._open:
                return
            future = self._reader_ahead.submit(read)
            self._flying[key] = future
        future.add_done_callback(lambda _: self._flying.pop(key, None))

    def _load(
        self,
        names: tuple[str, ...],
        file: DataFile,
        groups: Sequence[RowGroup],
        first: int,
        *,
        entire: bool,
    ) -> list[Columns]:
        """Read the columns of each row group, and cache them."""
        low, last = max(first, _first_position(groups[0])), _position(groups[-1].last)
        values: dict[str, Any] = {"first": low, "last": last}
        condition = "position BETWEEN $first AND $last"
        if isinstance(groups[0].first, tuple):
            condition += " AND listing = $listing"
            values["listing"] = groups[0].first[0]
        loaded, size = self._read(names, condition, file, None if entire else groups, values)
        start, parts = 0, []
        for group in groups:
            end = bisect_right(loaded["position"], _position(group.last))
            part = {name: column[start:end] for name, column in loaded.items()}
            if end > start:
                share = size * (end - start) // len(loaded["position"])
                self._cache.add((file.key, group.offset, names), part, share)
            parts.append(part)
            start = end
        return parts

    def _read(
        self,
        names: Sequence[str],
        condition: str,
        file: DataFile,
        groups: Sequence[RowGroup] | None,
        values: Mapping[str, Any],
    ) -> tuple[Columns, int]:
        """Return columns of the rows that satisfy the condition, and their approximate size."""
        rows = f"{FILE} WHERE {condition}"
        sql = f"SELECT {columns.join_columns(names)} FROM {rows}"
        ((*texts,),) = self.rows(sql, file, groups, **values)
        if (split := columns.split_columns(names, texts)) is not None:
            return split
        sql = f"SELECT {columns.plain(names)} FROM {rows}"
        ((*lists,),) = self.rows(sql, file, groups, **values)
        return dict(zip(names, lists, strict=True)), sum(len(text or "") for text in texts)

    @contextmanager
    def _cursor(self) -> Iterator[engine.Connection]:
        """Lend a cursor; a cursor may serve one thread at a time."""
        with self._lock:
            if not self._open:
                raise StoreError(f"{self._address} was closed")
            cursor = self._idle.pop() if self._idle else self._connection.cursor()
            self._busy.append(cursor)
        try:
            yield cursor
        finally:
            with self._lock:
                self._busy.remove(cursor)
                self._idle.append(cursor)
                if not self._open:
                    self._close_if_idle()


def _position(bound: Key) -> int:
    """Return the position in a bound, which is a position or a listing and a position."""
    position = bound[1] if isinstance(bound, tuple) else bound
    assert isinstance(position, int)
    return position


def _first_position(group: RowGroup) -> int:
    return _position(group.first)
