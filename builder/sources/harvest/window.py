"""Datestamps in their two forms (OAI-PMH 2.0, section 2.7.1), and date windows. Pure.

A run without dates begins at the end of what is covered, less an overlap, and has no end date. A
record that changes meanwhile comes at the end of the list, or in the next run, which begins before
that change.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from builder.sources.harvest.state import DAY, SECOND, HarvestState, RunState
from builder.text import tally
from functions.snapshot.instant import from_datestamp

_FORMS = {10: "%Y-%m-%d", 20: "%Y-%m-%dT%H:%M:%SZ"}

Covered = tuple[str | None, str]

_OVERLAP = {DAY: 86_400}
_OVERLAP_OF_SECONDS = 3600
_PROBE = 2 * 86_400
LONGEST = 64 * 86_400
"""Overlap in seconds: of the first run of a day, and the largest."""
_SET_BACK = timedelta(seconds=20)
_TOLERANCE = timedelta(days=1)
"""Maximum distance of a record from the requested dates.

Some repositories filter by whole days, or in their own time zone.
"""


@dataclass(frozen=True, slots=True)
class HarvestDates:
    """The dates that the user asked for (each may be None), and whether to start afresh.

    With `remove_missing` a full run ends the items that it does not list, and with `accept_loss`
    however many these are.
    """

    since: str | None = None
    until: str | None = None
    full: bool = False
    remove_missing: bool = False
    accept_loss: bool = False

    @property
    def nothing(self) -> bool:
        """Whether the user gave no dates."""
        return self.since is None and self.until is None and not self.full


def overlap(wish: float | None, granularity: str) -> float:
    """Return the overlap of lists in seconds; the default is an hour, or a day if it is days."""
    return _OVERLAP.get(granularity, _OVERLAP_OF_SECONDS) if wish is None else wish


def reach(wish: float | None, state: HarvestState, now: str) -> float:
    """Return by how many seconds a run overlaps the last one.

    That is twice the repository's measured lag, or more. The first run of a day looks further back,
    and so measures the lag.
    """
    if wish is not None:
        return wish
    widest = max(overlap(None, state.granularity), min(2 * state.lag, LONGEST))
    return widest if state.probed[:10] == now[:10] else max(widest, _PROBE)


def delay(datestamp: str, instant: str) -> float:
    """Return the seconds from the beginning of a datestamp to an instant; both are valid."""
    first, second = from_datestamp(datestamp), from_datestamp(instant)
    assert first is not None, datestamp
    assert second is not None, instant
    return (second - first).total_seconds()


def plan(state: HarvestState, dates: HarvestDates, seconds: float) -> tuple[str | None, str | None]:
    """Return `from` and `until` of a run's requests, in the repository's granularity."""
    since = dates.since
    if since is None and not dates.full and state.covered is not None:
        since = earlier(state.covered[1], seconds, state.granularity)
    return to_granularity(since, state.granularity), to_granularity(dates.until, state.granularity)


def to_granularity(text: str | None, granularity: str) -> str | None:
    """Return a datestamp, shortened to a day if that is the granularity (2.7.1)."""
    return text[:10] if text is not None and granularity == DAY else text


def covering(
    before: Covered | None, since: str | None, until: str | None, began: str
) -> Covered | None:
    """Return what is covered after a complete run whose first page came at `began`.

    A window that does not touch the covered dates is not counted: the gap would be forgotten.
    """
    end = until if until is not None and is_before(until, began) else began
    if before is None:
        return since, end
    first, last = before
    after = since is not None and is_before(last, since)
    if after or (first is not None and is_before(end, first)):
        return before
    if first is None or since is None:
        low = None
    else:
        low = since if is_before(since, first) else first
    return low, end if is_before(last, end) else last


def easier(
    begin: str | None, until: str | None, earliest: str, now: str
) -> tuple[str | None, str | None] | None:
    """Return another window for a repository that refused this one, or None.

    It includes this window, and may be larger.
    """
    if begin is not None and from_datestamp(earliest) is not None and is_before(begin, earliest):
        return earliest[: len(begin)] if len(begin) <= len(earliest) else earliest, until
    if until is not None and not is_before(until, now):
        return begin, None
    if 20 in (len(begin or ""), len(until or "")):
        return begin and begin[:10], until and until[:10]
    return (None, until) if begin is not None else None


def is_later(datestamp: str, run: RunState) -> bool:
    """Return whether a valid datestamp is after the beginning of the list, as far as it is known.

    Repositories of Sheaf set their responseDate back by some seconds.
    """
    stamp, began = from_datestamp(datestamp), from_datestamp(run.dated)
    return stamp is not None and began is not None and stamp - began > _SET_BACK


def is_outside(datestamp: str, run: RunState) -> bool:
    """Return whether a valid datestamp lies outside the dates of the present list.

    After a break, the list may have begun later than the run itself.
    """
    stamp = from_datestamp(datestamp)
    assert stamp is not None, datestamp
    low = None if run.begin is None or run.since is None else from_datestamp(run.since)
    if low is not None and low - stamp > _TOLERANCE:
        return True
    high = from_datestamp(run.until or "")
    if high is None or run.until is None:
        return False
    end = timedelta(days=1) if len(run.until) == 10 else timedelta()
    return stamp - high > end + _TOLERANCE


def remarks(run: RunState) -> list[str]:
    """Return remarks for the user about the datestamps of a run's records."""
    texts = []
    if run.counts.outside:
        dates = ", ".join(
            f"{name} {date}"
            for name, date in (("from", run.begin and run.since), ("until", run.until))
            if date is not None
        )
        texts.append(
            f"the repository ignores the requested dates ({dates}): {run.counts.outside:,} of "
            f"{run.counts.distinct:,} records are outside them. Records within may be missing, "
            "so these dates do not count as harvested: harvest everything with --full, without "
            "dates"
        )
    if run.reach and 2 * run.lag > _OVERLAP_OF_SECONDS:
        texts.append(
            f"{tally(run.late, 'record')} appeared up to {run.lag / 3600:,.1f} hours after "
            f"their datestamps, so later runs overlap by {2 * run.lag / 3600:,.1f} hours"
        )
    if run.counts.later:
        texts.append(
            f"{tally(run.counts.later, 'record')} had datestamps after the list began "
            f"({run.dated}): they changed during the harvest, or the repository's clock is "
            "wrong. The next run harvests further changes. If tokens count records, others may "
            "have been skipped: --full harvests them"
        )
    return texts


