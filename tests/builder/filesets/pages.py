"""Pages: answers of an API that have a status, headers and hops of their own beside documents."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from builder.filesets.item import DatasetResource, FilesetPlatformItem, IngestRequest
from builder.filesets.platforms.json_document import host
from builder.filesets.protocols import Api, ApiAnswer, FilesetError, FilesetPlatformHelper
from tests.builder.filesets.answers import Answers

REAL = Path(__file__).parents[4] / "shared" / "data" / "filesets"


@dataclass
class Pages(Answers):
    """As its base; an `ApiAnswer` is given as it is, if its status is one that is taken."""

    def answer(
        self,
        url: str,
        *,
        accept: str = "application/json",
        statuses: frozenset[int] = frozenset(),
        hosts: Sequence[str] = (),
    ) -> ApiAnswer:
        found = self.documents.get(url)
        if not isinstance(found, ApiAnswer):
            return super().answer(url, accept=accept, statuses=statuses, hosts=hosts)
        if hosts and host(url) not in hosts:
            raise FilesetError("platform-bad-response", f"{url} leads away from {hosts}")
        if found.status != 200 and found.status not in statuses:
            self.asked.append(url)
            named = {404: "platform-404", 410: "platform-gone", 403: "platform-restricted"}
            raise FilesetError(named.get(found.status, "platform-http-error"), url)
        self.asked.append(url)
        return replace(found, url=found.url or url)


def page(body: str, url: str = "", **more: Any) -> ApiAnswer:
    """Return the answer that is a page, found at `url` at last."""
    return ApiAnswer(url=url, status=200, body=body.encode(), media_type="text/html", **more)


def gone(document: Any) -> ApiAnswer:
    """Return the answer of what was deleted."""
    return ApiAnswer(url="", status=410, body=json.dumps(document).encode())


def real(path: str) -> Any:
    """Return a platform's real answer, or skip the test where they are not at hand."""
    file = REAL / path
    if not file.is_file():
        pytest.skip(f"needs the real answer {path}, which is not part of the repository")
    return json.loads(file.read_bytes())


def told(
    platform: FilesetPlatformHelper, url: str, documents: dict[str, Any], doi: str | None = None
) -> FilesetPlatformItem:
    """Return what a platform tells of a URL, if the documents are what its API answers."""
    return asked(platform, url, Pages(documents), doi)


def asked(
    platform: FilesetPlatformHelper, url: str, api: Api, doi: str | None = None
) -> FilesetPlatformItem:
    return platform.process_request(IngestRequest(url), DatasetResource(url=url, doi=doi), api)


def refused(
    platform: FilesetPlatformHelper, url: str, documents: dict[str, Any], doi: str | None = None
) -> tuple[str, str]:
    """Return the status and code by which a URL is refused."""
    with pytest.raises(FilesetError) as raised:
        told(platform, url, documents, doi)
    return raised.value.status, raised.value.code
