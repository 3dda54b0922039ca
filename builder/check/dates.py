"""Checks of dates: datestamps of records, and lists from and until a time (section 2.7.1)."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta

from builder.check.conversation import Conversation
from builder.check.lists import NOTHING, ListedItem, PageWalk, walk_list
from builder.check.protocol import GRANULARITIES
from builder.check.sample import RecordSample
from functions.snapshot.instant import from_datestamp, to_text

_CLOCKS = timedelta(minutes=10)
_PAGES = 5
"""Pages of a window that are walked to find a record."""


def judge_datestamps(
    talk: Conversation, items: Sequence[ListedItem], row: Mapping[str, str]
) -> None:
    """Judge the datestamps of headers by the fields of Identify, and by their responseDates."""
    card = talk.card
    length = GRANULARITIES.get(row.get("granularity", ""))
    earliest = row.get("earliestDatestamp", "")
    for item in items:
        stamp, where = item.datestamp, (item.identifier, item.request)
        moment = from_datestamp(stamp)
        right = moment is not None and length in (None, len(stamp))
        if not card.hold("D01", right, f"datestamp {stamp!r}", *where) or moment is None:
            continue
        if (date := from_datestamp(talk.dates[item.request])) is not None:
            seen = f"datestamp {stamp}, responseDate {talk.dates[item.request]}"
            card.hold("D02", moment <= date + _CLOCKS, seen, *where)
        if len(earliest) == len(stamp) and from_datestamp(earliest) is not None:
            seen = f"datestamp {stamp}, earliestDatestamp {earliest}"
            card.hold("D03", stamp >= earliest, seen, *where)


def check_windows(
    talk: Conversation, walk: PageWalk, row: Mapping[str, str], sample: RecordSample
) -> None:
    """Ask for lists between dates around records, and before and after all."""
    shape = {name: value for name, value in walk.arguments.items() if name not in ("from", "until")}
    length = GRANULARITIES.get(row.get("granularity", ""), 10)
    usable = [
        item
        for item in walk.items
        if len(item.datestamp) == length
        and from_datestamp(item.datestamp)
        and talk.is_old(item.datestamp)
    ]
    last = len(usable) - 1
    for place in sorted({0, last // 2, last}) if usable else ():
        _check_window(talk, "D04", shape, usable[place], usable[place].datestamp)
    if length == 20 and usable:
        _check_window(talk, "D05", shape, usable[-1], usable[-1].datestamp[:10])
    if len(walk.seconds) > 1 and usable:
        _check_increment(talk, shape, usable)
    earliest = from_datestamp(row.get("earliestDatestamp", ""))
    if earliest is not None and earliest.year > 1:
        day = f"{earliest - timedelta(days=2):%Y-%m-%d}"
        before = talk.ask(("verb", "ListIdentifiers"), *shape.items(), ("until", day))
        if before is not None and before.page is not None:
            dated = [entry for entry in before.page.entries if from_datestamp(entry.datestamp)]
            right = before.codes == (NOTHING,) or (before.page.entries and not dated)
            listed = f"{len(before.page.entries)} records"
            seen = f"until {day}: {', '.join(before.codes) or listed}"
            talk.card.hold("D07", right, seen, request=before.number)
    if usable:
        first = "1970-01-01" if earliest is None or earliest.year > 1970 else "0001-01-01"
        ends = {**shape, "from": first, "until": "2099-12-31"}
        wide = talk.ask(("verb", "ListIdentifiers"), *ends.items())
        if wide is not None and wide.page is not None:
            seen = f"from {first} until 2099-12-31: {', '.join(wide.codes) or 'no records'}"
            talk.card.hold("D08", wide.is_list and wide.page.entries, seen, request=wide.number)
    if not walk.ended and earliest is not None and usable:
        now = talk.clock()
        for quarter in (1, 2, 3):
            day = to_text(earliest + (now - earliest) * quarter / 4)[:10]
            _walk_window(talk, "ListRecords", shape, (day, day), 1, sample)


def _check_window(
    talk: Conversation, check: str, shape: Mapping[str, str], item: ListedItem, date: str
) -> None:
    """Ask for the records of a time at which a record changed, which must be among them."""
    window = _walk_window(talk, "ListIdentifiers", shape, (date, date), _PAGES)
    if item.identifier in window.identifiers:
        talk.card.hold(check, True)
    elif window.ended or window.codes:
        seen = (
            f"from and until {date}: {window.count:,} records, {window.stopped or 'not this one'}"
        )
        talk.card.hold(check, False, seen, item.identifier, len(talk.exchanges) - 1)


def _check_increment(
    talk: Conversation, shape: Mapping[str, str], usable: Sequence[ListedItem]
) -> None:
    """Ask for the middle half of a list by its dates, over a few pages."""
    stamps = sorted(item.datestamp for item in usable)
    first, last = stamps[len(stamps) // 4], stamps[len(stamps) * 3 // 4]
    window = _walk_window(talk, "ListIdentifiers", shape, (first, last), _PAGES)
    for item in usable if window.ended else ():
        if first <= item.datestamp <= last:
            right = item.identifier in window.identifiers
            seen = f"not listed from {first} until {last}"
            talk.card.hold("D04", right, seen, item.identifier, item.request)


def _walk_window(
    talk: Conversation,
    verb: str,
    shape: Mapping[str, str],
    bounds: tuple[str, str],
    most: int,
    sample: RecordSample | None = None,
) -> PageWalk:
    """Walk a list between two dates, and judge whether it has records of these dates only."""
    first, last = bounds
    dated = {**shape, "from": first, "until": last}
    window = walk_list(talk, verb, dated, most, sample=sample)
    for item in window.items:
        stamp = item.datestamp
        right = first <= stamp[: len(first)] and stamp[: len(last)] <= last
        if re.match(r"\d{4}-", stamp):
            seen = f"datestamp {stamp} from {first} until {last}"
            talk.card.hold("D06", right, seen, item.identifier, item.request)
    if not window.items and window.ended:
        talk.card.hold("D06", True)
    return window
