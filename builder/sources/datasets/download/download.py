"""File downloader; implements builder.sources.datasets.protocols.Downloader.

An interrupted download continues at its last byte if the rest can be trusted. Either a strong
validator shows that the file is unchanged, or a digest will verify it at the end. Otherwise it
restarts with a new sink.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from builder.http import responses
from builder.http.client import FetchRequest, HttpClient
from builder.http.errors import Deferred, FetchError
from builder.http.limits import Limits, Stop
from builder.http.url import normal_url
from builder.sources.datasets.download import api
from builder.sources.datasets.download.exchanges import digits
from builder.sources.datasets.download.partial import (
    ContentMismatch,
    PartialDownload,
    RestartDownload,
    packs,
)
from builder.sources.datasets.download.parts import DatasetParts, FilePart
from builder.sources.datasets.item import FAIL_ALONE, REPLICAS, FilesetManifestFile
from builder.sources.datasets.manifest_file import best_digest
from builder.sources.datasets.protocols import FilesetError, OpenSink, Received, ZipSink

WORTH = 16 << 20
"""Bytes of progress after which a resumable download gets all its tries again."""
SLACK = 1 << 20
"""Bytes beyond a limit that may arrive before the excess is noticed."""

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
"""Statuses of a file by FetchError code; other codes give error-platform-download."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDownloader:
    """Downloads files: at most `tries` and `seconds` for each, and nothing after `until`.

    With `parts`, it continues what an earlier process received of them.
    """

    client: HttpClient
    tries: int
    seconds: float
    until: float
    limits: Limits = field(default_factory=Limits)
    parts: DatasetParts | None = None

    def download(
        self,
        file: FilesetManifestFile,
        limit: int,
        open_sink: OpenSink,
        *,
        stop: Stop | None = None,
    ) -> Received:
        """Download a file of at most `limit` bytes into a sink, as `Downloader` of protocols says.

        If it fails, its replicas are tried in order. The error is then that of the platform's URL.
        """
        replicas = iter(file.extra.get(REPLICAS, ()) if best_digest(file) else ())
        source, first = file, None
        while True:
            try:
                return self._download(source, limit, open_sink, stop)
            except FilesetError as error:
                first = first or error
                if error.status not in FAIL_ALONE:
                    raise
                if (url := next(replicas, None)) is None:
                    raise first from error
                source = replace(file, platform_url=url)

    def _download(
        self,
        file: FilesetManifestFile,
        limit: int,
        open_sink: OpenSink,
        stop: Stop | None,
    ) -> Received:
        if not file.platform_url:
            raise FilesetError("error-platform-download", "the platform declares no URL for it")
        until = min(self.until, self.client.clock() + self.seconds)
        part = None if self.parts is None else self.parts.open(file)
        work = _Work(self, file, limit, until, left=self.tries, part=part, stop=stop)
        received = None
        try:
            while received is None:
                try:
                    with open_sink() as sink:
                        received = work.fill(sink)
                except RestartDownload as restart:
                    work.ranges = work.ranges and not restart.is_other
                    work.forget()
            return received
        finally:
            if part is not None:
                part.close(whole=received is not None)


@dataclass(slots=True)
class _Work:
    """State of one file's download over all its attempts."""

    by: FileDownloader
    file: FilesetManifestFile
    limit: int
    until: float
    left: int
    part: FilePart | None
    stop: Stop | None = None
    ranges: bool = True
    unpack: bool | None = None
    switched: bool = False
    mismatch: ContentMismatch | None = None
    failure: FetchError | None = None

    def fill(self, sink: ZipSink) -> Received:
        """Fill a sink from the start. Raises RestartDownload, and FilesetError to give up."""
        partial = PartialDownload(self.file, self.limit, sink, self.part)
        partial.resume()
        if partial.size and best_digest(self.file) and partial.is_whole():
            return partial.finish()
        while True:
            before = partial.size
            try:
                self._ask(partial)
                return partial.finish()
            except FetchError as failure:
                if partial.size and partial.is_whole():
                    return partial.finish()
                self._recover(failure, partial, partial.size - before)
            except ContentMismatch as mismatch:
                self._reject(mismatch, partial)
            except Deferred as error:
                if self.stop is not None and self.stop.is_set():
                    raise FilesetError("cancelled") from error
                last = error_of(self.failure) if self.failure else None
                status = "error-platform-download"
                raise api.deferral(self.by.client, self.until, last, status) from error

    def _ask(self, partial: PartialDownload) -> None:
        assert self.file.platform_url is not None
        client = self.by.client
        request = FetchRequest(
            url=normal_url(self.file.platform_url),
            headers=partial.headers(),
            limits=replace(self.by.limits, bytes=self.limit + SLACK),
            until=self.until,
            end=self.until,
            stop=self.stop,
            record=True,
            reuse=best_digest(self.file) is not None and self.mismatch is None,
        )
        with client.fetch(request) as answer:
            if answer.status == 416 and partial.size:
                raise RestartDownload(is_other=True)
            if answer.status not in (200, 206):
                raise api.read_refusal(client, answer)[0]
            if not partial.size and (coding := responses.content_coding(answer.headers)):
                if self.unpack is None:
                    can_unpack = responses.can_unpack(coding)
                    self.unpack = can_unpack and not packs(self.file, answer.url)
                    self.switched = not can_unpack  # an unknown coding cannot be decoded
                partial.unpack = self.unpack
            partial.take(answer, digits(client.wall()))

    def _recover(self, failure: FetchError, partial: PartialDownload, came: int) -> None:
        """Continue, restart or give up. Raises RestartDownload, FilesetError."""
        self.failure = failure.copy()
        if failure.code == "content-coding" and self._switch():
            raise RestartDownload from failure
        continues = partial.can_continue() and self.ranges
        if came >= WORTH and continues:
            self.left = self.by.tries
        self.left -= 1
        # With 202, the platform is still preparing the file.
        if not self.left or not (api.passes(failure) or failure.status == 202):
            raise error_of(failure) from failure
        if partial.size and not continues:
            raise RestartDownload from failure

    def forget(self) -> None:
        """Remove the part: it cannot be continued."""
        if self.part is not None:
            self.part.forget()

    def _reject(self, mismatch: ContentMismatch, partial: PartialDownload) -> None:
        """Restart, perhaps with the coding switched; give up if the same bytes came twice."""
        self.forget()
        if partial.coding and self._switch():
            raise RestartDownload from mismatch
        last, self.mismatch = self.mismatch, mismatch
        self.left -= 1
        again = last is not None and (last.status, last.seen) == (mismatch.status, mismatch.seen)
        if mismatch.over or again or not self.left:
            status = mismatch.status
            if partial.coding and not best_digest(self.file) and status == "mismatch-size":
                status = "encoding-ambiguous"
            raise FilesetError(status, mismatch.detail) from mismatch
        raise RestartDownload from mismatch

    def _switch(self) -> bool:
        """Decode the coding if it was kept, or keep it if it was decoded; only once."""
        if self.switched or self.unpack is None:
            return False
        self.switched = True
        self.unpack = not self.unpack
        return True


def error_of(failure: FetchError) -> FilesetError:
    """Return the file's error for a failure."""
    status = STATUSES.get(failure.code, "error-platform-download")
    if failure.status == 202:
        status = "html-decoy"
    return FilesetError(status, failure.detail, code=failure.code)
