"""Data types of the fileset ingest: requests, datasets of platforms, archived files and outcomes.

The fields are named as in the fileset ingest proposal; fields of our own are marked as such.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from builder.sources.datasets.status import FAIL_ALONE

DATASET = "dataset"
"""The ingest type of a request for a fileset."""


def total_size(sizes: Iterable[int | None]) -> int | None:
    """Return the bytes of files in all; None if a size is unknown."""
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """A request: the URL of a landing page or a DOI, and all other fields of its JSON line."""

    base_url: str
    ingest_type: str = DATASET
    given: Mapping[str, Any] = field(default_factory=dict)
    """The request as received; the result repeats it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetResource:
    """The resource at a request's URL, as far as it is known.

    `url` is the final URL, after the DOI's registry and the redirects; `hops` are the URLs before
    it. `status`, `media_type`, `body` and `html_biblio` describe the landing page. They are None or
    empty if it was not fetched, as for a platform known by its host. `at` is the time of the fetch,
    in 14 digits (UTC).
    """

    url: str
    hops: tuple[str, ...] = ()
    doi: str | None = None
    """The DOI of the request, in lower case, without a resolver's URL."""
    status: int | None = None
    media_type: str | None = None
    body: bytes | None = None
    html_biblio: Mapping[str, Any] = field(default_factory=dict)
    at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A creator or contributor of a dataset; an organisation has only `name`."""

    name: str
    given: str | None = None
    family: str | None = None
    orcid: str | None = None
    """Sixteen characters with hyphens, without a resolver's URL."""
    affiliations: tuple[str, ...] = ()
    organisation: bool = False
    role: str | None = None
    """DataCite's contributorType of a contributor."""


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence of the data: name, SPDX id and URL, as far as known."""

    name: str | None = None
    spdx: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """A related work, in DataCite's terms (relationType and so on)."""

    identifier: str
    identifier_type: str
    relation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A platform's description of a dataset, in one form for all platforms; texts are not HTML.

    Dates are W3CDTF: a year, a month or a day.
    """

    title: str | None = None
    creators: tuple[Person, ...] = ()
    contributors: tuple[Person, ...] = ()
    publisher: str | None = None
    published: str | None = None
    type: str = "Dataset"
    """DataCite's resourceTypeGeneral."""
    abstract: str | None = None
    subjects: tuple[str, ...] = ()
    language: str | None = None
    licences: tuple[Licence, ...] = ()
    version: str | None = None
    doi: str | None = None
    url: str | None = None
    """The URL that the platform cites, if that is not `web_base_url` of the item."""
    related: tuple[Related, ...] = ()


RAW, PACKED, WITHIN = "raw_path", "packed_bytes", "bundle_offset"
"""Keys in `extra` of a file: the platform's spelling of its path, if it differs; the bytes of a
deflated file in its bundle; the offset of its bytes in a bundle that is in a WARC record."""
GIT, REPLICAS = "git_oid", "replicas"
"""Keys in `extra` of a file: the id that git would give to a blob of its bytes, which is a SHA-1 of
their size and themselves; other URLs of the same bytes, which a digest verifies."""
PROBLEM = "problem"
"""Key in `extra` of a file that failed while others were archived: what went wrong."""

