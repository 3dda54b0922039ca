"""Outcomes of a run: the results of its URLs, and the log rows that follow from them.

What earlier runs know of a URL decides whether its bytes are new, and are stored.
"""

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from builder.gather import pdf_text
from builder.gather.incidences import Before, IncidenceRules, names_pdf
from builder.gather.pdf_text import PdfText
from builder.gather.results import Fetched, FileContent, Hop, Moved, Result
from builder.gather.state import FileStates
from builder.http.errors import FetchError
from builder.http.secrets import match_kept, name_apart, strip_secrets
from builder.http.url import Redirects
from builder.obi.content import ExchangeRow, Row
from builder.obi.run import ObiRun


@dataclass(slots=True)
class RunOutcomes:
    """The results of the run so far. Safe to use from threads.

    `wanted` are URLs that templates name, and `pdf` those that a template calls a PDF. `texts` has
    the texts of PDFs by SHA-256.
    """

    run: ObiRun
    state: FileStates
    results: list[Fetched] = field(init=False, default_factory=list)
    pdf: set[str] = field(init=False, default_factory=set)
    wanted: set[str] = field(init=False, default_factory=set)
    texts: dict[str, PdfText] = field(init=False, default_factory=dict)
    _names: dict[str, str] = field(init=False, default_factory=dict)
    _before: dict[str, Before] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def name_file(self, url: str) -> str:
        """Return the id of the file at a URL: as a template or the store has it, else no secrets.

        Redirects lead to addresses that nobody else should use, such as signed ones.
        """
        if url in self._names or url in self.wanted or (name := name_apart(url)) == url:
            return self._names.get(url, url)
        return name if self._recall(url) == Before() else url

    def name_target(self, url: str, moved: Moved) -> None:
        """Name the target of a redirect as before if what may be kept of it is as before.

        A signature differs each time. The first redirect to a target decides.
        """
        last = self.before(url).target
        with suppress(FetchError):
            target = Redirects(url).follow(moved.location, moved.status)
            name = self.name_file(target)
            if last and name not in (target, last) and match_kept(target, last):
                name = last if strip_secrets(last) == last else name
            self._names.setdefault(target, name)

    def name_result(self, fetched: Fetched) -> Fetched:
        """Return a result with the ids of its URLs."""
        hops = tuple(
            replace(
                hop,
                origin=self.name_file(hop.origin),
                target=self.name_file(hop.target),
                exchange=self._name_exchange(hop.exchange),
            )
            for hop in fetched.hops
        )
        final = fetched.final
        if isinstance(final, FileContent):
            final = replace(final, exchange=self._name_exchange(final.exchange))
        return replace(fetched, hops=hops, last=self.name_file(fetched.last), final=final)

    def _name_exchange(self, exchange: ExchangeRow | None) -> ExchangeRow | None:
        return exchange and replace(exchange, id=self.name_file(exchange.id))

    def load(self, urls: Iterable[str]) -> None:
        """Look up at once what earlier runs know of URLs."""
        found = self.state.before(urls)
        with self._lock:
            self._before |= found

    def before(self, url: str) -> Before:
        """Return what earlier runs know of a URL."""
        return self._recall(self.name_file(url))

    def _recall(self, url: str) -> Before:
        with self._lock:
            if url not in self._before:
                self._before |= self.state.before([url])
            return self._before[url]

    def is_new(self, url: str, content: FileContent) -> bool:
        """Return whether a URL now has other bytes than before."""
        return content.sha256 != self.before(url).digest

    def read_text(self, url: str, result: Result) -> PdfText | None:
        """Return the text of a PDF with new bytes, and keep it for the log."""
        if not isinstance(result, FileContent) or not self.is_new(url, result):
            return None
        text = pdf_text.text(result)
        if text is not None:
            with self._lock:
                self.texts[result.sha256] = text
        return text

    def store(self, url: str, content: FileContent) -> None:
        """Store the bytes of a URL if they are new. The temporary file stays."""
        if self.is_new(url, content):
            self.run.put_file(self.name_file(url), content.path)

    def rows(self) -> list[Row]:
        """Return the log rows of all results; new redirects are recorded in the store."""

        def record(hop: Hop, target_key: str | None) -> str:
            return self.run.redirect(hop.origin, hop.target, hop.status, target_key)

        pdf = self.pdf.__contains__
        rules = IncidenceRules(
            self.run.tist, self.before, lambda url: pdf(url) or names_pdf(url), record, self.texts
        )
        return rules.rows(self.results)
