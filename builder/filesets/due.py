"""Selection of requests to repeat, because their results may have changed."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from builder.filesets.item import IngestRequest
from builder.filesets.status import STATUSES
from builder.intake import intake
from builder.intake.intake import runs
from builder.intake.lines import line_table
from builder.snapshot import query
from builder.store.s3 import Store
from functions.database import engine
from functions.snapshot.errors import NothingPublished

_VIEW = "ingest_fileset_platform"
_COLUMNS = "ingest_type, base_url, updated, status, until"
_PUBLISHED = f"SELECT {_COLUMNS} FROM {_VIEW}"
_EMBARGO = "platform-embargoed"
_PAUSE = timedelta(days=30)
"""Time until an embargo without a date is asked about again."""
_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")


@dataclass(frozen=True, slots=True)
class Told:
    """The newest result for a type and URL: the columns that decide whether to ask again."""

    ingest_type: str
    base_url: str
    updated: datetime
    status: str
    until: str | None


def is_due(told: Told, today: str) -> bool:
    """Return whether the embargo on the dataset, or on a part of it, has ended.

    `today` is YYYY-MM-DD. A month or a year counts from its first day. If the available files were
    archived, the request is due once: only if that was before the embargo ended. An embargo without
    a date may end any day: it is due every 30 days.
    """
    found = _DATE.match(told.until or "")
    status = STATUSES.get(told.status)
    if found is None and told.status == _EMBARGO:
        return told.updated.date() + _PAUSE <= date.fromisoformat(today)
    if found is None or status is None:
        return False
    day = "-".join(part or "01" for part in found.groups())
    return day <= today and (not status.hit or f"{told.updated:%Y-%m-%d}" < day)


def may_pass(told: Told) -> bool:
    """Return whether the request failed with a retryable status."""
    status = STATUSES.get(told.status)
    return status is not None and status.retryable


def requests(store: Store, now: datetime, due: bool, retry: bool) -> list[IngestRequest]:
    """Return the requests that are due at `now` or to be retried; the oldest result comes first.

    `due` selects ended embargoes, `retry` retryable failures. The results are those of the newest
    snapshot and of intake runs not yet published. Raises StoreError.
    """
    today = f"{now:%Y-%m-%d}"
    found = [
        told
        for told in _newest(store).values()
        if (due and is_due(told, today)) or (retry and may_pass(told))
    ]
    found.sort(key=lambda told: (told.updated, told.ingest_type, told.base_url))
    return [
        IngestRequest(
            told.base_url,
            told.ingest_type,
            {"base_url": told.base_url, "ingest_type": told.ingest_type},
        )
        for told in found
    ]


def _newest(store: Store) -> Mapping[tuple[str, str], Told]:
    found: dict[tuple[str, str], Told] = {}
    for row in _rows(store):
        told = Told(*row)
        key = told.ingest_type, told.base_url
        if key not in found or found[key].updated <= told.updated:
            found[key] = told
    return found


def _rows(store: Store) -> Iterator[tuple[Any, ...]]:
    with closing(engine.connect_reader()) as connection:
        with contextlib.suppress(NothingPublished):
            query.prepare_view(connection, store, _VIEW)
            with engine.reading(_VIEW):
                yield from connection.execute(_PUBLISHED).fetchall()
        found = list(runs(store))
        keys = intake.keys_of(store, found)
        for run in found:
            files = intake.files(store, [run], keys, "filesets")
            if files:
                with engine.reading(f"the intake's run {run.name}"):
                    sql = f"SELECT {_COLUMNS} FROM {line_table(files, intake.FILESETS)}"
                    yield from connection.execute(sql, {"files": files}).fetchall()
