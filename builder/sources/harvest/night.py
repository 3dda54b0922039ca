"""Nights of `sheaf update`: how each repository and each other source stands after them.

<home>/update.json has their standings by name; instants are in UTC. It is replaced after each
night, also after an interrupted one, as far as that came.
"""

import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from textwrap import TextWrapper
from typing import Any

from builder.errors import explaining
from builder.http.secrets import clean_text
from builder.sources.harvest.errors import HarvestError
from builder.sources.harvest.run import HarvestResult
from builder.sources.harvest.state import COMPLETE
from builder.sources.source import SourceReport
from builder.store import documents
from builder.store.durable import replace_durably
from builder.text import tally, visible
from functions.snapshot import instant
from functions.snapshot.errors import SheafError

STANDINGS = "update.json"
WHOLE, PARTIAL, FAILED = "whole", "partial", "failed"
_COLUMNS = ("repository", "state", "new", "changed", "deleted", "faults", "lag")
_LONGEST = 300
_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Standing:
    """How the last night of a repository or source ended: WHOLE, PARTIAL or FAILED.

    PARTIAL says that records came. `whole` is when the last night began in which all lists came to
    their ends, though single records may be missing. `failing` is when the first night began since
    all was WHOLE. Each is "" if there is none. `reason` is also a remark on a whole one. The counts
    are those of the runs of its lists, or of a source's ingest; `faults` are records that were
    mended or lost. `card` says what the last check of the repository showed, at `checked`.
    """

    state: str = "new"
    whole: str = ""
    failing: str = ""
    reason: str = ""
    new: int = 0
    changed: int = 0
    deleted: int = 0
    faults: int = 0
    checked: str = ""
    card: str = ""

    def follow(self, state: str, began: datetime, reason: str) -> "Standing":
        """Return the standing after a night that began then, without counts."""
        start, reason = instant.to_text(began), visible(clean_text(reason))[:_LONGEST]
        whole, failing = (start, "") if state == WHOLE else (self.whole, self.failing or start)
        return Standing(state, whole, failing, reason, checked=self.checked, card=self.card)

    def end_night(self, lists: Sequence[HarvestResult | SheafError], began: datetime) -> "Standing":
        """Return the standing of a repository after the harvest of its lists."""
        results = [result for result in lists if isinstance(result, HarvestResult)]
        came = any(result.counts.pages for result in results)
        complete = [result for result in results if result.status == COMPLETE]
        state = WHOLE if len(complete) == len(lists) else PARTIAL if came else FAILED
        reasons = dict.fromkeys(filter(None, map(_find_reason, lists)))
        row = self.follow(state, began, "; ".join(reasons))
        has_ended = sum(result.whole for result in results) == len(lists)
        return replace(
            row,
            whole=instant.to_text(began) if has_ended else row.whole,
            new=sum(result.counts.new for result in results),
            changed=sum(result.counts.changed + result.counts.another for result in results),
            deleted=sum(result.counts.deleted + result.counts.removed for result in results),
            faults=sum(result.counts.mended + result.counts.lost for result in results),
        )

    def needs_check(self, now: datetime, days: int) -> bool:
        """Return whether it answered, and its card is at least so many days old; 0: never."""
        if self.state == FAILED or not days:
            return False
        return not self.checked or now - instant.from_text(self.checked) >= timedelta(days)

    def note_card(self, card: str, checked: datetime) -> "Standing":
        """Return the standing with another card."""
        return replace(self, card=visible(clean_text(card)), checked=instant.to_text(checked))

    def end_ingest(
        self, reports: Sequence[SourceReport], began: datetime, reason: str
    ) -> "Standing":
        """Return the standing of a source after its ingest; `reason` says what failed, if any."""
        new, changed, deleted, faults = (
            sum(getattr(report, name) for report in reports)
            for name in ("new", "changed", "deleted", "faults")
        )
        state = WHOLE if not reason else PARTIAL if new + changed + deleted else FAILED
        row = self.follow(state, began, reason)
        return replace(row, new=new, changed=changed, deleted=deleted, faults=faults)


