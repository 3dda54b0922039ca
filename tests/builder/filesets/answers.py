"""Answers: an API of a test's own, which gives documents by URL and keeps to the seam's rules."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from builder.filesets.item import PlatformAnswer
from builder.filesets.platforms.json_document import host
from builder.filesets.protocols import ApiAnswer, FilesetError

_REFUSED = {
    404: "platform-404",
    410: "platform-gone",
    401: "platform-restricted",
    403: "platform-restricted",
    429: "platform-rate-limited",
}


@dataclass
class Answers:
    """Documents by URL; a number stands for an HTTP status, bytes for a body that is no JSON.

    What is not here is not found. `asked` are the URLs that were asked for, in order.
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
        found = self.documents.get(url, 404)
        if isinstance(found, int) and not isinstance(found, bool) and found not in statuses:
            raise FilesetError(_REFUSED.get(found, "platform-http-error"), f"{found}: {url}")
        body = found if isinstance(found, bytes) else json.dumps(found).encode()
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
