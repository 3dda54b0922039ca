"""The conditions of a filter of records, for the table of records and its view."""

from collections.abc import Iterator

from functions.kinds import CAPTURES
from functions.reading.repository import RecordFilter
from functions.store import engine

_TYPE = "coalesce(content_mime_type, content_mime_detected, '')"
PAGES = f"(kind NOT IN {engine.texts(sorted(CAPTURES))} OR contains({_TYPE}, 'html'))"
"""What people read comes before style sheets, scripts and images of pages."""
_DATES = ", ".join(
    f"document ->> '{path}'"
    for path in (
        "$.date",
        "$.published",
        '$.fields."creation-date"[0]',
        "$.fields.year[0]",
    )
)
_STATUS, _CLASS = "fetch_status = $status::SMALLINT", "fetch_status // 100 = $status::SMALLINT"
_YEAR = f"regexp_extract(coalesce(fetch_date, {_DATES}, ''), '[0-9]{{4}}') = $year"


def write_conditions(chosen: RecordFilter) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the conditions of a filter in SQL, each with its parameter."""
    if chosen.status:
        condition = _CLASS if len(chosen.status) == 1 else _STATUS
        yield condition, {"status": chosen.status}
    if chosen.media_type:
        yield f"starts_with({_TYPE}, $media_type)", {"media_type": chosen.media_type}
    if chosen.year:
        yield _YEAR, {"year": chosen.year}
    if chosen.pages is not None:
        yield PAGES if chosen.pages else f"NOT {PAGES}", {}


def write_literals(chosen: RecordFilter) -> Iterator[str]:
    """Yield the conditions with their values in them, for a reader who copies the statement."""
    for condition, values in write_conditions(chosen):
        for name, value in values.items():
            condition = condition.replace(f"${name}", engine.quote(value))
        yield condition
