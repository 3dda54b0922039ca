"""DuckDB connections without outside dependencies; the only file that imports duckdb."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import gettempdir
from typing import Any, TypeVar

import duckdb

from functions.snapshot.errors import NO_SPACE, DamagedStore, SheafError, StoreError
from functions.store.scratch import SPILL, Scratch

T = TypeVar("T")

_BATCH = 1 << 16  # rows
_FETCH = 1 << 14  # rows, as Python objects
_NO_LOG = " (RECOVERY_MODE no_wal_writes)"
_ATTACHED = (
    "SELECT count(*) FROM duckdb_databases() WHERE NOT internal AND database_name != 'memory'"
)
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_DISK, _MEMORY = "IO Error: ", "Out of Memory Error: "
"""Beginnings of DuckDB's errors that an Arrow stream raises as OSError."""

_shared: dict[tuple[int, int, str], "Connection"] = {}
"""Databases in memory for readers, by process, megabytes and temporary folder."""
_idle: dict[tuple[int, int, int, str], list[duckdb.DuckDBPyConnection]] = {}
"""Engines that nothing uses now, by process, threads, megabytes and lasting temporary folder."""
_spills: dict[tuple[int, str], Scratch] = {}
"""Folders for what exceeds the memory, by process and TMPDIR; they go when the process ends."""
_numbers = count()
"""Numbers in the names of databases: a name used again could belong to another database."""


class Connection:
    """A connection to a database of this process.

    One thread at a time uses a connection; each of several takes a cursor. Its tables are in
    `database`; `release` is called once, when it is closed.
    """

    def __init__(
        self, opened: Any, database: str, release: Callable[[], None] = lambda: None
    ) -> None:
        self._opened = opened
        self._database = database
        self._release: Callable[[], None] | None = release
        self.memory: int | None = None
        """Bytes that it may take, once they were asked for."""
        # DuckDB's own methods, which raise duckdb.Error. `abort` drops the rows that were not
        # fetched, and `interrupt` ends the statement that runs in another thread.
        self.executemany, self.fetchmany, self.sql = (
            opened.executemany,
            opened.fetchmany,
            opened.sql,
        )
        self.register, self.unregister = opened.register, opened.unregister
        self.abort, self.interrupt = opened.abort, opened.interrupt
        self.get_table_names = opened.get_table_names
        # DuckDB draws progress bars if it takes a process for a console.
        opened.execute(f"SET enable_progress_bar = false; USE {database}")

    def execute(self, sql: str, values: Any = None) -> Any:
        """Execute a statement, or several without values; return its result, which is DuckDB's.

        Raises duckdb.Error.
        """
        return self._opened.execute(sql, values)

    def cursor(self) -> "Connection":
        """Return another connection to the same database."""
        return Connection(self._opened.cursor(), self._database)

    def close(self) -> None:
        """Close it; the database goes with its last connection."""
        self._opened.close()
        release, self._release = self._release, None
        if release is not None:
            release()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


class OutOfMemory(StoreError):
    """A statement needs more memory than its database has."""


class QueryError(SheafError):
    """A user's SQL statement cannot be executed."""


def connect(
    *, threads: int = 1, memory_megabytes: int = 512, scratch: Path | None = None
) -> Connection:
    """Return a connection to a database in memory (with `scratch`: on disk, for large sorts).

    No extension is ever fetched. One thread reads one row group at a time, which costs least for a
    page. Raises StoreError if `scratch` cannot be written.
    """
    # The file is never opened again, so it need not be durable or complete on disk.
    path, mode = (scratch / "work.duckdb", _NO_LOG) if scratch else (":memory:", "")
    spill = str(scratch / "sheaf-spill") if scratch else _find_spill_folder()
    # To start an engine costs twenty times as much as to give one another database.
    lasting = "" if scratch else spill
    idle = _idle.setdefault((os.getpid(), threads, memory_megabytes, lasting), [])
    with reading(str(path)):  # the disk may be full already
        try:
            engine = idle.pop()
        except IndexError:
            engine = _start(threads, memory_megabytes, spill)
        else:
            if scratch is not None:
                engine.execute(f"SET temp_directory = {quote(spill)}")
        name = f"work{next(_numbers)}"
        engine.execute(f"ATTACH {quote(str(path))} AS {name}{mode}")
        release = partial(_release, engine, name, idle, Path(spill) if scratch else None)
        return Connection(engine.cursor(), name, release)


