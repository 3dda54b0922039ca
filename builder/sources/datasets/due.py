"""Selection of requests to repeat, because their results may have changed.

A dataset of which files are missing counts like one that failed, for each file has its own state.
Only what is missing is then asked for.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from builder.http.secrets import is_replaced
from builder.intake import intake
from builder.intake.intake import runs
from builder.intake.lines import line_table
from builder.snapshot import query
from builder.sources.datasets.item import IngestRequest
from builder.sources.datasets.status import FAIL_ALONE, STATUSES, may_pass
from builder.store.s3 import Store
from functions.snapshot.errors import NothingPublished
from functions.store import engine

_VIEW = "ingest_fileset_platform"
_COLUMNS = (
    "ingest_type, base_url, updated, status, until, "
    "list_distinct(coalesce(json_extract_string(manifest, '$[*].status'), [])) AS states"
)
_CLOSED = frozenset({"platform-embargoed", "platform-restricted", "needs-token"})
"""Statuses of datasets to which access may be opened any day."""
_PAUSE = timedelta(days=30)
"""Time until closed datasets, and missing files, are asked for again if no date is known."""
_LATE = timedelta(days=2)
"""Time after an embargo's last day in which it may still end, somewhere on earth."""
_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")


@dataclass(frozen=True, slots=True)
class NewestResult:
    """The newest result for a type and URL: the columns that decide whether to ask again."""

    ingest_type: str
    base_url: str
    updated: datetime
    status: str
    until: str | None
    states: list[str | None]
    """The statuses of its files, each once."""


def is_due(result: NewestResult, today: str) -> bool:
    """Return whether access to the dataset, or to a part of it, may have been opened.

    `today` is YYYY-MM-DD. A month or a year counts from its first day. A dataset under embargo is
    due from the day on which it ends. If its available files were archived, the others are due once
    a day until two days after it, for it ends by the platform's clock. Without a date, and after
    it, what is closed or missing is due every 30 days.
    """
    status = STATUSES.get(result.status)
    now, asked_on = date.fromisoformat(today), result.updated.date()
    if status is None:
        return False
    if match := _DATE.match(result.until or ""):
        try:
            end = date.fromisoformat("-".join(part or "01" for part in match.groups()))
        except ValueError:
            return False
        if now < end or not status.hit:
            return now >= end
        if asked_on < min(now, end + _LATE):
            return True
    is_partial = status.hit and not FAIL_ALONE.union({"withheld"}).isdisjoint(result.states)
    return (result.status in _CLOSED or is_partial) and asked_on + _PAUSE <= now


def requests(store: Store, now: datetime, due: bool, retry: bool) -> list[IngestRequest]:
    """Return the requests that are due at `now` or to be retried; the oldest result comes first.

    `due` selects what may be accessible now, `retry` failures that may pass. The results
    are those of the newest snapshot and of intake runs not yet published. Raises StoreError.
    """
    today = f"{now:%Y-%m-%d}"
    results = sorted((NewestResult(*row) for row in _rows(store)), key=lambda row: row.updated)
    newest = {(result.ingest_type, result.base_url): result for result in results}
    rows = [
        row
        for row in newest.values()
        if ((due and is_due(row, today)) or (retry and may_pass(row.status, row.states)))
        and not is_replaced(row.base_url)  # it cannot be requested as it is stored
    ]
    rows.sort(key=lambda row: (row.updated, row.ingest_type, row.base_url))
    return [
        IngestRequest(
            row.base_url,
            row.ingest_type,
            {"base_url": row.base_url, "ingest_type": row.ingest_type},
        )
        for row in rows
    ]


def _rows(store: Store) -> Iterator[tuple[Any, ...]]:
    with engine.connect_reader() as connection:
        with contextlib.suppress(NothingPublished):
            query.prepare_view(connection, store, _VIEW)
            with engine.reading(_VIEW):
                yield from connection.execute(f"SELECT {_COLUMNS} FROM {_VIEW}").fetchall()
        waiting = list(runs(store))
        keys = intake.keys_of(store, waiting)
        for run in waiting:
            if files := intake.files(store, [run], keys, "filesets"):
                with engine.reading(f"the intake's run {run.name}"):
                    sql = f"SELECT {_COLUMNS} FROM {line_table(files, intake.FILESETS)}"
                    yield from connection.execute(sql, {"files": files}).fetchall()
