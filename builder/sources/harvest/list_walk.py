"""Walk through a list: requests the pages of a run's list to the end, and restarts broken lists.

A broken list is restarted at the last datestamp received if the list is in the order of datestamps,
else at its start. Records received before are known and not stored twice. If this brings nothing
new, records are requested one by one.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from builder.sources.harvest import window
from builder.sources.harvest.errors import HarvestError, RefusedError, Unanswered
from builder.sources.harvest.folder import HarvestFolder
from builder.sources.harvest.page import ListPage
from builder.sources.harvest.records import Ask, RecordWriter
from builder.sources.harvest.state import COMPLETE, PARTIAL, RunState, ShortWalks
from builder.sources.harvest.window import LONGEST, earlier, is_before

_IDLE, _PATIENCE = 50, 1000
"""Numbers of consecutive pages that may bring nothing, and of empty ones while records are missing.

Repositories that filter what they have paged list many empty pages.
"""
_WALKS = 3
"""Walks that may end short of completeListSize before the size is taken for wrong."""
_ENDED = frozenset({"noRecordsMatch"})
_FINAL = frozenset({"cannotDisseminateFormat", "noSetHierarchy", "badVerb"})
_REFUSALS = frozenset({400, 404, 422, 500})


class ListLoopError(HarvestError):
    """A list has no end."""


@dataclass(slots=True)
class ListWalk:
    """Walk through a run's list. `ask` and `sink` raise HarvestError.

    `overlap` is in seconds. `advance` is called with the number of records received and the size of
    the list, `paused` between pages.
    """

    ask: Ask
    sink: HarvestFolder
    run: RunState
    overlap: float
    now: str
    advance: Callable[[int, int | None], None]
    paused: Callable[[], None]
    whole: bool = field(init=False, default=False)
    """Whether the requested list was walked to its end; records may still be missing.

    A list is short of its end if it has fewer records than completeListSize says. It is requested
    again by the next runs. The size is taken for wrong if the third walk or a later one is short
    again, and brings nothing that the walk before should have listed. From then on, lists may lack
    that share of their size.
    """
    proven: bool = field(init=False, default=False)
    """Whether nothing speaks against the list being whole; then what it lacks is gone."""
    _taking: RecordWriter = field(init=False)
    _resumed: bool = field(init=False)
    """Whether the next token comes from an earlier process, which may have used it already."""

    def __post_init__(self) -> None:
        self._taking = RecordWriter(self.ask, self.sink, self.run)
        self._resumed = self.run.token is not None

    def to_end(self) -> str:
        """Walk to the list's end and return COMPLETE, or PARTIAL if something is missing.

        Raises Unanswered if the repository is unavailable at present, and RefusedError if it
        refuses permanently.
        """
        self.fetch_owed()
        while True:
            try:
                ended = self._page()
            except ListLoopError:
                if (status := self._leave_loop()) is not None:
                    return status
                continue
            except (RefusedError, Unanswered) as trouble:
                if not self._recover(trouble):
                    return PARTIAL
                continue
            if ended and self._may_end():
                return self.end_status()
            self.paused()

    def fetch_owed(self) -> None:
        """Request the records that the run before lost."""
        while self.run.owed:
            self._taking.fetch(*self.run.owed[0])
            del self.run.owed[0]

    def end_status(self) -> str:
        """Return the status of a run whose list has come to its end."""
        counts = self.run.counts
        missing = self._count_missing()
        if not missing:
            self.sink.state.short = None
        self.whole = not counts.outside and (not missing or self._accept_short(missing))
        size = self.run.size
        ends = not self.run.abrupt if size is None else counts.distinct >= size
        self.proven = self.whole and not counts.lost and ends
        return COMPLETE if self.whole and not counts.lost else PARTIAL

    def _count_missing(self) -> int:
        """Return how many records completeListSize promises beyond those that were listed."""
        run, counts = self.run, self.run.counts
        if run.size is None:
            return 0
        # An item that changed while the list was walked may have moved others out of it.
        versions = counts.distinct + max(0, counts.another - counts.later)
        allowed = math.ceil(self.sink.state.surplus * run.size)
        return max(0, run.size - versions - counts.lost - allowed)

    def _accept_short(self, missing: int) -> bool:
        """Return whether a short list is taken for whole."""
        run, state = self.run, self.sink.state
        size = run.size or 0
        before = state.short
        again = before is not None and tuple(before.asked) == tuple(run.asked)
        walks = before.walks + 1 if before is not None and again else 1
        text = f"the list ended after {run.counts.distinct:,} of {size:,} records"
        if walks < _WALKS or run.late:
            state.short = ShortWalks(walks, run.began or self.now, run.asked)
            run.note(f"{text}: the next run requests it again")
            return False
        state.short = None
        state.surplus += missing / size
        run.note(f"{text} in {walks} walks that agree, so its completeListSize is taken for wrong")
        return True

    def _page(self) -> bool:
        """Request a page and store its records; return whether the list has ended."""
        run = self.run
        arguments = {"verb": run.verb, "resumptionToken": run.token or ""}
        if run.token is None:
            state = self.sink.state
            dates = {"from": run.begin, "until": run.until, "set": state.set}
            named = {name: value for name, value in dates.items() if value is not None}
            arguments = {"verb": run.verb, "metadataPrefix": state.prefix, **named}
        page = self.ask(arguments)
        run.counts.pages += 1
        run.began = run.began or window.beginning(page.date, self.now)
        run.dated = run.dated or page.date or ""
        self._taking.date = page.date or ""
        if page.errors:
            code, text = page.errors[0]
            if code in _ENDED:
                run.abrupt = run.token is not None
                return True
            raise RefusedError(code, text)
        self._resumed = False
        if run.size is None and not run.fell and run.verb == "ListRecords":
            run.size = page.size
        before, outside = run.gained, run.counts.outside
        for entry in page.entries:
            self._taking.take(entry)
        for identifier, why in page.lost:
            self._taking.fetch(identifier, why, listed=True)
        self.advance(len(page.entries), run.size)
        if self._widen(2 * (run.counts.outside - outside) >= max(1, len(page.entries))):
            return False
        if page.torn and not page.token:
            raise Unanswered("the response is incomplete")
        if not page.token:
            run.abrupt = run.token is not None and not page.entries
            return True
        self._watch(page, run.gained > before)
        run.token = page.token
        if run.verb == "ListIdentifiers" and run.is_in_order:
            # A record was lost: lists of records go on if datestamps show where.
            begin = self._fall_back(self.overlap)
            if run.gained and begin is not None and is_before(run.bad, begin):
                self._begin(begin)
        return False

    def _widen(self, ignored: bool) -> bool:
        """Request everything if the repository ignores dates that the user did not ask for."""
        run = self.run
        if not ignored or tuple(run.asked) != (None, None):
            return False
        run.note("the repository ignores dates, so everything was requested")
        run.since, run.size, run.counts.outside = None, None, 0
        self._begin(None)
        return True

    def _watch(self, page: ListPage, gained: bool) -> None:
        """Raise ListLoopError if the same page comes again, or too many pages bring nothing.

        This is Brent's algorithm: one page is remembered, and replaced whenever its distance
        doubles.
        A token alone proves nothing: some repositories use one token for all pages of a list.
        """
        run = self.run
        if gained:
            run.idle, run.mark = 0, ""
            return
        named = (
            page.token or "",
            *(f"{entry.identifier} {entry.datestamp}" for entry in page.entries),
        )
        mark = hashlib.sha256("\n".join(named).encode()).hexdigest()
        if mark == run.mark:
            raise ListLoopError("a page was repeated")
        run.idle += 1
        if run.idle & (run.idle - 1) == 0:
            run.mark = mark
        ends = run.size is not None and run.counts.distinct >= run.size
        idle = _IDLE if page.entries or ends or run.stage else _PATIENCE
        if run.idle > run.behind + idle:
            raise ListLoopError(f"{run.idle} pages had no new records")

    def _leave_loop(self) -> str | None:
        """Return the status of a run whose list loops; None if the list is restarted."""
        run, counts = self.run, self.run.counts
        run.note("the list is a loop: its tokens never end")
        if run.size is not None and counts.distinct >= run.size:
            return self.end_status()
        run.abrupt = True
        if not run.is_in_order:
            run.note("its completeness cannot be checked")
            return PARTIAL
        if run.stage and not run.gained:  # nothing later than the last record is left
            return self.end_status()
        run.stage, run.gained = 1, 0
        self._begin(self._fall_back(self.overlap))
        return None

    def _recover(self, trouble: RefusedError | Unanswered) -> bool:
        """Restart the list if that may help. Raises permanent errors, and unavailability."""
        run = self.run
        if isinstance(trouble, Unanswered):
            if trouble.later:
                raise trouble
            state = self.sink.state
            pages = self.run.counts.pages or any(past.counts.pages for past in state.runs)
            if not (state.identify or state.format or pages or self._identifies()):
                text = f"there is no OAI-PMH repository at this URL: {trouble}"
                raise Unanswered(text, trouble.status, later=True) from trouble
        if run.token is None and run.verb == "ListRecords" and self._ease_window(trouble):
            return True
        if isinstance(trouble, RefusedError):
            if trouble.code in _FINAL or not run.counts.distinct:
                raise trouble
        elif bool(self.sink.state.identify) and not self._identifies():
            raise Unanswered(str(trouble), trouble.status, later=True) from trouble
        falls = run.is_in_order
        if self._resumed:  # the old token may have expired: the next refusal decides
            self._resumed, verb = False, run.verb
            self._begin(self._fall_back(self.overlap) if falls else run.since)
            run.verb = verb
            run.note(f"a list that could not be continued ({trouble}) was started again")
            return True
        run.stage = 1 if run.gained else run.stage + 1
        run.gained = 0
        if run.stage <= (2 if falls else 1):
            begin = self._fall_back(0 if run.stage == 2 else self.overlap) if falls else run.since
            self._begin(begin)
            where = f"at {begin}" if falls else "at its start"
            run.note(f"a list broke off ({trouble}) and was started again {where}")
        elif run.verb == "ListRecords":
            self._begin(run.begin)
            run.verb = "ListIdentifiers"
            run.note("records were requested one by one where lists failed")
        else:
            run.note(f"the list could not be completed: {trouble}")
            return False
        return True

    def _identifies(self) -> bool:
        try:
            return bool(self.ask({"verb": "Identify"}).rows)
        except Unanswered:
            return False

    def _ease_window(self, trouble: HarvestError) -> bool:
        """Request another window if this one was refused."""
        run = self.run
        refused = isinstance(trouble, RefusedError) or (
            isinstance(trouble, Unanswered)
            and trouble.status in _REFUSALS
            and not run.counts.distinct
        )
        if not refused or (isinstance(trouble, RefusedError) and trouble.code in _FINAL):
            return False
        earliest = self.sink.state.identify.get("earliestDatestamp", "")
        wider = window.easier(run.begin, run.until, earliest, self.now)
        if wider is None or wider == (run.begin, run.until):
            return False
        run.note(f"the dates were refused ({trouble}), so others were requested")
        run.until = wider[1]
        self._begin(wider[0])
        return True

    def _fall_back(self, overlap: float) -> str | None:
        """Return the datestamp at which an ordered list restarts: `overlap` before the last one."""
        run = self.run
        run.fell = True
        begin = earlier(run.high, overlap, self.sink.state.granularity)
        return run.since if run.since is not None and is_before(begin, run.since) else begin

    def _begin(self, begin: str | None) -> None:
        run = self.run
        run.begin, run.token, run.verb = begin, None, "ListRecords"
        run.last, run.idle, run.mark = "", 0, ""
        run.behind = run.counts.pages

    def _may_end(self) -> bool:
        """Return whether the list may be at its end; otherwise restart it."""
        run = self.run
        if run.fell and not run.rewound and (self._count_missing() or not run.ordered):
            run.rewound = True
            self._begin(run.since)
            return False
        if run.abrupt and run.size is None and run.is_in_order and run.gained:
            run.gained = 0
            self._begin(self._fall_back(self.overlap))
            return False
        return not self._reach_back()

    def _reach_back(self) -> bool:
        """Request an earlier beginning if records appeared late by more than half of the overlap.

        Still later ones would have been missed.
        """
        run = self.run
        if run.begin is None or run.lag * 2 <= run.reach or not 0 < run.reach < LONGEST:
            return False
        run.reach = min(2 * run.reach, LONGEST)
        run.since = earlier(run.former, run.reach, self.sink.state.granularity)
        run.size = None
        self._begin(run.since)
        return True
