"""A connection to DuckDB, which parses the text of a statement once."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

_KEPT = 512
"""Limit on the parsed texts of a process; with the next one, all are forgotten."""
_LONGEST = 1 << 14
"""Characters of the longest text whose parsed statements are kept."""

_parsed: dict[str, tuple[Any, ...]] = {}


class Connection:
    """A connection that parses equal texts once in a process: this is a sixth of a small statement.

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
        # DuckDB draws progress bars if it takes a process for a console.
        opened.execute(f"SET enable_progress_bar = false; USE {database}")

    def execute(self, sql: str, values: Any = None) -> Any:
        """Execute a statement, or several without values; return its result, which is DuckDB's.

        Raises duckdb.Error.
        """
        statements = self.parse(sql)
        if len(statements) < 2 or values is not None:
            return self._opened.execute(statements[0] if len(statements) == 1 else sql, values)
        for statement in statements:
            result = self._opened.execute(statement)
        return result

    def executemany(self, sql: str, values: Any) -> None:
        """Execute a statement for each of these values. Raises duckdb.Error."""
        self._opened.executemany(sql, values)

    def stream(self, sql: str, values: Mapping[str, Any], rows: int) -> Any:
        """Execute a SELECT; return its rows as an Arrow stream. Raises duckdb.Error."""
        statements = self.parse(sql)
        read = statements[0] if len(statements) == 1 else sql
        return self._opened.sql(read, params=dict(values)).to_arrow_reader(rows)

    def parse(self, sql: str) -> tuple[Any, ...]:
        """Return the parsed statements of a text; none if it is too long to be kept."""
        statements = _parsed.get(sql, ())
        if not statements and len(sql) <= _LONGEST:
            statements = tuple(self._opened.extract_statements(sql))
            if len(_parsed) >= _KEPT:
                _parsed.clear()
            _parsed[sql] = statements
        return statements

    def fetchmany(self, size: int) -> list[Any]:
        """Return the next rows of the last statement. Raises duckdb.Error."""
        rows: list[Any] = self._opened.fetchmany(size)
        return rows

    def register(self, name: str, rows: Any) -> None:
        """Give Arrow data a name that statements read it by. Raises duckdb.Error."""
        self._opened.register(name, rows)

    def unregister(self, name: str) -> None:
        """Forget that name. Raises duckdb.Error."""
        self._opened.unregister(name)

    def get_table_names(self, sql: str) -> set[str]:
        """Return the names of the tables that a statement reads. Raises duckdb.Error."""
        return set(self._opened.get_table_names(sql))

    def abort(self) -> None:
        """Drop the rows of the last statement that were not fetched."""
        self._opened.abort()

    def interrupt(self) -> None:
        """End the statement that runs in another thread."""
        self._opened.interrupt()

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
