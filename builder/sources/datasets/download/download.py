"""File downloader: polite, safe, resuming where a transfer breaks off, and verifying.

A file is received in one or several responses, and verified on the way. An interrupted download
continues at its last byte if the rest can be trusted. Either a strong validator shows that the file
is unchanged, or a digest will verify it at the end. Otherwise it restarts with a new sink.

Validators of responses show whether two of them are of the same bytes. Decoys are pages and errors
that servers send in place of a file.
"""

import hashlib
import json
import mimetypes
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from builder.http import responses
from builder.http.client import FetchRequest, HttpClient
from builder.http.errors import Deferred, FetchError
from builder.http.limits import Limits, Stop
from builder.http.responses import Response
from builder.http.url import normal_url
from builder.sources.datasets.download import api
from builder.sources.datasets.download.exchanges import describe_exchanges, digits
from builder.sources.datasets.item import GIT, REPLICAS, FilesetManifestFile
from builder.sources.datasets.manifest_file import Digests, begin_digests, best_digest
from builder.sources.datasets.protocols import FilesetError, OpenSink, Received, ZipSink
from builder.sources.datasets.status import FAIL_ALONE

_TYPES = mimetypes.MimeTypes()  # Python's own table, the same on every system
_ERRORS = frozenset({"error", "errors", "error_message", "errormessage", "exception"})
_PAGES = (".html", ".htm", ".xhtml", ".shtml", ".mhtml")
_LONGEST = 1000  # characters of an entity tag that is sent back
_PAGE = "a page, judging by its first bytes"
_RANGE = re.compile(r"bytes\s+([0-9]{1,18})-[0-9]*/([0-9]{1,18}|\*)")


class ContentMismatch(Exception):
    """The received bytes are not the file: `status` says why, `seen` identifies the bytes.

    `over`: the file is too large, and a retry cannot change that.
    """

    def __init__(self, status: str, detail: str, seen: str, over: bool = False) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail
        self.seen = seen
        self.over = over


class RestartDownload(Exception):
    """The download must start again. `is_other`: the file changed, or the server ignores ranges."""

    def __init__(self, is_other: bool = False) -> None:
        super().__init__("the download must start again")
        self.is_other = is_other


