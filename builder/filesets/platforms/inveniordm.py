"""InvenioRDM: many installations with one API."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from builder.filesets.item import DatasetResource, FilesetPlatformItem, IngestRequest
from builder.filesets.metadata import origin
from builder.filesets.metadata.json_document import host
from builder.filesets.platforms import invenio_rdm
from builder.filesets.protocols import Api, FilesetError

_RECORD = re.compile(
    r"/(?:api/)?records?/(?P<id>[A-Za-z0-9-]+)(?P<file>/files/.+)?"
    r"(?P<latest>(?:/versions)?/latest)?(?:/.*)?"
)
_DRAFT = re.compile(r"/uploads/[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class InvenioRDM:
    """The platform."""

    name: str = "inveniordm"

    def match_request(self, request: IngestRequest, resource: DatasetResource) -> bool:
        """Return whether the URL's host is listed; a probe of the API finds other hosts."""
        return host(resource.url) in origin.INVENIORDM

    def process_request(
        self, request: IngestRequest, resource: DatasetResource, api: Api
    ) -> FilesetPlatformItem:
        """Return the record, which is one version; `/latest` behind it requests the newest."""
        path = urlsplit(resource.url).path
        if _DRAFT.fullmatch(path):
            raise FilesetError("platform-scope", f"{resource.url} is a draft", code="draft")
        record = _RECORD.fullmatch(path)
        if record is None:
            raise FilesetError("platform-404", f"{resource.url} does not name a record")
        if record["file"]:
            raise FilesetError("platform-scope", f"{path} is one file", code="file-level")
        base, latest = origin.base(resource.url), bool(record["latest"])
        return invenio_rdm.item(
            invenio_rdm.InvenioRequest(self.name, base, record["id"], latest=latest), api
        )
