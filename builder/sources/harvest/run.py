"""Session of a harvest: one run, from its state to its result.

Items that a full list no longer has are named, and end as deleted on request. Repositories without
persistent deletions drop items without a word (OAI-PMH 2.0, section 2.5.1). Only a list that is
proven whole ends items, and the rule of loss holds back many at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.sax.saxutils import escape

from builder.http.errors import Deferred
from builder.http.secrets import strip_secrets
from builder.intake import loss
from builder.runtime import Clock
from builder.sources.harvest import folder, window
from builder.sources.harvest.errors import RefusedError, Unanswered
from builder.sources.harvest.folder import HarvestFolder
from builder.sources.harvest.list_walk import ListWalk
from builder.sources.harvest.page import ListPage
from builder.sources.harvest.records import Ask
from builder.sources.harvest.repository import HarvestedRepository
from builder.sources.harvest.state import (
    GIVEN_UP,
    LOST,
    PARTIAL,
    SECOND,
    Counts,
    HarvestRun,
    HarvestState,
    RunState,
)
from builder.sources.harvest.version import HarvestedRow
from builder.sources.harvest.window import HarvestDates, to_granularity
from builder.text import tally

_SHARE = 0.05
_SETS = 500_000
"""Sets after which a list counts as one without an end: a mirror has those before."""
Advance = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class HarvestJob:
    """Job of a harvest: the base URL, the format, perhaps a set, and the form of the rows.

    `form` is one of folder.FORMS; None means the form that the harvest began with. `repository` is
    the one of that URL, if the configuration names it. Each run lists all sets of a `replicated`
    one, as a mirror has those without records, too.
    """

    base_url: str
    prefix: str
    set: str | None
    form: str | None = None
    repository: HarvestedRepository | None = None
    replicated: bool = False

    @property
    def named(self) -> str:
        """Name of the harvest for the user."""
        return " ".join(filter(None, (strip_secrets(self.base_url), self.prefix, self.set)))


@dataclass(frozen=True, slots=True)
class HarvestResult:
    """Result of a harvest: of a finished run, or of a run that continues later.

    `error` is why the run ended early, or None. `rows` counts all stored rows. `unlisted` are the
    items that a full run did not list, `bare` some that came without metadata. `whole`: the list
    came to its end, though single records of it may be lost.
    """

    job: HarvestJob
    folder: Path
    number: int
    status: str
    counts: Counts
    notes: tuple[str, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    rows: int = 0
    error: str | None = None
    unlisted: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    whole: bool = False


@dataclass(slots=True)
class HarvestSession:
    """Updates one harvest in `home`. `ask` raises Unanswered and Deferred.

    The work is committed after `every` seconds, and less often the longer the run takes. So an
    interrupted run loses at most a twentieth of its work, and there are few parts. `overlap` is in
    seconds; None means the default.
    """

    job: HarvestJob
    home: Path
    dates: HarvestDates
    ask: Ask
    clock: Clock
    seconds: Callable[[], float]
    say: Callable[[str], None]
    advance: Advance
    every: float = 5.0
    overlap: float | None = None
    _last: float = field(init=False, default=0.0)
    _began: float = field(init=False, default=0.0)

    def carry_out(self) -> HarvestResult:
        """Harvest, and return the result. Raises HarvestError, UsageError; Deferred if stopped.

        Received records are stored, even after an error.
        """
        job = self.job
        repository = job.repository or HarvestedRepository("", (job.base_url,))
        path = folder.find_folder(self.home, repository, job.base_url, job.prefix, job.set)
        address = strip_secrets(job.base_url)
        fresh = HarvestState(address, job.prefix, job.set, job.form or folder.FORMS[0])
        with folder.open_folder(path, fresh, job.form) as harvest:
            try:
                return self._walk(harvest, self._run_state(harvest))
            except Unanswered as error:
                if harvest.state.going is not None and harvest.state.going.counts == Counts():
                    harvest.state.going = None  # a run that never began is not continued
                harvest.commit()
                run = harvest.state.going or RunState(0, self._now())
                return self._result(harvest, run, PARTIAL, str(error))
            except Deferred:
                harvest.commit()
                raise

    def _run_state(self, harvest: HarvestFolder) -> RunState:
        """Return the unfinished run, or a new one."""
        state, dates = harvest.state, self.dates
        unfinished = state.going
        if unfinished is not None:
            wish = (dates.since, dates.until, dates.full)
            same = wish == (*unfinished.asked, unfinished.full)
            if dates.nothing or same:
                unfinished.remade = unfinished.remade or harvest.remade
                self.say(f"{self.job.named}: resuming run {unfinished.number}")
                return unfinished
            self.say(f"{self.job.named}: abandoning run {unfinished.number} for a new one")
            for identifier, why in unfinished.owed:  # not requested yet: the new run does that
                unfinished.lose(identifier, why)
            self._end(harvest, unfinished, GIVEN_UP)
        listed = self._identify(harvest)
        reach = window.reach(self.overlap, state, self._now())
        since, until = window.plan(state, dates, reach)
        number = max((run.number for run in state.runs), default=0) + 1
        wished, now = (dates.since, dates.until), self._now()
        state.going = RunState(number, now, since, until, wished, dates.full, begin=since)
        if state.short is not None and tuple(state.short.asked) == state.going.asked:
            state.going.former = state.short.began
        elif dates.nothing and state.covered is not None:
            state.going.former = state.covered[1]
            if self.overlap is None:
                state.going.reach = reach
                state.probed = state.going.started
        if state.runs:
            state.going.owed = [lost for lost in state.runs[-1].lost if lost[0]]
        # A set is also listed by a set below it. Without any listed set, this is unknown.
        is_listed = any(f"{spec}:".startswith(f"{state.set}:") for spec in listed)
        if state.set is not None and listed and not is_listed:
            state.going.note(f"the repository does not list the set {state.set}")
        harvest.seen.begin()
        harvest.commit()
        return state.going

    def _walk(self, harvest: HarvestFolder, run: RunState) -> HarvestResult:
        self._last = self._began = self.seconds()
        overlap = window.overlap(self.overlap, harvest.state.granularity)

        def pause() -> None:
            now = self.seconds()
            if now - self._last >= max(self.every, (now - self._began) * _SHARE):
                harvest.commit()
                self._last = self.seconds()

        walk = ListWalk(self.ask, harvest, run, overlap, self._now(), self.advance, pause)
        try:
            status = walk.to_end()
        except RefusedError as error:
            return self._result(harvest, self._end(harvest, run, GIVEN_UP), GIVEN_UP, str(error))
        state = harvest.state
        unlisted: tuple[str, ...] = ()
        if walk.whole and run.counts.lost <= LOST:  # the next run requests the lost records again
            state.covered = window.covering(
                state.covered, run.since, run.until, run.began or self._now()
            )
            state.lag = max(state.lag, run.lag if run.reach else 0.0)
            unlisted = end_unlisted(harvest, run, self.dates, walk.proven)
        ended = self._result(harvest, self._end(harvest, run, status), status)
        return replace(ended, unlisted=unlisted, bare=tuple(run.bare))

    def _end(self, harvest: HarvestFolder, state: RunState, status: str) -> HarvestRun:
        state.notes[:0] = window.remarks(state)
        run = HarvestRun(
            state.number,
            status,
            state.started,
            self._now(),
            state.since,
            state.until,
            state.began,
            state.counts,
            tuple(state.lost),
            tuple(state.notes),
        )
        harvest.state.end(run)
        harvest.commit()
        return run

    def _result(
        self,
        harvest: HarvestFolder,
        run: HarvestRun | RunState,
        status: str,
        error: str | None = None,
    ) -> HarvestResult:
        """Return the result of a run that is finished, or that continues later."""
        return HarvestResult(
            self.job,
            harvest.path,
            run.number,
            status,
            run.counts,
            tuple(run.notes),
            tuple(run.lost),
            sum(part.rows for part in harvest.state.parts),
            error,
            whole=error is None and harvest.state.is_whole,
        )

    def _identify(self, harvest: HarvestFolder) -> Mapping[str, str]:
        """Store what Identify and ListMetadataFormats report, if anything. Return all sets.

        Returns no sets if the complete list is unknown.
        """
        state, identity = harvest.state, self._ask_or_nothing({"verb": "Identify"})
        if identity.rows:
            state.identify = identity.rows[0]
            state.emails, state.descriptions = identity.emails, identity.descriptions
        for row in self._ask_or_nothing({"verb": "ListMetadataFormats"}).rows:
            if row.get("metadataPrefix") == state.prefix:
                state.format = row
        if not self.dates.full and state.parts and not self.job.replicated:
            return {}
        sets, whole = self._sets()
        # A list that broke off takes no name away that an earlier one brought.
        if sets and (whole or not (harvest.path / folder.SETS).exists()):
            harvest.keep_sets([*sets.items()])
        return sets if whole else {}

    def _sets(self) -> tuple[Mapping[str, str], bool]:
        """Return setName by setSpec, up to the limit, and whether the list is complete."""
        names: dict[str, str] = {}
        arguments: dict[str, str] = {"verb": "ListSets"}
        while len(names) < _SETS:
            page, before = self._ask_or_nothing(arguments), len(names)
            for row in page.rows:
                if spec := row.get("setSpec"):
                    names.setdefault(spec, row.get("setName", ""))
            if not page.token or len(names) == before:  # some lists have no end
                return names, bool(page.rows)
            arguments = {"verb": "ListSets", "resumptionToken": page.token}
        return names, False

    def _ask_or_nothing(self, arguments: Mapping[str, str]) -> ListPage:
        """Return the response, or an empty one. Raises Unanswered if `later` is set."""
        try:
            return self.ask(arguments)
        except Unanswered as error:
            if error.later:
                raise
            return ListPage()

    def _now(self) -> str:
        return window.to_text(self.clock(), SECOND)


VANISHED = "the repository no longer lists it"
"""The fault of a deletion that the repository did not send."""
_RECORD = (
    '<record xmlns="http://www.openarchives.org/OAI/2.0/"><header status="deleted">'
    "<identifier>{}</identifier><datestamp>{}</datestamp>{}</header></record>"
)


def end_unlisted(
    folder: HarvestFolder, run: RunState, dates: HarvestDates, proven: bool
) -> tuple[str, ...]:
    """Return the items that a full run did not list, and store their deletions if asked to.

    `proven` says that the list was whole. Raises HarvestError.
    """
    if not run.full or run.remade or run.since is not None or run.until is not None:
        return ()
    items = folder.find_unlisted(run.number)
    if not items:
        return ()
    many = f"{tally(len(items), 'record')} of earlier runs no longer listed"
    lost_all = not run.counts.distinct
    if not dates.remove_missing:
        run.note(f"{many}: --remove-missing deletes them")
    elif not proven:
        run.note(f"{many}, but not deleted: this list may have been incomplete")
    elif not dates.accept_loss and (lost_all or loss.is_held(len(items), folder.seen.count_live())):
        run.note(f"{many} at once, and not deleted: --accept-loss deletes them")
    else:
        stamp = to_granularity(run.began, folder.state.granularity) or ""
        for name, sets in items.items():
            specs = "".join(f"<setSpec>{escape(spec)}</setSpec>" for spec in sets)
            record = _RECORD.format(escape(name), stamp, specs)
            folder.add(
                HarvestedRow(name, stamp, True, sets, {}, record, run.dated, run.number, VANISHED)
            )
        run.counts.removed = len(items)
        run.note(f"{many}, and deleted")
    return tuple(items)
