"""HTTP client for an endpoint. Temporary failures are retried; others are raised.

The delay that a server asks for is observed (RFC 9110, section 10.2.3).
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from builder.http import retry
from builder.http.client import FetchRequest, HttpClient
from builder.http.errors import Deferred, FetchError
from builder.http.limits import Limits
from builder.http.response import Response
from builder.http.retry import RetryPolicy
from builder.restore.errors import RebuildError

LARGEST = 64 << 20
"""Maximum bytes of a list page; servers send far less at once."""
TOLD = "x-archive-error"
"""Header in which Sheaf gives the reason for missing bytes; such a response is final."""


class EndpointError(RebuildError):
    """The endpoint does not answer."""


@dataclass(frozen=True, slots=True)
class EndpointClient:
    """Client of one endpoint. Thread-safe."""

    client: HttpClient
    limits: Limits
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(first=0.5, longest=300))

    @contextmanager
    def ask(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[Response]:
        """Open the response to a GET, whatever its status.

        Raises EndpointError after all retries. Reading the body may raise FetchError.
        """
        request = FetchRequest(url=url, limits=self.limits, headers=headers or {}, exact=True)
        tried = 0
        while True:
            with ExitStack() as stack:
                why, asked = "", None
                try:
                    answer = stack.enter_context(self.client.fetch(request))
                except FetchError as failure:
                    why = str(failure)
                except Deferred as error:
                    raise EndpointError("the restore was stopped") from error
                else:
                    if answer.status not in retry.PASSING or TOLD in answer.headers:
                        yield answer
                        return
                    why = f"HTTP status {answer.status}"
                    asked = retry.wish(answer.headers, answer.status, self.client.wall())
            if tried == self.retry.retries:
                raise EndpointError(f"{urlsplit(url).netloc} does not answer: {why}")
            tried += 1
            if self.client.stop.wait(self.retry.wait(tried, asked)):
                raise EndpointError("the restore was stopped")

    def read(self, url: str) -> tuple[Response, bytes]:
        """Return a response and its body, at most LARGEST bytes. Raises EndpointError."""
        tried = 0
        while True:
            with self.ask(url) as answer:
                try:
                    return answer, _read_all(answer)
                except FetchError as failure:
                    if tried == self.retry.retries:
                        where = urlsplit(url).netloc
                        raise EndpointError(
                            f"{where} sends incomplete responses: {failure}"
                        ) from failure
                    tried += 1

    def close(self) -> None:
        """Stop all requests, and close the connections."""
        self.client.stop.set()
        self.client.close()


def _read_all(answer: Response) -> bytes:
    body = bytearray()
    for chunk in answer.body:
        body += chunk
        if len(body) > LARGEST:
            raise FetchError("too-large", f"more than {LARGEST:,} bytes")
    return bytes(body)
