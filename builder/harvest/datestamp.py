"""Datestamps: the two forms in which OAI-PMH has them (2.7.1), days and seconds of UTC."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

DAY = "YYYY-MM-DD"
SECOND = "YYYY-MM-DDThh:mm:ssZ"
_FORMS = {10: "%Y-%m-%d", 20: "%Y-%m-%dT%H:%M:%SZ"}
_WRITTEN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?", re.ASCII)


@lru_cache(maxsize=1024)
def moment(text: str) -> datetime | None:
    """Return the time that a datestamp means, a day's first second; None where it is none."""
    if not _WRITTEN.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None


def written(time: datetime, granularity: str) -> str:
    """Return a time as a datestamp of that granularity."""
    form = _FORMS[10 if granularity == DAY else 20]
    return time.astimezone(UTC).strftime(form).zfill(10 if granularity == DAY else 20)


def earlier(text: str, seconds: float, granularity: str) -> str:
    """Return the datestamp so many seconds before a good one."""
    found = moment(text)
    assert found is not None, text
    if (found - datetime.min.replace(tzinfo=UTC)).total_seconds() < seconds:
        return written(found, granularity)
    return written(found - timedelta(seconds=seconds), granularity)


def is_before(first: str, second: str) -> bool:
    """Tell whether a good datestamp is of an earlier time than another one."""
    if len(first) == len(second):
        return first < second
    one, other = moment(first), moment(second)
    return one is not None and other is not None and one < other
