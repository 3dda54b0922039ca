"""The baseline of bench.harvest: PyPI's `oaipmh` over SQLite, as a WSGI application for gunicorn.

It is the package's own data provider (BatchingServer, its writer of Dublin Core) over a data
interface such as its users write. The table has the columns of a capture, from which each row's
Dublin Core is made, as in Sheaf's crosswalk. A data interface gets only the number of earlier
records from the package. It can page in two ways:

- `offset`: LIMIT and OFFSET in the order of the primary key. SQLite counts rows up to the page.
  Sheaf is compared with this one.
- `key`: by a row number without gaps, so that no page has to count. A repository with deletions has
  no such numbers, so this is the best case of the package.

Advantages of the baseline: the table is read only and in the page cache, nothing was deleted or
published since, and it has 1 million records where Sheaf has 10. Its disadvantage: neither the
package nor gunicorn has gzip, so its pages are plain in all comparisons.
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

from functions.oai.format import TEMPLATES
from functions.oai.render.template_filters import Tables

DATABASE = "SHEAF_BENCH_DATABASE"
"""The environment variable that names the database."""

PAGING = "SHEAF_BENCH_PAGING"
"""The environment variable that says `offset` or `key`."""

_PAGES = {
    "offset": "SELECT * FROM records ORDER BY number LIMIT :limit OFFSET :cursor",
    "key": "SELECT * FROM records WHERE number > :cursor ORDER BY number LIMIT :limit",
}
COLUMNS = (
    "identifier",
    "datestamp",
    "sets",
    "url",
    "url_host_registered_domain",
    "fetch_date",
    "content_digest",
    "content_mime_type",
    "content_mime_detected",
    "content_languages",
    "title",
    "refers_to_url",
    "refers_to",
    "warc_filename",
    "warc_record_offset",
)
"""The columns of the table besides `number`; the first three are a header's."""


def fill(path: Path, rows: Iterable[tuple[Any, ...]]) -> None:
    """Make the database of rows with the values of COLUMNS."""
    database = sqlite3.connect(path)
    database.execute(f"CREATE TABLE records (number INTEGER PRIMARY KEY, {', '.join(COLUMNS)})")
    marks = ", ".join("?" * len(COLUMNS))
    database.executemany(f"INSERT INTO records ({', '.join(COLUMNS)}) VALUES ({marks})", rows)
    database.execute("CREATE UNIQUE INDEX by_identifier ON records (identifier)")
    database.commit()
    database.close()


class Data:
    """The package's interface of a data provider that gives batches."""

    def __init__(self, path: str, paging: str):
        self._database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self._page = _PAGES[paging]

    def identify(self) -> Any:
        return common.Identify(
            repositoryName="Baseline",
            baseURL="http://localhost/oai",
            protocolVersion="2.0",
            adminEmails=["a@example.org"],
            earliestDatestamp=datetime(2007, 1, 1),
            deletedRecord="no",
            granularity="YYYY-MM-DDThh:mm:ssZ",
            compression=["identity"],
            toolkit_description=False,
        )

    def listRecords(  # noqa: N802 - the package's name
        self,
        metadataPrefix: str,  # noqa: N803
        cursor: int = 0,
        batch_size: int = 10,
        **others: Any,
    ) -> list[Any]:
        rows = self._database.execute(self._page, {"cursor": cursor, "limit": batch_size})
        return [_record(row) for row in rows]

    def getRecord(self, metadataPrefix: str, identifier: str) -> Any:  # noqa: N802, N803
        row = self._database.execute(
            "SELECT * FROM records WHERE identifier = ?", (identifier,)
        ).fetchone()
        if row is None:
            raise error.IdDoesNotExistError(identifier)
        return _record(row)


def _record(row: tuple[Any, ...]) -> Any:
    (
        _,
        identifier,
        datestamp,
        sets,
        url,
        domain,
        date,
        digest,
        mime,
        detected,
        languages,
        title,
        refers_to_url,
        refers_to,
        file,
        offset,
    ) = row
    fields = {
        "title": [title or url],
        "identifier": [url, *([f"urn:sha1:{digest}"] if digest else ())],
        "date": [date] if date else [],
        "type": [kind] if (kind := _type(detected) or _type(mime)) else [],
        "format": [
            *([mime] if mime else ()),
            *([detected] if detected not in (None, mime) else ()),
        ],
        "language": languages.split(",") if languages else [],
        "source": [f"{file}#{offset}"] if file else [],
        "publisher": [domain] if domain else [],
        "relation": [one for one in (refers_to, refers_to_url) if one],
    }
    header = common.Header(None, identifier, _instant(datestamp), sets.split(), False)
    return header, common.Metadata(None, fields), None


@cache
def _type(mime: str | None) -> str:
    return _tables().look_up(mime, "dcmi-type")


@cache
def _tables() -> Tables:
    return Tables((TEMPLATES,))


@cache
def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


@cache
def _provider() -> Any:
    registry = metadata.MetadataRegistry()
    registry.registerWriter("oai_dc", server.oai_dc_writer)
    data = Data(os.environ[DATABASE], os.environ[PAGING])
    return server.BatchingServer(data, registry, resumption_batch_size=1000)


def application(environment: dict[str, Any], start: Any) -> list[bytes]:
    body = _provider().handleRequest(dict(parse_qsl(environment["QUERY_STRING"])))
    start("200 OK", [("Content-Type", "text/xml"), ("Content-Length", str(len(body)))])
    return [body]
