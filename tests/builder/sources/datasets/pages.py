"""Platforms' answers that tests make, and what a platform makes of them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builder.sources.datasets.item import (
    DatasetResource,
    FilesetPlatformItem,
    IngestRequest,
    PlatformAnswer,
)
from builder.sources.datasets.platforms.detect import detect
from builder.sources.datasets.platforms.json_document import host
from builder.sources.datasets.protocols import Api, ApiAnswer, FilesetError, FilesetPlatformHelper

REAL = Path(__file__).parents[5] / "shared" / "data" / "filesets"
NOW = datetime(2026, 11, 22, tzinfo=UTC)
_REFUSED = {
    404: "platform-404",
    410: "platform-gone",
    401: "platform-restricted",
    403: "platform-restricted",
    429: "platform-rate-limited",
}


@dataclass
class Pages:
    """An API that gives documents by URL and keeps to the seam's rules.

    A number stands for an HTTP status, bytes for a body that is no JSON, and an `ApiAnswer` is
    given as it is. What is not here is not found. `asked` are the URLs that were asked for.
    """

    documents: Mapping[str, Any]
    tokens: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)
    heard: Sequence[PlatformAnswer] = ()

    def answer(
        self,
        url: str,
        *,
        accept: str = "application/json",
        statuses: frozenset[int] = frozenset(),
        hosts: Sequence[str] = (),
    ) -> ApiAnswer:
        if hosts and host(url) not in hosts:
            raise FilesetError("platform-bad-response", f"{url} leads away from {hosts}")
        self.asked.append(url)
        given = self.documents.get(url, 404)
        status = 200
        if isinstance(given, ApiAnswer):
            status = given.status
        elif isinstance(given, int) and not isinstance(given, bool):
            status = given
        if status != 200 and status not in statuses:
            raise FilesetError(_REFUSED.get(status, "platform-http-error"), f"{status}: {url}")
        if isinstance(given, ApiAnswer):
            return replace(given, url=given.url or url)
        body = given if isinstance(given, bytes) else json.dumps(given).encode()
        return ApiAnswer(url=url, status=200, body=body)

    def document(self, url: str, *, hosts: Sequence[str] = ()) -> Any:
        try:
            return json.loads(self.answer(url, hosts=hosts).body)
        except ValueError as error:
            raise FilesetError("platform-bad-response", str(error)) from error

    def page(self, url: str) -> ApiAnswer:
        return self.answer(url)

    def shows_token(self, host: str) -> bool:
        return host in self.tokens


@dataclass(frozen=True)
class Site:
    """A platform, the page that is asked for unless another is named, and hosts with tokens.

    `whole` are documents by URL about a dataset of that page, of which `status` comes.
    """

    platform: FilesetPlatformHelper
    page: str
    tokens: frozenset[str] = frozenset()
    whole: Mapping[str, Any] = field(default_factory=dict)
    status: str = "success"

    def item(
        self,
        documents: Mapping[str, Any] | None = None,
        url: str | None = None,
        doi: str | None = None,
    ) -> FilesetPlatformItem:
        """Return what the platform makes of documents by URL."""
        api = Pages(self.whole if documents is None else documents, self.tokens)
        return self.ask(api, url, doi)

    def ask(self, api: Api, url: str | None = None, doi: str | None = None) -> FilesetPlatformItem:
        return asked(self.platform, self.page if url is None else url, api, doi)

    def refused(
        self, documents: Mapping[str, Any], url: str | None = None, doi: str | None = None
    ) -> tuple[str, str]:
        """Return the status and code by which the platform refuses them."""
        with pytest.raises(FilesetError) as caught:
            self.item(documents, url, doi)
        return caught.value.status, caught.value.code

    def matches(self, url: str, doi: str | None = None, body: bytes | None = None) -> bool:
        resource = DatasetResource(url=url, doi=doi, body=body)
        return self.platform.match_request(resource)


def cases(
    columns: str,
    rows: Iterable[Sequence[Any]],
    make: Callable[[Any], Mapping[str, Any]] | None = None,
    **others: Any,
) -> list[dict[str, Any]]:
    """Return the rows of a table as cases of the suite of all platforms (test_platforms).

    `others` hold for each of them. `make` returns the documents by the column `given`.
    """
    table = [dict(zip(columns.split(), row, strict=True)) | others for row in rows]
    for case in table if make else ():
        case["documents"] = make(case.pop("given"))
    return table


def page(body: str, url: str = "", **more: Any) -> ApiAnswer:
    """Return the answer that is a page, found at `url` at last."""
    return ApiAnswer(url=url, status=200, body=body.encode(), media_type="text/html", **more)


def gone(document: Any) -> ApiAnswer:
    """Return the answer of what was deleted."""
    return ApiAnswer(url="", status=410, body=json.dumps(document).encode())


def real_bytes(path: str) -> bytes:
    """Return a platform's real answer, or skip the test where they are not at hand."""
    file = REAL / path
    if not file.is_file():
        pytest.skip(f"needs the real answer {path}, which is not part of the repository")
    return file.read_bytes()


def real(path: str, replaced: Mapping[str, str] | None = None) -> Any:
    """Return a platform's real answer, which is JSON, with texts in the place of others."""
    answer = real_bytes(path).decode()
    for old, new in (replaced or {}).items():
        answer = answer.replace(old, new)
    return json.loads(answer)


def item_of(api: Api, text: str) -> FilesetPlatformItem:
    """Return the dataset that a name leads to."""
    resource, helper = detect(IngestRequest(text), api, lambda: NOW)
    return helper.process_request(resource, api)


def asked(
    platform: FilesetPlatformHelper, url: str, api: Api, doi: str | None = None
) -> FilesetPlatformItem:
    return platform.process_request(DatasetResource(url=url, doi=doi), api)