def _find_reason(outcome: HarvestResult | SheafError) -> str:
    """Return why a list is not whole, else a remark on it; "" if there is none."""
    if isinstance(outcome, SheafError) or outcome.error:
        return str(outcome if isinstance(outcome, SheafError) else outcome.error)
    counts, (first, *_) = outcome.counts, (*outcome.lost, ("?",))
    if counts.lost:
        return f"{tally(counts.lost, 'record')} could not be harvested, such as {': '.join(first)}"
    if outcome.notes:  # the last one says how the list ended, and the first ones what came before
        return outcome.notes[-1]
    many = tally(counts.mended, "record")
    return f"{many} mended: the column `fault` says how" if counts.mended else ""


def read_standings(home: Path) -> dict[str, Standing]:
    """Return the standing of each repository by its name; nothing if no night has ended."""
    try:
        return documents.build(dict[str, Standing], json.loads((home / STANDINGS).read_bytes()))
    except (OSError, ValueError):  # it can be told anew, except for how long a failure lasts
        return {}


def write_standings(home: Path, standings: Mapping[str, Standing]) -> None:
    """Replace the standings. Raises HarvestError."""
    document = {name: asdict(standing) for name, standing in standings.items()}
    with explaining(home, "written", HarvestError):
        replace_durably(home / STANDINGS, documents.write_indented(document))


def list_rows(home: Path, names: Iterable[str], now: datetime) -> list[dict[str, Any]]:
    """Return the rows of these repositories and of other sources; the lag is in seconds."""
    standings = read_standings(home)
    rows = []
    for name in (*names, *(name for name in standings if " " in name)):  # no repository has one
        row = standings.get(name, Standing())
        lag = (now - instant.from_text(row.whole)).total_seconds() if row.whole else None
        rows.append({"repository": name, **asdict(row), "lag": lag and int(lag)})
    return rows


def make_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as lines under a heading; reason and card follow, each in lines of its own."""
    lines: list[tuple[str, ...]] = [_COLUMNS]
    remarks = [("", "")]
    for row in rows:
        cells = {**row, "lag": _write_lag(row["lag"])}
        lines.append(tuple(str(cells[column]) for column in _COLUMNS))
        since = row["failing"] and f"failing since {row['failing']}: "
        card = row["card"] and f"checked {row['checked']}: {row['card']}"
        remarks.append((f"{since}{row['reason']}", card))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    form = "  ".join(f"{{:{side}{width}}}" for side, width in zip("<<>>>>>", widths, strict=True))
    wrap = TextWrapper(
        _WIDTH,
        initial_indent="    ",
        subsequent_indent="    ",
        break_long_words=False,  # paths and URLs can be copied
        break_on_hyphens=False,
    ).wrap
    pairs = zip(lines, remarks, strict=True)
    texts = ([form.format(*line), *wrap(why), *wrap(card)] for line, (why, card) in pairs)
    return "\n".join(chain(*texts))


def _write_lag(seconds: int | None) -> str:
    """Return a lag in its largest unit of which it has two."""
    if seconds is None:
        return "never"
    for unit, size in (("d", 86_400), ("h", 3600)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds // 60} min"


class Deadline(threading.Event):
    """Set once `outer` is, or so many seconds after it was made."""

    def __init__(self, outer: threading.Event, seconds: float) -> None:
        super().__init__()
        self._outer, self._end = outer, time.monotonic() + seconds

    def is_set(self) -> bool:
        """Return whether all work ends, or the time is over."""
        return self._outer.is_set() or time.monotonic() >= self._end

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, or for `timeout` seconds, and return whether it is set."""
        longest = threading.TIMEOUT_MAX if timeout is None else timeout
        self._outer.wait(min(max(0.0, self._end - time.monotonic()), longest))
        return self.is_set()
