"""Walk through a list: requests the pages of a run's list to the end, and restarts broken lists.

A broken list is restarted at the last datestamp received if the list is in the order of datestamps,
else at its start. Records received before are known and not stored twice. If this brings nothing
new, records are requested one by one.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from builder.harvest import window
from builder.harvest.errors import HarvestError, RefusedError, Unanswered
from builder.harvest.page import ListPage
from builder.harvest.records import Ask, RecordSink, RecordWriter
from builder.harvest.state import COMPLETE, PARTIAL, RunState, ShortWalks
from builder.harvest.window import LONGEST, earlier, is_before

_IDLE, _PATIENCE = 50, 1000
"""Numbers of consecutive pages that may bring nothing: after completeListSize, and otherwise.

Repositories that filter what they have paged list many pages without records.
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
    """Walk through a run's list. `ask` and `kept` raise HarvestError.

    `overlap` is in seconds. `advance` is called with the number of records received and the size of
    the list, `paused` between pages.
    """

    ask: Ask
    kept: RecordSink
    going: RunState
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
        self._taking = RecordWriter(self.ask, self.kept, self.going)
        self._resumed = self.going.token is not None

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
        while self.going.owed:
            self._taking.fetch(*self.going.owed[0])
            del self.going.owed[0]

    def end_status(self) -> str:
        """Return the status of a run whose list has come to its end."""
        counts = self.going.counts
        missing = self._count_missing()
        if not missing:
            self.kept.state.short = None
        self.whole = not counts.outside and (not missing or self._accept_short(missing))
        size = self.going.size
        ends = not self.going.abrupt if size is None else counts.distinct >= size
        self.proven = self.whole and not counts.lost and ends
        return COMPLETE if self.whole and not counts.lost else PARTIAL

    def _count_missing(self) -> int:
        """Return how many records completeListSize promises beyond those that were listed."""
        going, counts = self.going, self.going.counts
        if going.size is None:
            return 0
        # An item that changed while the list was walked may have moved others out of it.
        versions = counts.distinct + max(0, counts.another - counts.later)
        allowed = math.ceil(self.kept.state.surplus * going.size)
        return max(0, going.size - versions - counts.lost - allowed)

    def _accept_short(self, missing: int) -> bool:
        """Return whether a short list is taken for whole."""
        going, state = self.going, self.kept.state
        size = going.size or 0
        before = state.short
        again = before is not None and tuple(before.asked) == tuple(going.asked)
        walks = before.walks + 1 if before is not None and again else 1
        text = f"the list ended after {going.counts.distinct:,} of {size:,} records"
        if walks < _WALKS or going.late:
            state.short = ShortWalks(walks, going.began or self.now, going.asked)
            going.note(f"{text}: the next run requests it again")
            return False
        state.short = None
        state.surplus += missing / size
        going.note(
            f"{text} in {walks} walks that agree, so its completeListSize is taken for wrong"
        )
        return True

    def _page(self) -> bool:
        """Request a page and store its records; return whether the list has ended."""
        going = self.going
        page = self.ask(self._question())
        going.counts.pages += 1
        going.began = going.began or window.beginning(page.date, self.now)
        going.dated = going.dated or page.date or ""
        self._taking.date = page.date or ""
        if page.errors:
            code, text = page.errors[0]
            if code in _ENDED:
                going.abrupt = going.token is not None
                return True
            raise RefusedError(code, text)
        self._resumed = False
        if going.size is None and not going.fell and going.verb == "ListRecords":
            going.size = page.size
        before, outside = going.gained, going.counts.outside
        for entry in page.entries:
            self._taking.take(entry)
        for identifier, why in page.lost:
            self._taking.fetch(identifier, why, listed=True)
        self.advance(len(page.entries), going.size)
        if self._widen(2 * (going.counts.outside - outside) >= max(1, len(page.entries))):
            return False
        if page.torn and not page.token:
            raise Unanswered("the response is incomplete")
        if not page.token:
            going.abrupt = going.token is not None and not page.entries
            return True
        self._watch(page, going.gained > before)
        going.token = page.token
        self._back_to_lists()
        return False

    def _widen(self, ignored: bool) -> bool:
        """Request everything if the repository ignores dates that the user did not ask for."""
        going = self.going
        if not ignored or tuple(going.asked) != (None, None):
            return False
        going.note("the repository ignores dates, so everything was requested")
        going.since, going.size, going.counts.outside = None, None, 0
        self._begin(None)
        return True

    def _question(self) -> dict[str, str]:
        going, state = self.going, self.kept.state
        if going.token is not None:
            return {"verb": going.verb, "resumptionToken": going.token}
        given = {"from": going.begin, "until": going.until, "set": state.set}
        named = {name: value for name, value in given.items() if value is not None}
        return {"verb": going.verb, "metadataPrefix": state.prefix, **named}

    def _watch(self, page: ListPage, gained: bool) -> None:
        """Raise ListLoopError if the same page comes again, or too many pages bring nothing.

        This is Brent's algorithm: one page is remembered, and replaced whenever its distance
        doubles.
        A token alone proves nothing: some repositories use one token for all pages of a list.
        """
        going = self.going
        if gained:
            going.idle, going.mark = 0, ""
            return
        mark = _mark(page)
        if mark == going.mark:
            raise ListLoopError("a page was repeated")
        going.idle += 1
        if going.idle & (going.idle - 1) == 0:
            going.mark = mark
        ends = going.size is not None and going.counts.distinct >= going.size
        if going.idle > going.behind + (_IDLE if ends or going.stage else _PATIENCE):
            raise ListLoopError(f"{going.idle} pages had no new records")

    def _leave_loop(self) -> str | None:
        """Return the status of a run whose list loops; None if the list is restarted."""
        going, counts = self.going, self.going.counts
        going.note("the list is a loop: its tokens never end")
        if going.size is not None and counts.distinct >= going.size:
            return self.end_status()
        going.abrupt = True
        if not going.is_in_order:
            going.note("its completeness cannot be checked")
            return PARTIAL
        if going.stage and not going.gained:  # nothing later than the last record is left
            return self.end_status()
        going.stage, going.gained = 1, 0
        self._begin(self._fall_back(self.overlap))
        return None

    def _recover(self, trouble: RefusedError | Unanswered) -> bool:
        """Restart the list if that may help. Raises permanent errors, and unavailability."""
        going = self.going
        if isinstance(trouble, Unanswered):
            if trouble.later:
                raise trouble
            if self._is_none():
                text = f"there is no OAI-PMH repository at this URL: {trouble}"
                raise Unanswered(text, trouble.status, later=True) from trouble
        if going.token is None and going.verb == "ListRecords" and self._ease_window(trouble):
            return True
        if isinstance(trouble, RefusedError):
            if trouble.code in _FINAL or not going.counts.distinct:
                raise trouble
        elif self._is_away():
            raise Unanswered(str(trouble), trouble.status, later=True) from trouble
        falls = going.is_in_order
        if self._resumed:  # the old token may have expired: the next refusal decides
            self._resumed, verb = False, going.verb
            self._begin(self._fall_back(self.overlap) if falls else going.since)
            going.verb = verb
            going.note(f"a list that could not be continued ({trouble}) was started again")
            return True
        going.stage = 1 if going.gained else going.stage + 1
        going.gained = 0
        if going.stage <= (2 if falls else 1):
            begin = (
                self._fall_back(0 if going.stage == 2 else self.overlap) if falls else going.since
            )
            self._begin(begin)
            where = f"at {begin}" if falls else "at its start"
            going.note(f"a list broke off ({trouble}) and was started again {where}")
        elif going.verb == "ListRecords":
            self._begin(going.begin)
            going.verb = "ListIdentifiers"
            going.note("records were requested one by one where lists failed")
        else:
            going.note(f"the list could not be completed: {trouble}")
            return False
        return True

    def _is_none(self) -> bool:
        """Return whether no response was ever OAI-PMH, and Identify fails now too."""
        state = self.kept.state
        pages = self.going.counts.pages or any(run.counts.pages for run in state.runs)
        return not (state.identify or state.format or pages or self._identifies())

    def _is_away(self) -> bool:
        """Return whether a repository that once answered Identify does not answer it now."""
        return bool(self.kept.state.identify) and not self._identifies()

    def _identifies(self) -> bool:
        try:
            return bool(self.ask({"verb": "Identify"}).rows)
        except Unanswered:
            return False

    def _ease_window(self, trouble: HarvestError) -> bool:
        """Request another window if this one was refused."""
        going = self.going
        refused = isinstance(trouble, RefusedError) or (
            isinstance(trouble, Unanswered)
            and trouble.status in _REFUSALS
            and not going.counts.distinct
        )
        if not refused or (isinstance(trouble, RefusedError) and trouble.code in _FINAL):
            return False
        earliest = self.kept.state.identify.get("earliestDatestamp", "")
        found = window.easier(going.begin, going.until, earliest, self.now)
        if found is None or found == (going.begin, going.until):
            return False
        going.note(f"the dates were refused ({trouble}), so others were requested")
        going.until = found[1]
        self._begin(found[0])
        return True

    def _fall_back(self, overlap: float) -> str | None:
        """Return the datestamp at which an ordered list restarts: `overlap` before the last one."""
        going = self.going
        going.fell = True
        found = earlier(going.high, overlap, self.kept.state.granularity)
        return going.since if going.since is not None and is_before(found, going.since) else found

    def _begin(self, begin: str | None) -> None:
        going = self.going
        going.begin, going.token, going.verb = begin, None, "ListRecords"
        going.last, going.idle, going.mark = "", 0, ""
        going.behind = going.counts.pages

    def _back_to_lists(self) -> None:
        """Return to lists of records after a lost record, if datestamps show where."""
        going = self.going
        if going.verb == "ListIdentifiers" and going.is_in_order:
            begin = self._fall_back(self.overlap)
            if going.gained and begin is not None and is_before(going.bad, begin):
                self._begin(begin)

    def _may_end(self) -> bool:
        """Return whether the list may be at its end; otherwise restart it."""
        going = self.going
        if going.fell and not going.rewound and (self._count_missing() or not going.ordered):
            going.rewound = True
            self._begin(going.since)
            return False
        if going.abrupt and going.size is None and going.is_in_order and going.gained:
            going.gained = 0
            self._begin(self._fall_back(self.overlap))
            return False
        return not self._reach_back()

    def _reach_back(self) -> bool:
        """Request an earlier beginning if records appeared late by more than half of the overlap.

        Still later ones would have been missed.
        """
        going = self.going
        if going.lag * 2 <= going.reach or not 0 < going.reach < LONGEST:
            return False
        going.reach = min(2 * going.reach, LONGEST)
        going.since = earlier(going.former, going.reach, self.kept.state.granularity)
        going.size = None
        self._begin(going.since)
        return True


def _mark(page: ListPage) -> str:
    """Return the fingerprint of a page: of its token, and its identifiers and datestamps."""
    named = (page.token or "", *(f"{one.identifier} {one.datestamp}" for one in page.entries))
    return hashlib.sha256("\n".join(named).encode()).hexdigest()