def beginning(response_date: str | None, now: str) -> str:
    """Return when a list began, in seconds: by the repository's clock, or by ours, `now`.

    The earlier one counts. Some repositories give local time, or a wrong year, as UTC, although
    their datestamps are not ahead. Without a responseDate, the result is a day before `now`.
    """
    began = from_datestamp(response_date or "")
    if began is None:
        return earlier(now, _OVERLAP[DAY], SECOND)
    return min(to_text(began, SECOND), now)


def to_text(time: datetime, granularity: str) -> str:
    """Return a time as a datestamp of that granularity."""
    form = _FORMS[10 if granularity == DAY else 20]
    return time.astimezone(UTC).strftime(form).zfill(10 if granularity == DAY else 20)


def earlier(text: str, seconds: float, granularity: str) -> str:
    """Return the datestamp so many seconds before a valid one."""
    instant = from_datestamp(text)
    assert instant is not None, text
    if (instant - datetime.min.replace(tzinfo=UTC)).total_seconds() < seconds:
        return to_text(instant, granularity)
    return to_text(instant - timedelta(seconds=seconds), granularity)


def is_before(first: str, second: str) -> bool:
    """Return whether one valid datestamp is before another."""
    if len(first) == len(second):
        return first < second
    before, after = from_datestamp(first), from_datestamp(second)
    return before is not None and after is not None and before < after
