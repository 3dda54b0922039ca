"""openICPSR and its sister archives: projects that are described by their page alone.

Files can be fetched only after a login in the browser. So the project is listed with its metadata,
and the zip of all its files as withheld.
"""

import re
from dataclasses import dataclass, replace

from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import VersionRequest
from builder.sources.datasets.platforms.metadata import people_from_texts
from builder.sources.datasets.platforms.pages import schema_org
from builder.sources.datasets.platforms.pages.head import read_biblio
from builder.sources.datasets.protocols import (
    Api,
    ApiAnswer,
    FilesetError,
    PlatformFacts,
    ScopeError,
)

NAME = "openicpsr"
_ARCHIVES = {
    "www.openicpsr.org": "openicpsr",
    "openicpsr.org": "openicpsr",
    "www.datalumos.org": "datalumos",
    "datalumos.org": "datalumos",
}
"""Names of the archives in the paths of their hosts."""
_PROJECT = re.compile(
    r"/(?P<archive>[a-z]+)/project/(?P<id>\d{1,9})(?:/version/V(?P<version>\d{1,4})(?:/view)?)?"
    r"(?:;jsessionid=\w+)?/?",
    re.IGNORECASE,
)
_FILE = re.compile(r"/[a-z]+/project/\d+/version/V\d+/download/.+", re.IGNORECASE)
_DOI = re.compile(r"10\.3886/e(?P<id>\d{1,9})(?:v(?P<version>\d{1,4}))?(?P<file>-\d+)?")


@dataclass(frozen=True, slots=True)
class _Project:
    """The requested project: host, number, and version if one is named."""

    host: str
    id: str
    version: str | None

    @property
    def page(self) -> str:
        """The URL of its page."""
        root = f"https://{self.host}/{_ARCHIVES[self.host]}/project/{self.id}"
        return f"{root}/version/V{self.version}/view" if self.version else root


class OpenIcpsr(json_document.HostedPlatform):
    """openICPSR."""

    facts = PlatformFacts(
        NAME, "host, DOI", "metadata only: files need a login, so they are `platform-restricted`"
    )
    hosts = frozenset(_ARCHIVES)
    dois = _DOI

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the project by its page. Raises FilesetError."""
        request = _parse_resource(resource)
        page = api.page(request.page)
        # Without a version, the server leads to the page of the newest.
        shown = _PROJECT.fullmatch(json_document.path(page.url))
        version = (shown["version"] if shown else None) or request.version
        if version is None:
            raise FilesetError("platform-bad-response", f"{page.url} names no version")
        VersionRequest(request.id, request.version).check(version)
        project = replace(request, version=version)
        return FilesetPlatformItem(
            platform_name=NAME,
            platform_status="platform-restricted",
            platform_domain=project.host,
            platform_id=project.id,
            version=version,
            index=int(version),
            manifest=(FilesetManifestFile(path=f"{project.id}-V{version}.zip", status="withheld"),),
            web_base_url=project.page,
            detail="its files can be fetched only after a login",
            description=_describe(page, project),
        )


def _parse_resource(resource: DatasetResource) -> _Project:
    """Return the requested project. Raises FilesetError (platform-scope) for other pages."""
    host, path = json_document.host(resource.url), json_document.path(resource.url)
    is_here = host in _ARCHIVES
    by_url = _PROJECT.fullmatch(path) if is_here else None
    by_doi = _DOI.fullmatch(resource.doi or "")
    if (is_here and _FILE.fullmatch(path)) or (by_doi and by_doi["file"]):
        raise ScopeError("it is one file of a project", "file-level")
    match = by_url or by_doi
    if match is None:
        raise ScopeError(f"{resource.url} is not a project", "no-dataset")
    return _Project(host if by_url else "www.openicpsr.org", match["id"], match["version"])


def _describe(page: ApiAnswer, project: _Project) -> Description:
    biblio = read_biblio(page.body, page.url, page.headers.get("content-type", ""))
    dataset = next(iter(json_document.entries(biblio.get("json_ld"))), {})
    own = schema_org.describe(dataset, project.page)
    return replace(
        own,
        title=own.title or biblio.get("title"),
        creators=own.creators or people_from_texts(biblio.get("contrib_names", ())),
        publisher=own.publisher or biblio.get("publisher") or "openICPSR",
        published=own.published or biblio.get("release_date"),
        type="Dataset",
        version=f"V{project.version}",
        # The page's JSON-LD may say https://doi.org/null
        doi=biblio.get("doi") or own.doi or f"10.3886/e{project.id}v{project.version}",
    )
