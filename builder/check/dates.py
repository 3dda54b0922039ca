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
    talk: Conversation,
    items: Sequence[ListedItem],
    dates: Mapping[int, str],
    row: Mapping[str, str],
) -> None:
    """Judge the datestamps of headers; `dates` are the responseDates of exchanges."""
    card = talk.card
    length = GRANULARITIES.get(row.get("granularity", ""))
    earliest = row.get("earliestDatestamp", "")
    for item in items:
        stamp, where = item.datestamp, (item.identifier, item.request)
        moment = from_datestamp(stamp)
        right = moment is not None and length in (None, len(stamp))
        if not card.hold("D01", right, f"datestamp {stamp!r}", *where) or moment is None:
            continue
        if (date := from_datestamp(dates.get(item.request, ""))) is not None:
            seen = f"datestamp {stamp}, responseDate {dates[item.request]}"
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
    for item in _spread(usable, 3):
        _check_window(talk, "D04", shape, item, item.datestamp)
    if length == 20 and usable:
        _check_window(talk, "D05", shape, usable[-1], usable[-1].datestamp[:10])
    if len(walk.seconds) > 1:
        _check_increment(talk, walk, shape, usable)
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
            bounds = {**shape, "from": day, "until": day}
            judge_window(talk, walk_list(talk, "ListRecords", bounds, 1, 0.0, sample))


def _check_window(
    talk: Conversation, check: str, shape: Mapping[str, str], item: ListedItem, date: str
) -> None:
    """Ask for the records of a time at which a record changed, which must be among them."""
    dated = {**shape, "from": date, "until": date}
    window = walk_list(talk, "ListIdentifiers", dated, _PAGES)
    judge_window(talk, window)
    names = {other.identifier for other in window.items}
    if item.identifier in names:
        talk.card.hold(check, True)
    elif window.ended or window.codes:
        seen = (
            f"from and until {date}: {window.count:,} records, {window.stopped or 'not this one'}"
        )
        talk.card.hold(check, False, seen, item.identifier, len(talk.exchanges) - 1)


def _check_increment(
    talk: Conversation, walk: PageWalk, shape: Mapping[str, str], usable: Sequence[ListedItem]
) -> None:
    """Ask for the middle half of a list by its dates, over a few pages."""
    stamps = sorted(item.datestamp for item in usable)
    if not stamps:
        return
    bounds = {"from": stamps[len(stamps) // 4], "until": stamps[len(stamps) * 3 // 4]}
    window = walk_list(talk, "ListIdentifiers", {**shape, **bounds}, _PAGES)
    judge_window(talk, window)
    names = {item.identifier for item in window.items}
    for item in usable if window.ended else ():
        if bounds["from"] <= item.datestamp <= bounds["until"]:
            seen = f"not listed from {bounds['from']} until {bounds['until']}"
            talk.card.hold("D04", item.identifier in names, seen, item.identifier, item.request)


def judge_window(talk: Conversation, window: PageWalk) -> None:
    """Judge whether a list between dates has records of these dates only."""
    first, last = window.arguments["from"], window.arguments["until"]
    for item in window.items:
        stamp = item.datestamp
        right = first <= stamp[: len(first)] and stamp[: len(last)] <= last
        if re.match(r"\d{4}-", stamp):
            seen = f"datestamp {stamp} from {first} until {last}"
            talk.card.hold("D06", right, seen, item.identifier, item.request)
    if not window.items and window.ended:
        talk.card.hold("D06", True)


def _spread(items: Sequence[ListedItem], most: int) -> Sequence[ListedItem]:
    """Return the first, the last, and items between them."""
    if len(items) <= most:
        return items
    return [items[(len(items) - 1) * place // (most - 1)] for place in range(most)]
