"""Zenodo: an InvenioRDM installation whose records have had four JSON forms."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from builder.filesets.item import DatasetResource, FilesetPlatformItem, IngestRequest
from builder.filesets.metadata import origin
from builder.filesets.metadata.json_document import host
from builder.filesets.platforms import invenio_rdm
from builder.filesets.protocols import Api, FilesetError

_RECORD = re.compile(
    r"/(?:api/)?records?/(?P<id>[0-9]+)(?P<file>/(?:preview|files/.+))?"
    r"(?P<latest>(?:/versions)?/latest)?(?:/.*)?"
)
_DOI = re.compile(r"10\.5281/zenodo\.(?P<id>[0-9]+)", re.IGNORECASE)
_IN_URL = re.compile(
    r"/(?:doi|badge/doi)/10\.[0-9]+/zenodo\.(?P<id>[0-9]+)(?:\.svg)?", re.IGNORECASE
)
_DRAFT = re.compile(r"/(?:deposit|uploads|api/deposit/depositions)/[0-9]+(?:/.*)?")
_COLLECTION = re.compile(r"/communities/.+")


@dataclass(frozen=True, slots=True)
class Zenodo:
    """The platform."""

    name: str = "zenodo"

    def match_request(self, request: IngestRequest, resource: DatasetResource) -> bool:
        """Return whether it is Zenodo, by the URL's host or by the DOI."""
        return host(resource.url) in origin.ZENODO or _DOI.fullmatch(resource.doi or "") is not None

    def process_request(
        self, request: IngestRequest, resource: DatasetResource, api: Api
    ) -> FilesetPlatformItem:
        """Return the record, which is one version; `/latest` behind it requests the newest."""
        path = urlsplit(resource.url).path if host(resource.url) in origin.ZENODO else ""
        record = _RECORD.fullmatch(path) or _IN_URL.fullmatch(path)
        if _DRAFT.fullmatch(path):
            raise FilesetError("platform-scope", f"{resource.url} is a draft", code="draft")
        if _COLLECTION.fullmatch(path):
            raise FilesetError("platform-scope", "it is a community", code="collection")
        if record is not None and record.groupdict().get("file"):
            raise FilesetError("platform-scope", f"{path} is one file", code="file-level")
        named = record or _DOI.fullmatch(resource.doi or "")
        if named is None:
            raise FilesetError("platform-404", f"{resource.url} does not name a record")
        domain = host(resource.url) if path else "zenodo.org"
        base = f"https://{domain.removeprefix('www.')}"
        latest = bool(named.groupdict().get("latest"))
        return invenio_rdm.item(
            invenio_rdm.InvenioRequest(self.name, base, named["id"], "Zenodo", latest), api
        )
