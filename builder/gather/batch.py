"""A batch: one run of the obi store, which fetches files for some minutes.

New bytes are stored as they arrive. Their rows are committed at the end, and count only then. A
batch that is ended by Ctrl-C commits the results so far.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from builder.gather import pdf_text
from builder.gather.chain import Fetched, Hop
from builder.gather.crew import Crew
from builder.gather.fetch_file import FileContent, FileFetcher, Known
from builder.gather.incidences import Before, IncidenceRules, names_pdf
from builder.gather.pdf_text import PdfText
from builder.gather.state import DueFile, FileStates
from builder.obi.row import Row
from builder.obi.run import Committed, ObiRun


@dataclass(frozen=True, slots=True)
class Pace:
    """The end of a batch (on the client's clock), its threads, and whether PDFs are read."""

    until: float
    threads: int
    pdf_text: bool = False


@dataclass(slots=True)
class Batch:
    """The state of a batch."""

    run: ObiRun
    state: FileStates
    fetcher: FileFetcher
    pace: Pace
    put_off: dict[str, int]
    advance: Callable[[int], None]
    """Called with the number of results since the last call."""
    _pdf: set[str] = field(init=False, default_factory=set)
    _before: dict[str, Before] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _outcomes: list[Fetched] = field(init=False, default_factory=list)
    _kept: set[str] = field(init=False, default_factory=set)
    _texts: dict[str, PdfText] = field(init=False, default_factory=dict)
    _pending: list[Fetched] = field(init=False, default_factory=list)

    def fetch(self, wanted: Sequence[DueFile]) -> int:
        """Fetch the files, and return the number of results.

        Raises KeyboardInterrupt; the results so far are kept, and can be committed.
        """
        self._pdf = {one.url for one in wanted if one.pdf}
        self._before = self.state.before(one.url for one in wanted)
        pace = self.pace
        crew = Crew(self.fetcher, self._find_known, pace.until, pace.threads, self.put_off)
        try:
            with closing(crew.fetch(wanted)) as outcomes:
                for fetched in outcomes:
                    self._pending.append(fetched)
                    self._take()
        finally:
            self._pending += crew.rest
        return len(self._outcomes)

    def commit(self) -> tuple[Committed, list[Row]] | None:
        """Commit the run, and return it with its rows. Without results, abandon it: None."""
        self._take()
        if not self._outcomes:
            self.run.abandon("nothing was fetched")
            return None
        rules = IncidenceRules(self.run.tist, self.before, self._is_pdf, self._hop, self._texts)
        rows = rules.rows(self._outcomes)
        return self.run.commit(rows), rows

    def before(self, url: str) -> Before:
        """Return what earlier runs know of a URL. Safe to use from threads."""
        with self._lock:
            if url not in self._before:
                self._before |= self.state.before([url])
            return self._before[url]

    def _find_known(self, url: str) -> Known:
        known = self.before(url)
        # The bytes must show that a lost file is back, so its request has no conditions.
        return Known(known.etag, known.last_modified) if known.present else Known()

    def _is_pdf(self, url: str) -> bool:
        return url in self._pdf or names_pdf(url)

    def _hop(self, hop: Hop, target_key: str | None) -> str:
        return self.run.redirect(hop.origin, hop.target, hop.status, target_key)

    def _take(self) -> None:
        """Process the pending results. May be called again after an interrupt."""
        while self._pending:
            fetched = self._pending[0]
            final, last = fetched.final, fetched.last
            if isinstance(final, FileContent) and last not in self._kept:
                self._keep(last, final)
            self._outcomes.append(fetched)
            del self._pending[0]
            self.advance(1)

    def _keep(self, url: str, content: FileContent) -> None:
        """Store the bytes of a URL if they changed."""
        if content.sha256 != self.before(url).digest:
            self.run.put_file(url, content.path)
            text = pdf_text.text(content) if self.pace.pdf_text else None
            if text is not None:
                self._texts[content.sha256] = text
        self._kept.add(url)
        content.path.unlink(missing_ok=True)
