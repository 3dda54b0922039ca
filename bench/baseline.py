"""The baseline of bench.harvest: PyPI's `oaipmh` over SQLite, as a WSGI application for gunicorn.

It is the package's own data provider (BatchingServer, its writer of Dublin Core) over a data
interface such as its users write, and a good one of these: records in a table by their number, so
that a page is found at any depth by its key, and each row has what its record says ready made.
"""

import os
import sqlite3
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from oaipmh import common, error, metadata, server

DATABASE = "SHEAF_BENCH_DATABASE"
"""The environment variable that names the database."""

_ELEMENTS = (
    "title", "identifier", "identifier", "date", "type", "format", "language", "source", "publisher"
)  # fmt: skip
_COLUMNS = (
    "identifier", "datestamp", "sets", "title", "url", "digest", "date", "type", "format",
    "language", "source", "publisher",
)  # fmt: skip


def fill(path: Path, rows: Iterable[tuple[Any, ...]]) -> None:
    """Make the database of rows with the values of _COLUMNS."""
    database = sqlite3.connect(path)
    database.execute(
        f"CREATE TABLE records (number INTEGER PRIMARY KEY, {' TEXT, '.join(_COLUMNS)} TEXT)"
    )
    marks = ", ".join("?" * len(_COLUMNS))
    database.executemany(f"INSERT INTO records ({', '.join(_COLUMNS)}) VALUES ({marks})", rows)
    database.execute("CREATE UNIQUE INDEX by_identifier ON records (identifier)")
    database.commit()
    database.close()


class Data:
    """The package's interface of a data provider that gives batches."""

    def __init__(self, path: str, batch: int):
        self._database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self._batch = batch

    def identify(self) -> Any:
        return common.Identify(
            repositoryName="Baseline", baseURL="http://localhost/oai", protocolVersion="2.0",
            adminEmails=["a@example.org"], earliestDatestamp=datetime(2007, 1, 1),
            deletedRecord="no", granularity="YYYY-MM-DDThh:mm:ssZ", compression=["identity"],
            toolkit_description=False,
        )  # fmt: skip

    def listRecords(  # noqa: N802 - the package's name
        self,
        metadataPrefix: str,  # noqa: N803
        cursor: int = 0,
        batch_size: int = 10,
        **others: Any,
    ) -> list[Any]:
        rows = self._database.execute(
            "SELECT * FROM records WHERE number > ? ORDER BY number LIMIT ?", (cursor, batch_size)
        )
        return [_record(row) for row in rows]

    def getRecord(self, metadataPrefix: str, identifier: str) -> Any:  # noqa: N802, N803
        row = self._database.execute(
            "SELECT * FROM records WHERE identifier = ?", (identifier,)
        ).fetchone()
        if row is None:
            raise error.IdDoesNotExistError(identifier)
        return _record(row)


def _record(row: tuple[Any, ...]) -> Any:
    _, identifier, datestamp, sets, *values = row
    fields: dict[str, list[str]] = {}
    for name, value in zip(_ELEMENTS, values, strict=True):
        if value:
            fields.setdefault(name, []).append(value)
    header = common.Header(None, identifier, _instant(datestamp), sets.split(), False)
    return header, common.Metadata(None, fields), None


@cache
def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


@cache
def _provider() -> Any:
    registry = metadata.MetadataRegistry()
    registry.registerWriter("oai_dc", server.oai_dc_writer)
    data = Data(os.environ[DATABASE], 1000)
    return server.BatchingServer(data, registry, resumption_batch_size=1000)


def application(environment: dict[str, Any], start: Any) -> list[bytes]:
    body = _provider().handleRequest(dict(parse_qsl(environment["QUERY_STRING"])))
    start("200 OK", [("Content-Type", "text/xml"), ("Content-Length", str(len(body)))])
    return [body]
