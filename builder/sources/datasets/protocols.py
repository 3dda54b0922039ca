"""Protocols of filesets: platform and platform API; and what a download gives."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from builder.http.secrets import clean_text
from builder.sources.datasets.item import (
    DatasetResource,
    FilesetManifestFile,
    FilesetPlatformItem,
    HttpExchange,
    PlatformAnswer,
)
from builder.zip import ZipSink as ZipSink
from functions.snapshot.errors import SheafError


class FilesetError(SheafError):
    """A request or a file fails; `status` is a row of builder.sources.datasets.status.

    `item` is the platform's description, if the error is that of a platform which has read one.
    `manifest` is the state of the files.
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
        detail = clean_text(detail)
        super().__init__(f"{status}: {detail}" if detail else status)
        self.status = status
        self.detail = detail
        self.item = item
        self.manifest = tuple(manifest)
        self.code = code
        """Refines the status, such as work-level for platform-scope."""


class ScopeError(FilesetError):
    """A URL is not that of one version of one dataset (platform-scope); `code` says of what."""

    def __init__(self, detail: str, code: str) -> None:
        super().__init__("platform-scope", detail, code=code)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """A platform's response: the final URL, and the content.

    Header names are in lower case.
    """

    url: str
    status: int
    body: bytes
    media_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    hops: tuple[str, ...] = ()


class Api(Protocol):
    """Client for documents of platforms: polite, safe, and with bounded memory.

    All methods raise FilesetError: platform-404 (404), platform-gone (410), platform-restricted
    (401, 403, 451), platform-rate-limited (429), platform-timeout, platform-http-error (any other
    status, or no connection), platform-bot-wall, platform-login-wall, platform-bad-response,
    blocked-address, robots-disallowed.
    """

    @property
    def heard(self) -> Sequence[PlatformAnswer]:
        """The responses so far, in order."""
        ...

    def answer(
        self,
        url: str,
        *,
        accept: str = "application/json",
        statuses: frozenset[int] = frozenset(),
        hosts: Sequence[str] = (),
    ) -> ApiAnswer:
        """Return the response at `url` after redirects: its status is 200 or one of `statuses`.

        `hosts` is as for `document`.
        """
        ...

    def document(self, url: str, *, hosts: Sequence[str] = ()) -> Any:
        """Return the JSON document at `url`. With `hosts`, the URL's own host must be one of them.

        Use `hosts` for links that come from responses, such as the URL of a next page.
        """
        ...

    def page(self, url: str) -> ApiAnswer:
        """Return a landing page, redirects followed, if its host's robots.txt allows it."""
        ...

    def shows_token(self, host: str) -> bool:
        """Return whether there is a token for `host` (fileset.tokens)."""
        ...


@dataclass(frozen=True, slots=True)
class PlatformFacts:
    """A platform's name, how it is recognised, and notes on what is read, in one line each."""

    name: str
    known_by: str
    notes: str

    @property
    def row(self) -> str:
        """The row of the table of platforms, in Markdown."""
        return f"| `{self.name}` | {self.known_by} | {self.notes} |"


class FilesetPlatformHelper(Protocol):
    """A platform. Only `process_request` sends requests."""

    @property
    def facts(self) -> PlatformFacts:
        """Its platform_name, and its row in the guide."""
        ...

    def match_request(self, resource: DatasetResource) -> bool:
        """Return whether the resource is at this platform, by its URL, DOI or landing page."""
        ...

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the dataset as the platform describes it. Raises FilesetError.

        An embargoed, restricted or deleted item is returned with that platform_status, if the
        platform still has its metadata.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A file that was received completely, and how it was verified; digests are hexadecimal.

    `verified` names the best digest that the manifest gives (sha512, sha256, sha1, md5, git_oid),
    None if it gives none. `media_type` is the server's, and `unpacked` is true if a content coding
    was decoded. `last` is the exchange that gave the bytes, and `redirects` led to it.
    """

    size: int
    md5: str
    sha1: str
    sha256: str
    sha512: str
    crc32: str
    verified: str | None
    media_type: str | None
    last: HttpExchange
    unpacked: bool = False
    redirects: tuple[HttpExchange, ...] = ()


OpenSink = Callable[[], AbstractContextManager[ZipSink]]
"""Opens a sink; its bytes are kept if the block ends, and discarded if it raises."""
