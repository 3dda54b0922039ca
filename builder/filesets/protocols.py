"""The seams of filesets: a platform, its API, what downloads, and a strategy."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from builder.filesets.item import (
    ArchiveStrategyResult,
    DatasetResource,
    FilesetManifestFile,
    FilesetPlatformItem,
    IngestRequest,
)
from builder.zip import ZipSink as ZipSink
from functions.snapshot.errors import SheafError


class FilesetError(SheafError):
    """A request, or a file of it, comes to no good end; `status` is one of the vocabulary.

    `item` is what the platform told before, for an item that is listed without files. `until` is
    the day from which it may be had (W3CDTF). `manifest` is how far the files had come.
    """

    def __init__(
        self,
        status: str,
        detail: str = "",
        *,
        item: FilesetPlatformItem | None = None,
        manifest: Sequence[FilesetManifestFile] = (),
        code: str = "",
    ) -> None:
        super().__init__(f"{status}: {detail}" if detail else status)
        self.status = status
        self.detail = detail
        self.item = item
        self.manifest = tuple(manifest)
        self.code = code
        """What it is in more detail, such as work-level of a platform-scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """An answer of a platform: where it came from at last, and what it says.

    Names of headers are in lower case.
    """

    url: str
    status: int
    body: bytes
    media_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    hops: tuple[str, ...] = ()


class Api(Protocol):
    """Asks platforms for documents: politely, safely, with little in memory.

    All methods raise FilesetError: platform-404 (404), platform-gone (410), platform-restricted
    (401, 403, 451), platform-rate-limited (429), platform-timeout, platform-http-error (any other
    status, or no connection), platform-bot-wall, platform-login-wall, platform-bad-response,
    blocked-address, robots-disallowed.
    """

    def answer(
        self, url: str, *, accept: str = "application/json", statuses: frozenset[int] = frozenset()
    ) -> ApiAnswer:
        """Return the answer at `url`, redirects followed: one of 200, or of those `statuses`."""
        ...

    def document(self, url: str, *, hosts: Sequence[str] = ()) -> Any:
        """Return the JSON document at `url`. With `hosts`, the URL's own host must be one of them.

        To be used with `hosts` for links that stand in answers, such as those of a next page.
        """
        ...

    def page(self, url: str) -> ApiAnswer:
        """Return a landing page, redirects followed, if its host's robots.txt allows it."""
        ...

    def shows_token(self, host: str) -> bool:
        """Tell whether there is a token that `host` is shown (fileset.tokens)."""
        ...


class FilesetPlatformHelper(Protocol):
    """A platform. No method but `process_request` asks anybody anything."""

    @property
    def name(self) -> str:
        """Its platform_name."""
        ...

    def match_request(self, request: IngestRequest, resource: DatasetResource) -> bool:
        """Tell whether it is this platform, by the resource's URL, DOI or landing page."""
        ...

    def process_request(
        self, request: IngestRequest, resource: DatasetResource, api: Api
    ) -> FilesetPlatformItem:
        """Return the dataset as the platform has it. Raises FilesetError.

        An item that is embargoed, restricted or gone is returned with its platform_status, where
        there are metadata to tell.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A file that came whole, and what it was verified by; digests in hexadecimal digits.

    `verified` names the best digest of the manifest that it has (sha512, sha256, sha1, md5), and
    is None where the manifest has none. `media_type` is the server's. `headers` are all of the
    answer's, in order, as sent; `unpacked` tells that a content coding was taken off the bytes.
    `terminal_url` is without signatures and tokens (builder.http.url).
    """

    size: int
    md5: str
    sha1: str
    sha256: str
    sha512: str
    crc32: str
    verified: str | None
    media_type: str | None
    terminal_url: str
    terminal_dt: str
    terminal_status_code: int
    reason: str = "OK"
    headers: tuple[tuple[str, str], ...] = ()
    unpacked: bool = False


OpenSink = Callable[[], AbstractContextManager[ZipSink]]
"""Gives a sink; the bytes count if the block ends, and are forgotten if it raises."""


class Downloader(Protocol):
    """Fetches files: politely, safely, again where they break off, verified on the way."""

    def download(
        self,
        file: FilesetManifestFile,
        limit: int,
        open_sink: OpenSink,
        *,
        html: bool = False,
    ) -> Received:
        """Fetch a file of at most `limit` bytes into a sink, and return what came.

        Within the sink's block all of it was verified. A sink is opened anew for each attempt that
        begins from the start. Where `html`, a page is no decoy. Raises FilesetError with a status
        of a file: file-404, file-forbidden, truncated, stalled, html-decoy, mismatch-size,
        mismatch-md5 and its like, encoding-ambiguous, over-limit-stream, blocked-address,
        deadline-exceeded, cancelled, error-platform-download.
        """
        ...


class FilesetIngestStrategy(Protocol):
    """A way of keeping the files of an item."""

    @property
    def name(self) -> str:
        """Its ingest_strategy."""
        ...

    def check_existing(self, item: FilesetPlatformItem) -> ArchiveStrategyResult | None:
        """Return what is kept of the very item already, None where that is not all of it.

        Its status is success-existing, or mismatch-existing where what lies there was altered.
        """
        ...

    def process(self, item: FilesetPlatformItem) -> ArchiveStrategyResult:
        """Keep the item's files, and return what came of them. Raises FilesetError.

        What is kept of it already is not fetched again.
        """
        ...
