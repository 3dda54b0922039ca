"""Detects the platform of a request's dataset with as few requests as possible.

It tries in this order: the DOI's registry, known hosts and URLs, the API of the host, the landing
page and what it cites, and finally the files that the page itself lists. A probe is a request that
recognises a platform by the API of a host that no list names.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from builder.http.errors import OUTCOMES
from builder.runtime import Clock
from builder.sources.datasets.download.api import parse_document
from builder.sources.datasets.item import DatasetResource, IngestRequest
from builder.sources.datasets.platforms import landing
from builder.sources.datasets.platforms.archiveorg import ArchiveOrg
from builder.sources.datasets.platforms.ckan import Ckan
from builder.sources.datasets.platforms.dataverse import Dataverse
from builder.sources.datasets.platforms.dryad import Dryad
from builder.sources.datasets.platforms.figshare import Figshare
from builder.sources.datasets.platforms.hubs.github import GitHub
from builder.sources.datasets.platforms.hubs.gitlab import GitLab
from builder.sources.datasets.platforms.hubs.huggingface import HuggingFace
from builder.sources.datasets.platforms.invenio import InvenioRDM, Zenodo
from builder.sources.datasets.platforms.json_document import handle_of, inner
from builder.sources.datasets.platforms.landing import ENDS, DatasetName, parse_name
from builder.sources.datasets.platforms.mendeley import Mendeley
from builder.sources.datasets.platforms.osf import Osf
from builder.sources.datasets.platforms.pages.head import read_biblio
from builder.sources.datasets.platforms.pages.webpage import Webpage
from builder.sources.datasets.platforms.pangaea import Pangaea
from builder.sources.datasets.platforms.repositories.dataone import DataOne
from builder.sources.datasets.platforms.repositories.sciencebase import ScienceBase
from builder.sources.datasets.protocols import Api, FilesetError, FilesetPlatformHelper
from functions.snapshot.instant import to_digits

_PASSING = frozenset({"platform-rate-limited", "platform-timeout"})
_GONE = 410


@dataclass(frozen=True, slots=True)
class Probe:
    """A document that identifies the platform `platform`.

    `shape` matches the landing page's URL after its host; its groups are put into `path`. With
    `doi`, a DOI must be known. `shows` checks the document. `buried` checks the document of HTTP
    status 410, which means a deleted dataset of this platform.
    """

    platform: str
    shape: re.Pattern[str]
    path: str
    shows: Callable[[Mapping[str, Any]], bool]
    doi: bool = False
    buried: Callable[[Mapping[str, Any]], bool] | None = None


PROBES: tuple[Probe, ...] = (
    Probe(
        "inveniordm",
        re.compile(r"/(?:api/)?records?/([A-Za-z0-9-]+)(?:[/?].*)?"),
        "/api/records/{0}",
        lambda record: {"id", "metadata"} <= record.keys() and bool(inner(record, "links")),
        buried=lambda grave: (
            grave.get("status") == _GONE
            and (isinstance(grave.get("message"), str) or bool(inner(grave, "tombstone")))
        ),
    ),
    Probe(
        "ckan",
        re.compile(r"((?:/[^/?]+)*?)/dataset/([a-z0-9_-]+)/?(?:\?.*)?", re.I),
        "{0}/api/3/action/package_show?id={1}",
        lambda answer: answer.get("success") is True and "resources" in inner(answer, "result"),
    ),
    Probe(
        "dataverse",
        re.compile(r".*"),
        "/api/info/version",
        lambda answer: (
            answer.get("status") == "OK" and isinstance(inner(answer, "data").get("version"), str)
        ),
        doi=True,
    ),
)
"""All probes, in the order in which they are sent."""


def probe(
    resource: DatasetResource,
    api: Api,
    failed: Callable[[FilesetError], None] = lambda error: None,
) -> str | None:
    """Return the name of the platform that a resource's host runs, or None.

    A failed or uninformative response proves nothing; `failed` receives errors that may pass.
    Raises FilesetError if the run ends.
    """
    parts = urlsplit(resource.url)
    behind = parts.path + (f"?{parts.query}" if parts.query else "")
    for probe in PROBES:
        match = probe.shape.fullmatch(behind)
        if match is None or (probe.doi and resource.doi is None):
            continue
        url = f"{parts.scheme}://{parts.netloc}{probe.path.format(*match.groups())}"
        try:
            document = api.document(url)
        except FilesetError as error:
            if error.status in ENDS:
                raise
            if error.status == "platform-gone" and _is_buried(probe, url, api):
                return probe.platform
            if error.status in _PASSING or (error.code in OUTCOMES and OUTCOMES[error.code].soon):
                failed(error)
            continue
        if isinstance(document, Mapping) and probe.shows(document):
            return probe.platform
    return None


def _is_buried(probe: Probe, url: str, api: Api) -> bool:
    """Return whether the response for a deleted dataset comes from the platform."""
    if probe.buried is None:
        return False
    try:
        document = parse_document(api.answer(url, statuses=frozenset({_GONE})))
    except FilesetError as error:
        if error.status in ENDS:
            raise
        return False
    return isinstance(document, Mapping) and probe.buried(document)


PLATFORMS: tuple[FilesetPlatformHelper, ...] = (
    Zenodo(),
    ArchiveOrg(),
    Dryad(),
    Osf(),
    Mendeley(),
    Pangaea(),
    DataOne(),
    ScienceBase(),
    HuggingFace(),
    GitHub(),
    GitLab(),
    Figshare(),
    Dataverse(),
    InvenioRDM(),
    Ckan(),
)
LAST: FilesetPlatformHelper = Webpage()
"""Taken only if the landing page leads to none of the others."""
Detected = tuple[DatasetResource, FilesetPlatformHelper]


def detect(
    request: IngestRequest,
    api: Api,
    clock: Clock,
    block: Sequence[str] = (),
    platforms: Sequence[FilesetPlatformHelper] = PLATFORMS,
) -> Detected:
    """Return the resource at a request's URL or DOI, and its platform.

    `block` are prefixes of URLs that must not be requested. Raises FilesetError: bad-identifier,
    skip-url-blocklist, no-platform-match, or an error of the API. The latter is that of the landing
    page, or a retryable error of a probe that might have found the platform.
    """
    return _Detection(api, clock, tuple(map(_bare, block)), platforms).find(
        parse_name(request.base_url)
    )


def _bare(url: str) -> str:
    """Return a URL without its scheme, because http and https reach the same resource."""
    return url.partition("://")[2]


@dataclass(frozen=True, slots=True)
class _Detection:
    _api: Api
    _clock: Clock
    _block: tuple[str, ...]
    _platforms: Sequence[FilesetPlatformHelper]
    _unsure: list[FilesetError] = field(default_factory=list)

    def find(self, name: DatasetName) -> Detected:
        self._allow([name.url])
        resource, failed = self._ask_registry(name)
        detected = self._match_url(resource)
        if detected is None and failed is not None:
            raise failed
        detected = detected or self._probe(resource)
        if detected is None:
            resource = self._visit(resource)
            detected = (
                self._match_url(resource)
                or self._probe(resource)
                or self._follow_citation(resource)
            )
        if detected is None:
            self._be_sure()
            if not LAST.match_request(resource):
                detail = f"no known platform hosts {resource.url}, and its page lists no files"
                raise FilesetError("no-platform-match", detail)
            detected = resource, LAST
        return detected

    def _ask_registry(self, name: DatasetName) -> tuple[DatasetResource, FilesetError | None]:
        """Return the target of a handle, or its resolver's URL if the registry failed."""
        if name.handle is None:
            return DatasetResource(url=name.url), None
        try:
            target = landing.find_target(name.handle, self._api)
        except FilesetError as error:
            if error.status in landing.ENDS:
                raise
            return DatasetResource(url=name.url, doi=name.doi), error
        self._allow([target])
        return DatasetResource(url=target, hops=(name.url,), doi=name.doi), None

    def _match_url(self, resource: DatasetResource) -> Detected | None:
        matching = (row for row in self._platforms if row.match_request(resource))
        return next(((resource, platform) for platform in matching), None)

    def _probe(self, resource: DatasetResource) -> Detected | None:
        name = probe(resource, self._api, failed=self._unsure.append)
        named = [platform for platform in self._platforms if platform.facts.name == name]
        return (resource, named[0]) if named else None

    def _be_sure(self) -> None:
        """Raise FilesetError if a probe failed for now, because it may yet find the platform."""
        if self._unsure:
            raise self._unsure[0]

    def _visit(self, resource: DatasetResource) -> DatasetResource:
        """Return the resource with its landing page."""
        try:
            page = self._api.page(resource.url)
        except FilesetError as error:
            if error.status in ("platform-404", "platform-gone"):
                self._be_sure()  # a missing page proves nothing if a probe failed for now
            raise
        hops = (*resource.hops, *(hop for hop in page.hops if hop != page.url))
        self._allow([*page.hops, page.url])
        head = page.headers
        biblio = read_biblio(
            page.body, page.url, head.get("content-type", ""), head.get("link", "")
        )
        return replace(
            resource,
            url=page.url,
            hops=tuple(dict.fromkeys(hops)),
            doi=resource.doi or biblio.get("doi"),
            status=page.status,
            media_type=page.media_type,
            body=page.body,
            html_biblio=biblio,
            at=to_digits(self._clock()),
        )

    def _follow_citation(self, resource: DatasetResource) -> Detected | None:
        """Follow the page's cite-as and canonical links one step, to a platform known by URL."""
        links = resource.html_biblio.get("links", {})
        led_here = {(handle_of(hop) or hop).lower() for hop in resource.hops}
        for url in (*links.get("cite-as", ()), *links.get("canonical", ())):
            self._allow([url])
            handle = handle_of(url)
            if handle and handle.lower() in led_here:
                continue
            step, _ = self._ask_registry(DatasetName(url, handle))
            if urlsplit(step.url).netloc != urlsplit(resource.url).netloc:
                step = replace(step, hops=(*resource.hops, resource.url, *step.hops))
                if (detected := self._match_url(step)) is not None:
                    return detected
        return None

    def _allow(self, urls: Iterable[str]) -> None:
        for url in urls:
            if _bare(url).startswith(self._block or ("\0",)):
                raise FilesetError("skip-url-blocklist", f"fileset.block names {url}")
