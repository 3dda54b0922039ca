"""Downloading files; the seam is builder.filesets.protocols.Downloader.

What breaks off is gone on with where it broke off, if it is still the same file by its tag, or if a
digest is going to tell in the end. All else begins anew, into a sink of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from builder.filesets.download.client import Line, Pace, Wanted, reached, refused
from builder.filesets.download.digests import best
from builder.filesets.download.partial import Anew, Another, Passage, Wrong, packs
from builder.filesets.item import FilesetManifestFile
from builder.filesets.protocols import FilesetError, OpenSink, Received, Sink
from builder.http import coding
from builder.http.errors import Deferred, NotHad
from builder.http.outcomes import OUTCOMES

WORTH = 16 << 20
"""Bytes behind which a file that can be gone on with has all its tries again."""
SLACK = 1 << 20
"""Bytes that may come beyond a limit before it is known that there are too many."""
_AGAIN = frozenset({202, 408, 425})

STATUSES: Mapping[str, str] = {
    "not-found": "file-404",
    "gone": "file-404",
    "forbidden": "file-forbidden",
    "no-answer": "stalled",
    "too-slow": "stalled",
    "too-long": "deadline-exceeded",
    "cut-short": "truncated",
    "too-large": "over-limit-stream",
    "content-coding": "encoding-ambiguous",
    "address-refused": "blocked-address",
    "port-refused": "blocked-address",
}
"""What a failure of an exchange means for a file; all others are error-platform-download."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDownloader:
    """Fetches files with `tries` for each, none for longer than `seconds` or after `until`."""

    line: Line
    tries: int
    seconds: float
    until: float
    pace: Pace = field(default_factory=Pace)

    def download(
        self,
        file: FilesetManifestFile,
        limit: int,
        open_sink: OpenSink,
        *,
        html: bool = False,
    ) -> Received:
        """Fetch a file of at most `limit` bytes into a sink; see builder.filesets.protocols."""
        if not file.platform_url:
            raise FilesetError("error-platform-download", "the platform tells no URL of it")
        until = min(self.until, self.line.clock() + self.seconds)
        work = _Work(self, file, limit, html, until, left=self.tries)
        while True:
            try:
                with open_sink() as sink:
                    return work.filled(sink)
            except Another:
                work.ranges = False
            except Anew:
                continue


@dataclass(slots=True)
class _Work:
    """One file that is fetched: what is known of the way to it by now."""

    by: FileDownloader
    file: FilesetManifestFile
    limit: int
    html: bool
    until: float
    left: int
    ranges: bool = True
    unpack: bool | None = None
    switched: bool = False
    wrong: Wrong | None = None
    said: NotHad | None = None

    def filled(self, sink: Sink) -> Received:
        """Fill a sink from the start. Raises Anew, and FilesetError where it was tried enough."""
        passage = Passage(self.file, self.limit, sink, self.html)
        while True:
            before = passage.size
            try:
                self._ask(passage)
                return passage.received()
            except NotHad as failure:
                if passage.size and passage.is_whole():
                    return passage.received()
                self._failed(failure, passage, passage.size - before)
            except Wrong as wrong:
                self._mistaken(wrong, passage)
            except Deferred as error:
                raise self._deferred() from error

    def _ask(self, passage: Passage) -> None:
        assert self.file.platform_url is not None
        line = self.by.line
        most = self.limit + SLACK
        wanted = Wanted(headers=passage.headers(), pace=self.by.pace, bytes=most, until=self.until)
        with reached(line, self.file.platform_url, wanted) as found:
            answer = found.answer
            if answer.status == 416 and passage.size:
                raise Another
            if answer.status not in (200, 206):
                raise refused(line, answer)
            if not passage.size and coding.coding(answer.headers):
                passage.unpack = self._unpacks(answer.headers, found.url)
            passage.take(found, instant(line.wall()))

    def _unpacks(self, headers: Mapping[str, str], url: str) -> bool:
        """Tell whether to take off a content coding: what the digest told, or names do."""
        if self.unpack is None:
            known = coding.is_known(coding.coding(headers) or "")
            self.unpack = known and not packs(self.file, url)
            self.switched = not known  # there is no other way
        return self.unpack

    def _failed(self, failure: NotHad, passage: Passage, came: int) -> None:
        """Go on, begin anew, or give up. Raises Anew, FilesetError."""
        self.said = failure.told()
        if failure.code == "content-coding" and self._switch():
            raise Anew from failure
        goes_on = passage.can_go_on() and self.ranges
        if came >= WORTH and goes_on:
            self.left = self.by.tries
        self.left -= 1
        if not self.left or not _passes(failure):
            raise error_of(failure) from failure
        if passage.size and not goes_on:
            raise Anew from failure

    def _mistaken(self, wrong: Wrong, passage: Passage) -> None:
        """Begin anew, in another way perhaps, or give up. The same bytes twice are no accident."""
        if passage.coding and self._switch():
            raise Anew from wrong
        known, self.wrong = self.wrong, wrong
        self.left -= 1
        again = known is not None and (known.status, known.seen) == (wrong.status, wrong.seen)
        if wrong.over or again or not self.left:
            status = wrong.status
            if passage.coding and not best(self.file) and status == "mismatch-size":
                status = "encoding-ambiguous"
            raise FilesetError(status, wrong.detail) from wrong
        raise Anew from wrong

    def _switch(self) -> bool:
        """Take the coding off if it was left on, and the other way round, once."""
        if self.switched or self.unpack is None:
            return False
        self.switched = True
        self.unpack = not self.unpack
        return True

    def _deferred(self) -> FilesetError:
        if self.by.line.stop.is_set():
            return FilesetError("cancelled")
        if self.by.line.clock() >= self.until:
            return FilesetError("deadline-exceeded", self.said.detail if self.said else "")
        if self.said is not None:
            return error_of(self.said)
        detail = "its host failed before, and is left alone"
        return FilesetError("error-platform-download", detail)


def error_of(failure: NotHad) -> FilesetError:
    """Return what a failure means for a file."""
    status = STATUSES.get(failure.code, "error-platform-download")
    if failure.status == 202:  # it is being made ready, and a page says so
        status = "html-decoy"
    return FilesetError(status, failure.detail, code=failure.code)


def instant(seconds: float) -> str:
    """Return a time since 1970 in 14 digits (UTC)."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d%H%M%S")


def _passes(failure: NotHad) -> bool:
    return OUTCOMES[failure.code].soon or failure.status in _AGAIN