def _find_spill_folder() -> str:
    """Return this process's own folder for what exceeds the memory; "" if none can be created.

    A name in TMPDIR that others can foresee may be a link of theirs, and its files are readable.
    """
    place = os.getpid(), gettempdir()
    if place not in _spills:
        try:
            _spills[place] = Scratch(SPILL)
        except StoreError:
            return ""
    return str(_spills[place].path / "spill")


def _start(threads: int, memory_megabytes: int, spill: str) -> duckdb.DuckDBPyConnection:
    """Return a new engine: a database in memory, to which others are attached."""
    settings: dict[str, Any] = {
        "threads": threads,
        "memory_limit": f"{memory_megabytes}MB",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        # This cache would keep bytes of files that a bucket's mirror had fetched only in part.
        "enable_external_file_cache": False,
        "fsync_mode": "NONE",
        "temp_directory": spill,
    }
    engine = duckdb.connect(":memory:", config=settings)
    engine.execute("PRAGMA disable_checkpoint_on_shutdown")
    return engine


def _release(
    engine: duckdb.DuckDBPyConnection,
    name: str,
    idle: list[duckdb.DuckDBPyConnection],
    spill: Path | None,
) -> None:
    """Detach the database, and keep the engine for another one if it is still as at its start."""
    with suppress(duckdb.Error):
        engine.execute(f"DETACH {name}")
        ((others,),) = engine.execute(_ATTACHED).fetchall()
        # An engine that has spilled cannot be given another folder.
        if not others and not (spill and spill.exists()):
            idle.append(engine)
            return
    engine.close()


def connect_reader(memory_megabytes: int = 512) -> Connection:
    """Return a connection for statements that read files; what they create is temporary.

    All such connections of a process share one database and its memory, because opening a database
    costs more than reading a small file.
    """
    place = (os.getpid(), memory_megabytes, gettempdir())
    if place not in _shared:  # a process that was forked cannot use the database of its parent
        _shared.setdefault(place, connect(memory_megabytes=memory_megabytes))
    return _shared[place].cursor()


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn DuckDB's errors into errors of the store; `what` names the object that was read."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise _shortage(what, error) from error
    except (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException) as error:
        raise _failure(what, error) from error
    except OSError as error:
        text = str(error)
        if _MEMORY in text:
            raise _shortage(what, error) from error
        if _DISK not in text:
            raise
        raise _failure(what, error) from error
    except duckdb.InterruptException as error:
        raise StoreError(f"reading {what} was cancelled") from error
    except duckdb.Error as error:
        raise DamagedStore(f"{what} is damaged: {_line(error)}") from error
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # DuckDB's answer to Ctrl-C
            raise KeyboardInterrupt from error
        raise


def _shortage(what: str, error: Exception) -> OutOfMemory:
    return OutOfMemory(f"{what}: out of memory or of scratch space: {_line(error)}")


def _failure(what: str, error: Exception) -> StoreError:
    text = _line(error)
    if "No space left" in text:
        text = f"{NO_SPACE} ({gettempdir()})"
    return StoreError(f"{what} cannot be read or written: {text}")