@dataclass(slots=True)
class PartialDownload:
    """The received part of a file. With `unpack`, a content coding is decoded, if there is one."""

    file: FilesetManifestFile
    limit: int
    sink: ZipSink
    unpack: bool = False
    coding: str | None = None
    _answer: Response | None = None
    _at: str = ""
    _digests: Digests = field(init=False)
    _first: tuple[str, str] = ("", "")
    _tag: str | None = None
    _total: int | None = None
    _refuses: bool = False
    _page: bool = False

    def __post_init__(self) -> None:
        self._digests = begin_digests(self.file)

    @property
    def size(self) -> int:
        """Bytes received."""
        return self._digests.size

    def can_continue(self) -> bool:
        """Return whether only the missing bytes can be requested."""
        if not self.size or self.coding or self._refuses:
            return False
        return self._tag is not None or best_digest(self.file) is not None

    def is_whole(self) -> bool:
        """Return whether the file is complete, by the platform's size and digests."""
        if self.coding or not (self.file.size is not None or best_digest(self.file)):
            return False
        return self._digests.mismatch(self.file) is None

    def headers(self) -> dict[str, str]:
        """Return the headers that request the file, or the rest of an unchanged file."""
        fields = {"Accept": "*/*", "Accept-Encoding": "identity"}
        if self.size:
            fields["Range"] = f"bytes={self.size}-"
            if self._tag is not None:
                fields["If-Range"] = self._tag
        return fields

    def take(self, answer: Response, at: str) -> None:
        """Read a response with status 200 or 206, received at `at` (14 digits).

        Raises ContentMismatch and RestartDownload; FetchError if the response breaks off or cannot
        be decoded; and the errors of the sink.
        """
        if answer.status == 206:
            self._continue(answer)
        elif self.size:
            raise RestartDownload(is_other=True)
        else:
            self._begin(answer, at)
        came: Iterable[bytes] = answer.body
        if self.coding and self.unpack:
            came = responses.unpack(came)
        self._fill(came)
        framed = {"content-length", "transfer-encoding"} & answer.headers.keys()
        # A response without a length may have ended too early.
        if not (framed or self._page or self.coding) and self.size < (self.file.size or 0):
            raise FetchError("cut-short", f"{self.size:,} bytes, without a Content-Length")

    def _begin(self, answer: Response, at: str) -> None:
        self._answer, self._at = answer, at
        self.coding = responses.content_coding(answer.headers)
        self._first = _validators(answer.headers)
        tag = _strong_validator(answer.headers)
        is_sendable = tag.isascii() and tag.isprintable() and len(tag) <= _LONGEST
        self._tag = tag if tag and is_sendable else None
        self._refuses = answer.headers.get("accept-ranges", "").strip().lower() == "none"
        length = answer.headers.get("content-length", "").strip()
        self._total = int(length[:18]) if length.isascii() and length.isdigit() else None

    def _continue(self, answer: Response) -> None:
        """Check that a response with status 206 is the rest of the same file.

        A server may ignore If-Range. So without a digest that verifies the whole file at the end,
        both responses must have one strong validator (RFC 9110, section 15.3.7.3).
        """
        if not self.size:
            raise FetchError("bad-answer", "a part, although the whole file was requested", 206)
        headers = answer.headers
        span = _RANGE.match(headers.get("content-range", ""))
        if span is None or int(span[1]) != self.size or responses.content_coding(headers):
            raise RestartDownload(is_other=True)
        now = _validators(headers)
        changed = any(a and b and a != b for a, b in zip(self._first, now, strict=True))
        same = self._tag is not None and _strong_validator(headers) == self._tag
        if changed or not (same or best_digest(self.file)):
            raise RestartDownload(is_other=True)
        if self._total is not None and span[2] not in ("*", str(self._total)):
            raise RestartDownload(is_other=True)

    def _fill(self, came: Iterable[bytes]) -> None:
        head = None if self.size else b""
        for data in came:
            if head is None:
                self._write(data)
                continue
            head += data
            if len(head) >= 1024:
                self._look(head)
                self._write(head)
                head = None
        if head is not None:
            self._look(head)
            self._write(head)

    def _look(self, head: bytes) -> None:
        """Check the first bytes and the Content-Length. Raises ContentMismatch."""
        assert self._answer is not None
        kind = api.media_type(self._answer.headers)
        packed = self.coding is not None and not self.unpack
        own = (self.file.mimetype or "").partition(";")[0].strip().lower()
        if not api.is_html(own) and not self.file.path.lower().endswith(_PAGES):
            page = api.is_html(kind) if packed else api.is_page(kind, head)
            nothing = not head and self.file.size is None
            self._page = page or (nothing and not best_digest(self.file))
        detail = _PAGE if head else "no bytes received, and no size declared"
        error = not self._page and is_json_error(self.file, kind, head)
        if (self._page or error) and not best_digest(self.file):
            excerpt = " ".join(head[:200].decode("utf-8", "replace").split())
            detail = f"JSON in place of the file: {excerpt}" if error else detail
            raise ContentMismatch("html-decoy", detail, hashlib.sha256(head).hexdigest())
        if self._total is not None and not (self.coding and self.unpack):
            self._measure(self._total, f"length {self._total}")

    def _measure(self, size: int, seen: str) -> None:
        """Raise ContentMismatch for a size that differs from the file's or exceeds the limit."""
        if self.file.size is not None and size != self.file.size:
            raise self._mismatch("mismatch-size", f"{size:,} bytes, not {self.file.size:,}", seen)
        if size > self.limit:
            over = f"more than {self.limit:,} bytes"
            raise self._mismatch("over-limit-stream", over, seen, over=True)

    def _write(self, data: bytes) -> None:
        size = self.size + len(data)
        if size > (self.limit if self.file.size is None else min(self.file.size, self.limit)):
            self._measure(size, f"{self.size} {self._digests.of('sha256')}")
        self._digests.take(data)
        self.sink.write(data)

    def finish(self) -> Received:
        """Return the complete file. Raises ContentMismatch if it is not the platform's file.

        Raises FetchError if it is shorter than the first Content-Length.
        """
        assert self._answer is not None
        short = self._total is not None and self.size < self._total and not self.coding
        if short and not self.is_whole():
            raise FetchError("cut-short", f"{self.size:,} of {self._total:,} bytes received")
        every: dict[str, Any] = self._digests.every()
        if (status := self._digests.mismatch(self.file)) is not None:
            name = status.removeprefix("mismatch-")
            declared = getattr(self.file, name) or f"a git blob {self.file.extra[GIT]}"
            detail = f"{every.get(name, str(self.size))} received, {declared} declared"
            raise self._mismatch(status, detail, every["sha256"])
        if self.coding and not best_digest(self.file) and self.file.size is None:
            raise ContentMismatch("encoding-ambiguous", self.coding, every["sha256"], over=True)
        *redirects, last = describe_exchanges(self._answer, self._at, every["sha256"])
        return Received(
            size=self.size,
            verified=best_digest(self.file),
            media_type=api.media_type(self._answer.headers),
            **every,
            unpacked=bool(self.coding and self.unpack),
            last=last,
            redirects=tuple(redirects),
        )

    def _mismatch(self, status: str, detail: str, seen: str, over: bool = False) -> ContentMismatch:
        if self._page:
            return ContentMismatch("html-decoy", _PAGE, seen)
        return ContentMismatch(status, detail, seen, over)