NOT_TRIED = frozenset({"withheld", "unsafe-path", "too-large-file"})
"""Statuses of files that are known not to be archived before anything is fetched."""
LEFT_OUT = NOT_TRIED | FAIL_ALONE
"""Statuses of files without which the others are archived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesetManifestFile:
    """A file of a fileset: the platform's description of it, and the result of archiving it.

    Digests are hexadecimal, in lower case. `path` is relative, with `/`
    (builder.sources.datasets.strategies.paths). `platform_url` is the URL of its bytes. Not in the
    proposal: `sha512`, `crc32`, and the place in the store. That is `key`, and within a bundle or a
    WARC `offset` and `compression` (stored or deflated).
    """

    path: str
    size: int | None = None
    md5: str | None = None
    sha1: str | None = None
    sha256: str | None = None
    mimetype: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    status: str | None = None
    platform_url: str | None = None
    terminal_url: str | None = None
    terminal_dt: str | None = None
    sha512: str | None = None
    crc32: str | None = None
    key: str | None = None
    offset: int | None = None
    compression: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpExchange:
    """A request and its response, as they are kept; `url` has no secrets.

    `at` is in 14 digits (UTC). `sent` are the header fields of the request without credentials,
    `headers` those of the response, each in order, as sent. `address` is the server's IP address,
    None behind a proxy. `body` is a short one of a redirect, a character for each byte; None if it
    was not kept.
    """

    url: str
    at: str
    status: int
    reason: str = ""
    sent: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    address: str | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformAnswer:
    """A response of a platform, or of the DOI registry, as it was received.

    `last` is the final exchange and `redirects` are those before it. `packed` is the body in zlib's
    format, without its content coding (`unpacked`: it had one); None if it was too large to keep.
    """

    last: HttpExchange
    redirects: tuple[HttpExchange, ...] = ()
    packed: bytes | None
    unpacked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesetPlatformItem:
    """A dataset as its platform describes it.

    `platform_status` is success, or the status of a refusal (builder.sources.datasets.status): the
    item is restricted, gone, or embargoed `until` a day. A refused item may still have metadata.
    The manifest marks files that the platform lists but does not give with the status `withheld`,
    those whose path cannot be kept with `unsafe-path`, and `too-large-file`.

    `platform_id` is the same for all versions of a dataset, if the platform has such an id.
    `version` distinguishes them, `index` is the platform's own count, and `order` is a text that
    sorts like the versions (builder.sources.datasets.ingest). `web_bundle_url` gives all files as
    one zip. `sent` is what the platform sent of it; results do not repeat that.
    """

    platform_name: str
    platform_status: str = "success"
    platform_domain: str | None = None
    platform_id: str | None = None
    manifest: tuple[FilesetManifestFile, ...] | None = None
    archiveorg_item_name: str | None = None
    archiveorg_item_meta: Mapping[str, Any] | None = None
    web_base_url: str | None = None
    web_bundle_url: str | None = None
    version: str | None = None
    index: int | None = None
    order: str | None = None
    until: str | None = None
    detail: str = ""
    description: Description = field(default_factory=Description)
    sent: tuple[PlatformAnswer, ...] = ()

    @property
    def files(self) -> tuple[FilesetManifestFile, ...]:
        """The files to archive: the manifest without those that are left out."""
        return tuple(file for file in self.manifest or () if file.status not in LEFT_OUT)

    def withhold(self, status: str, detail: str) -> "FilesetPlatformItem":
        """Return the item with that status, and with all its files withheld."""
        files = tuple(replace(file, status="withheld") for file in self.manifest or ())
        return replace(self, platform_status=status, detail=detail, manifest=files)

    @property
    def withheld(self) -> tuple[FilesetManifestFile, ...]:
        """The files that are left out: withheld, too large, or without a safe path."""
        return tuple(file for file in self.manifest or () if file.status in LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMeta:
    """Size of a file in bytes, its digests in hexadecimal digits, and its media type."""

    size_bytes: int
    md5hex: str
    sha1hex: str
    sha256hex: str
    mimetype: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """The final URL of a download, its time (14 digits, UTC) and its HTTP status."""

    terminal_url: str
    terminal_dt: str
    terminal_status_code: int
    terminal_sha1hex: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cdx:
    """Place of a capture: a line of a CDX file. `warc_path` is a key of the store."""

    surt: str
    datetime: str
    url: str
    mimetype: str | None
    status_code: int | None
    sha1b32: str
    warc_csize: int
    warc_offset: int
    warc_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveStrategyResult:
    """The result of a strategy for an item. Each file in `manifest` has a status.

    `file_*` describe the one file of a `*-file` strategy, `bundle_*` the bundle of a `*-bundled`
    strategy. `*_cdx` are set by `web-*` only. `location` is the key prefix of all objects in the
    store, or the key of the only one. `terminal` is None for a bundle that we made.
    """

    ingest_strategy: str
    status: str
    manifest: tuple[FilesetManifestFile, ...] = ()
    file_file_meta: FileMeta | None = None
    file_terminal: Terminal | None = None
    file_cdx: Cdx | None = None
    bundle_file_meta: FileMeta | None = None
    bundle_terminal: Terminal | None = None
    bundle_cdx: Cdx | None = None
    bundle_archiveorg_path: str | None = None
    archiveorg_item_name: str | None = None
    location: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOutcome:
    """The outcome of a request, exactly one for each. Results and publishing use nothing else.

    `at` is its time (14 digits, UTC). `item` is None if no platform described it, `archived` is
    None if nothing was archived. `code` refines the status, such as work-level for platform-scope.
    `strategy` and `reason` are the chosen strategy and why it was chosen. `platform` is known even
    if it did not describe the dataset.
    """

    request: IngestRequest
    status: str
    at: str
    detail: str = ""
    resource: DatasetResource | None = None
    item: FilesetPlatformItem | None = None
    archived: ArchiveStrategyResult | None = None
    code: str = ""
    strategy: str | None = None
    reason: str = ""
    platform: str | None = None
    incomplete: bool = False
    """Whether other files were archived, and one failed in a way that may pass."""