def find_memory(connection: Connection) -> int:
    """Return the bytes of memory that a connection may take."""
    if connection.memory is None:
        ((text,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
        number, unit = str(text).split()
        connection.memory = int(float(number) * 1024 ** _UNITS.index(unit))
    return connection.memory


def table(files: str) -> str:
    """Return the table expression over Parquet files; `files` is a parameter or a list in SQL.

    By default DuckDB reads a folder `year=2007` in the path as a column.
    """
    return f"read_parquet({files}, hive_partitioning = false)"


def quote(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def texts(values: Iterable[str]) -> str:
    """Return texts as an SQL list for IN; there must be at least one."""
    return f"({', '.join(map(quote, values))})"


def stream(
    connection: Connection, sql: str, values: Mapping[str, Any] | None = None, rows: int = _BATCH
) -> Any:
    """Execute a statement and return its rows as an Arrow stream, read in batches of `rows`."""
    return connection.sql(sql, params=dict(values or {})).to_arrow_reader(rows)


def batches(
    connection: Connection, sql: str, values: Mapping[str, Any] | None = None
) -> Generator[list[Any], None, None]:
    """Execute a statement and yield its rows in batches of some thousands, as they are made.

    A row of one column is its bare value. The connection cannot execute other statements meanwhile.
    A caller that does not fetch all rows must close the iterator.
    """
    result = connection.execute(sql, dict(values or {}))
    alone = len(result.description) == 1
    try:
        while rows := result.fetchmany(_FETCH):
            yield [value for (value,) in rows] if alone else rows
    finally:
        connection.abort()  # DuckDB refuses other statements while rows are left


def is_select(text: str) -> bool:
    """Return whether the text is a single SELECT statement; it is not executed."""
    try:
        (statement,) = duckdb.extract_statements(text)
    except (duckdb.Error, ValueError):  # ValueError: not one statement
        return False
    return bool(statement.type == duckdb.StatementType.SELECT)


def query(connection: Connection, sql: str) -> tuple[list[str], Iterator[Sequence[Any]]]:
    """Execute a user's statement; return the names of its columns, and its rows in batches.

    Raises QueryError with DuckDB's message if the statement fails. Ctrl-C ends the statement.
    """
    with _raise_query_errors():
        # None if the text has no statement
        result: duckdb.DuckDBPyConnection | None = _call(
            connection, lambda: connection.execute(sql)
        )
        names = [column[0] for column in (result and result.description) or ()]
    return names, _rows(connection) if names else iter(())


def matching(
    connection: Connection, pattern: str, texts: Sequence[str], *, whole: bool
) -> list[bool]:
    """Return for each text whether a regular expression matches all or, unless `whole`, a part.

    RE2's time is linear in the texts' length. Raises QueryError for an invalid expression.
    """
    name = "regexp_full_match" if whole else "regexp_matches"
    sql = (
        f"SELECT {name}(text, $pattern) FROM (SELECT unnest($texts::VARCHAR[]) AS text, "
        "unnest(range(len($texts))) AS number) ORDER BY number"
    )
    with _raise_query_errors():
        rows = connection.execute(sql, {"pattern": pattern, "texts": list(texts)}).fetchall()
    return [bool(is_match) for (is_match,) in rows]


def tables(connection: Connection, sql: str) -> set[str] | None:
    """Return the names of the tables that a single SELECT reads, also through views.

    Returns None for other statements, and if only their execution would show the names.
    """
    if not is_select(sql):
        return None
    try:
        return set(connection.get_table_names(sql))
    except duckdb.Error:
        return None


def _rows(connection: Connection) -> Iterator[Sequence[Any]]:
    while True:
        with _raise_query_errors():
            rows = _call(connection, lambda: connection.fetchmany(10_000))
        if not rows:
            return
        yield from rows


@contextmanager
def _raise_query_errors() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise QueryError(str(error)) from error


def _call(connection: Connection, call: Callable[[], T]) -> T:
    """Return the result of the call; Ctrl-C ends it at once.

    DuckDB itself reacts to a signal only if the calling thread does some of the work.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():
                connection.interrupt()  # without effect before the statement has begun
                wait([future], 0.05)
            raise


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]