def _validators(headers: Mapping[str, str]) -> tuple[str, str]:
    """Return ETag and Last-Modified of a response, "" for a missing one."""
    return headers.get("etag", "").strip(), headers.get("last-modified", "").strip()


def _strong_validator(headers: Mapping[str, str]) -> str:
    """Return the strong validator of a response, or "".

    A Last-Modified is one without an ETag, and at least a second before Date (RFC 9110, sections
    8.8.2.2 and 13.1.5).
    """
    etag, modified = _validators(headers)
    if etag:
        return etag if etag.startswith('"') else ""
    try:
        age = parsedate_to_datetime(headers.get("date", "")) - parsedate_to_datetime(modified)
    except (TypeError, ValueError):
        return ""
    return modified if age.total_seconds() >= 1 else ""


def packs(file: FilesetManifestFile, url: str) -> bool:
    """Return whether the file's names show that it is itself compressed, apart from its coding."""
    named = (file.path.lower(), unquote(urlsplit(url).path).lower())
    return any(name.endswith((".gz", ".tgz", ".svgz", ".z", ".taz")) for name in named)


def is_json_error(file: FilesetManifestFile, kind: str | None, head: bytes) -> bool:
    """Return whether JSON came, such as an error, for a file of unknown size that is not JSON.

    Its name tells that it is not. If the name has no known type, JSON with an error is one.
    """
    is_json = (kind or "").endswith(("/json", "+json"))
    if not is_json or "json" in (file.mimetype or "") or file.size is not None:
        return False
    named, packing = _TYPES.guess_type(file.path)
    if named or packing:
        return "json" not in (named or "")
    try:
        document = json.loads(head)
    except ValueError:
        return False
    return isinstance(document, dict) and not _ERRORS.isdisjoint(map(str.lower, document))


WORTH = 16 << 20
"""Bytes of progress after which a resumable download gets all its tries again."""
SLACK = 1 << 20
"""Bytes beyond a limit that may arrive before the excess is noticed."""

STATUSES: Mapping[str, str] = {
    **dict.fromkeys(("not-found", "gone"), "file-404"),
    "forbidden": "file-forbidden",
    **dict.fromkeys(("no-answer", "too-slow"), "stalled"),
    "too-long": "deadline-exceeded",
    "cut-short": "truncated",
    "too-large": "over-limit-stream",
    "content-coding": "encoding-ambiguous",
    **dict.fromkeys(("address-refused", "port-refused"), "blocked-address"),
}
"""Statuses of a file by FetchError code; other codes give error-platform-download."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDownloader:
    """Downloads files: at most `tries` and `seconds` for each, and nothing after `until`.

    `advance` is called with the number of bytes since its last call, by several threads.
    """

    client: HttpClient
    tries: int
    seconds: float
    until: float
    limits: Limits = field(default_factory=Limits)
    advance: Callable[[int], None] = lambda count: None

    def download(
        self,
        file: FilesetManifestFile,
        limit: int,
        open_sink: OpenSink,
        *,
        stop: Stop | None = None,
    ) -> Received:
        """Download a file of at most `limit` bytes into a sink, and describe what was received.

        Within the sink's block everything was verified. Each attempt from the start opens a new
        sink. `stop` ends this download alone. It may be called by several threads at once. If it
        fails, its replicas are tried in order. The error is then that of the platform's URL. Raises
        FilesetError with a status of a file: file-404, file-forbidden, truncated, stalled,
        html-decoy, mismatch-size, mismatch-md5 and the like, encoding-ambiguous,
        over-limit-stream, blocked-address, deadline-exceeded, cancelled, error-platform-download.
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
        work = _Work(self, file, limit, until, left=self.tries, stop=stop)
        while True:
            try:
                with open_sink() as sink:
                    return work.fill(sink)
            except RestartDownload as restart:
                work.ranges = work.ranges and not restart.is_other


def _count(body: Iterable[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the pieces of a body, and count their bytes."""
    for piece in body:
        advance(len(piece))
        yield piece


@dataclass(slots=True)
class _Work:
    """State of one file's download over all its attempts."""

    by: FileDownloader
    file: FilesetManifestFile
    limit: int
    until: float
    left: int
    stop: Stop | None = None
    ranges: bool = True
    unpack: bool | None = None
    switched: bool = False
    mismatch: ContentMismatch | None = None
    failure: FetchError | None = None

    def fill(self, sink: ZipSink) -> Received:
        """Fill a sink from the start. Raises RestartDownload, and FilesetError to give up."""
        partial = PartialDownload(self.file, self.limit, sink)
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
            body = _count(answer.body, self.by.advance)
            partial.take(replace(answer, body=body), digits(client.wall()))

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

    def _reject(self, mismatch: ContentMismatch, partial: PartialDownload) -> None:
        """Restart, perhaps with the coding switched; give up if the same bytes came twice."""
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
