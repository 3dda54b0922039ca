"""Items: a request, what a platform tells of the dataset that it is about, and what was kept of it.

The names of fields are those of the fileset ingest proposal; what it has not is told to be ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DATASET = "dataset"
"""The type of ingest that a request for a fileset is of."""


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """A request: the URL of a landing page or of a DOI; all that a line of JSON asked besides."""

    base_url: str
    ingest_type: str = DATASET
    given: Mapping[str, Any] = field(default_factory=dict)
    """The request as it was given, for the result to give back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetResource:
    """What is behind a request's URL, as far as it was found out.

    `url` is where the way ends that a DOI's registry or redirects lead; `hops` are the URLs before.
    `status`, `media_type`, `body` and `html_biblio` are those of the landing page, and None or
    empty where it was not fetched: a platform that is known by its host needs none. `at` is when
    it was, in 14 digits (UTC).
    """

    url: str
    hops: tuple[str, ...] = ()
    doi: str | None = None
    """The DOI that the request is about, in lower case, without a resolver before it."""
    status: int | None = None
    media_type: str | None = None
    body: bytes | None = None
    html_biblio: Mapping[str, Any] = field(default_factory=dict)
    at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who made a dataset, or had a part in it; an organisation has a name alone."""

    name: str
    given: str | None = None
    family: str | None = None
    orcid: str | None = None
    """Sixteen characters with hyphens, without a resolver before them."""
    affiliations: tuple[str, ...] = ()
    organisation: bool = False
    role: str | None = None
    """DataCite's contributorType of a contributor."""


@dataclass(frozen=True, slots=True)
class Licence:
    """What the data may be used by: a name, its SPDX id and a URL, as far as told."""

    name: str | None = None
    spdx: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """Something that the dataset is related to, in DataCite's words (relationType and so on)."""

    identifier: str
    identifier_type: str
    relation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a platform says of a dataset, in one form for all platforms. Texts are plain, not HTML.

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
    related: tuple[Related, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesetManifestFile:
    """A file of a fileset: what its platform says of it, and what came of it.

    Digests are hexadecimal, in lower case. `path` is relative, with `/`
    (builder.filesets.strategies.path). `platform_url` is where its bytes are to be had. What the
    proposal has not: `sha512`, `crc32`, and where the bytes lie in the store: `key`, with `offset`
    where that is a bundle or a WARC, and `compression` there (stored or deflated).
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
class FilesetPlatformItem:
    """A dataset as its platform has it.

    `platform_status` is success, or the status by which it is refused (builder.filesets.status)
    though its metadata may be told: an item that is embargoed `until` a day, is restricted, or is
    gone. Files that the platform lists and does not give are in the manifest with the status
    `withheld`. `platform_id` is the same for each version of one dataset, where the platform has
    such an id; `version` tells these apart, `index` is the platform's own count of them, and
    `order` a text that sorts as they do (builder.filesets.version_order).
    `web_bundle_url` gives all files as one zip.
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

    @property
    def files(self) -> tuple[FilesetManifestFile, ...]:
        """The files that the platform gives: the manifest without those that are withheld."""
        return tuple(file for file in self.manifest or () if file.status != "withheld")

    @property
    def withheld(self) -> tuple[FilesetManifestFile, ...]:
        """The files that the platform lists and does not give."""
        return tuple(file for file in self.manifest or () if file.status == "withheld")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMeta:
    """A file's bytes: how many, their digests in hexadecimal digits, and their media type."""

    size_bytes: int
    md5hex: str
    sha1hex: str
    sha256hex: str
    mimetype: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Where bytes came from at last, when (14 digits, UTC), and with which HTTP status."""

    terminal_url: str
    terminal_dt: str
    terminal_status_code: int
    terminal_sha1hex: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cdx:
    """Where a capture lies: a line of a CDX file. `warc_path` is a key of the store."""

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
    """What a strategy made of an item. `manifest` has a status for each file.

    `file_*` are of the one file of a `*-file` strategy, `bundle_*` of the bundle of a `*-bundled`
    one. `*_cdx` are of `web-*` alone. `location` is the key of the store below which all of it
    lies, or of the one object that it is; `terminal` of a bundle that we made is None.
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
    location: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOutcome:
    """What came of a request: its one result. All that `result` and publishing tell is in here.

    `at` is when it came about (14 digits, UTC). `item` is None where no platform told of it,
    `archived` where nothing was archived. `code` is the status in more detail, such as work-level
    of a platform-scope; `strategy` and `reason` are how its files are to be kept, and why so.
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
