"""A batch: one run of the obi store, in which files are fetched for some minutes.

Bytes that are new go into the store as they come; the rows that tell of them are made at the end,
and only then do they count. Ended early, by Ctrl-C, it commits what it has.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from builder.gather import interstitial, pdf_digest
from builder.gather.crew import Crew
from builder.gather.incidences import Before, Text, Verdict
from builder.gather.state import State, Wanted
from builder.http.fetch import Known, Means
from builder.http.response import Content, Fetched, Hop
from builder.obi.row import Row
from builder.obi.run import Committed, ObiRun


@dataclass(frozen=True, slots=True)
class Pace:
    """Until when a batch goes on, on the clock of the hosts; threads; whether PDFs are read."""

    until: float
    threads: int
    pdf_text: bool = False


@dataclass(slots=True)
class Batch:
    """What a batch has so far."""

    run: ObiRun
    state: State
    means: Means
    pace: Pace
    put_off: dict[str, int]
    advance: Callable[[int], None]
    """Told of outcomes since the last call."""
    _pdf: set[str] = field(init=False, default_factory=set)
    _before: dict[str, Before] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _outcomes: list[Fetched] = field(init=False, default_factory=list)
    _kept: set[str] = field(init=False, default_factory=set)
    _texts: dict[str, Text] = field(init=False, default_factory=dict)
    _pending: list[Fetched] = field(init=False, default_factory=list)

    def fetch(self, wanted: Sequence[Wanted]) -> int:
        """Fetch the files, and return how many outcomes there are.

        A KeyboardInterrupt passes; what came before it is kept, and can be committed.
        """
        self._pdf = {one.url for one in wanted if one.pdf}
        self._before = self.state.before(one.url for one in wanted)
        pace = self.pace
        crew = Crew(self.means, self._known, pace.until, pace.threads, self.put_off)
        try:
            with closing(crew.fetch(wanted)) as outcomes:
                for fetched in outcomes:
                    self._pending.append(fetched)
                    self._take()
        finally:
            self._pending += crew.rest
        return len(self._outcomes)

    def commit(self) -> tuple[Committed, list[Row]] | None:
        """Make the run count, and return it with its rows; without outcomes it is abandoned."""
        self._take()
        if not self._outcomes:
            self.run.abandon("nothing was fetched")
            return None
        verdict = Verdict(self.run.tist, self.before, self._as_pdf, self._hop, self._texts)
        rows = verdict.rows(self._outcomes)
        return self.run.commit(rows), rows

    def before(self, url: str) -> Before:
        """Return what the runs before know of a URL; safe to use from threads."""
        with self._lock:
            if url not in self._before:
                self._before |= self.state.before([url])
            return self._before[url]

    def _known(self, url: str) -> Known:
        known = self.before(url)
        # Of a lost file the bytes are to be seen again, not only a word for them.
        return Known(known.etag, known.last_modified) if known.present else Known()

    def _as_pdf(self, url: str) -> bool:
        return url in self._pdf or interstitial.names_pdf(url)

    def _hop(self, hop: Hop, target_key: str | None) -> str:
        return self.run.redirect(hop.origin, hop.target, hop.status, target_key)

    def _take(self) -> None:
        """Take in the outcomes at hand; whatever interrupts it, it can be done once more."""
        while self._pending:
            fetched = self._pending[0]
            final, last = fetched.final, fetched.last
            if isinstance(final, Content) and last not in self._kept:
                self._keep(last, final)
            self._outcomes.append(fetched)
            del self._pending[0]
            self.advance(1)

    def _keep(self, url: str, content: Content) -> None:
        """Write the bytes of a URL into the store, if they are others than before."""
        if content.sha256 != self.before(url).digest:
            self.run.put_file(url, content.path)
            text = pdf_digest.text(content) if self.pace.pdf_text else None
            if text is not None:
                self._texts[content.sha256] = text
        self._kept.add(url)
        content.path.unlink(missing_ok=True)
