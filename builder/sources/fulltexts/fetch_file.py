"""Fetching a URL and the redirects to its file; the bytes go into a temporary file.

A batch requests each URL on the way once.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from builder.http.client import FetchRequest, HttpClient
from builder.http.errors import FetchError
from builder.http.limits import Limits
from builder.http.responses import REDIRECTS, Response
from builder.http.url import Redirects
from builder.obi.content import ExchangeRow
from builder.sources.fulltexts.choice import NO_RULES, GatherRules
from builder.sources.fulltexts.results import (
    Fetched,
    Hop,
    Moved,
    Result,
    Unchanged,
    exchange_row,
    file_coding,
    shorten,
    store_body,
)

_ACCEPT = {"Accept": "*/*", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of the last response, for a conditional request."""

    etag: str | None = None
    last_modified: str | None = None

    def headers(self) -> dict[str, str]:
        """Return the header fields that request the file only if it changed."""
        fields = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {n: v for n, v in fields.items() if v and v.isascii() and v.isprintable()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFetcher:
    """Fetches files into the folder `scratch`; with `obey`, robots.txt decides."""

    client: HttpClient
    limits: Limits
    scratch: Path
    obey: bool = True
    rules: GatherRules = NO_RULES

    def fetch(self, url: str, validators: Validators, until: float) -> Result:
        """Request a URL in normal form once, and return the result; failures are values.

        Raises Deferred if its host must not be asked before `until`.
        """
        request = FetchRequest(url=url, limits=self.limits, headers=_ACCEPT, until=until)
        host = urlsplit(url).hostname or ""
        try:
            if self.rules.excludes(host):
                raise FetchError("excluded", host)
            if seconds := self.rules.seconds(host):
                self.client.hosts.slow_down(host, seconds)
            if self.obey:
                self.client.obey(request)
            return self._ask(request, validators)
        except FetchError as failure:
            return failure.copy()

    def _ask(self, request: FetchRequest, validators: Validators) -> Result:
        conditions = validators.headers()
        with self.client.ask(replace(request, headers={**_ACCEPT, **conditions})) as response:
            status, headers = response.status, response.headers
            if status == 304 and conditions:
                return Unchanged(
                    shorten(headers.get("etag")), shorten(headers.get("last-modified"))
                )
            if status in REDIRECTS:
                if response.location is None:
                    raise FetchError("bad-redirect", "no Location", status)
                return Moved(response.location, status, self._exchange(response))
            if status != 200:
                raise self.client.refusal(response)
            length, limits = response.headers.get("content-length", ""), self.limits
            coding = file_coding(response.url, response.headers)
            if length.isascii() and length.isdigit() and int(length) > limits.bytes:
                raise FetchError("too-large", f"{int(length):,} bytes", 200)
            return store_body(response, coding, self.scratch, self._exchange(response))

    def _exchange(self, response: Response) -> ExchangeRow:
        return exchange_row(response, int(self.client.wall()))


@dataclass(slots=True)
class Once:
    """Requests each URL once. Safe to use from threads.

    `ask` gets the URL, and the one whose redirects led to it. A thread may wait for a URL that
    another thread is requesting. A requesting thread waits for no other URL, so there is no
    deadlock.
    """

    ask: Callable[[str, str], Result]
    results: Mapping[str, Result] = field(default_factory=dict)
    """Results that are known already."""
    _pending: dict[str, "Future[Result]"] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def follow(self, url: str) -> Fetched:
        """Return the result of a URL and of its redirects. Raises Deferred."""
        return follow_redirects(url, lambda target: self(target, url))

    def __call__(self, url: str, origin: str) -> Result:
        """Return the result of the URL. Raises Deferred if its host must not be asked now."""
        if url in self.results:
            return self.results[url]
        with self._lock:
            pending = self._pending.get(url)
            mine: Future[Result] = Future()
            if pending is None:
                self._pending[url] = mine
        if pending is not None:
            return pending.result()
        try:
            result = self.ask(url, origin)
        except BaseException as error:
            with self._lock:
                del self._pending[url]
            mine.set_exception(error)
            raise
        mine.set_result(result)
        return result


def follow_redirects(url: str, ask: Callable[[str], Result]) -> Fetched:
    """Request a URL and follow its redirects. Raises Deferred.

    A fault of a redirect is a failure of the first URL.
    """
    hops: list[Hop] = []
    way = Redirects(url)
    while True:
        origin = way.last
        result = ask(origin)
        if not isinstance(result, Moved):
            return Fetched(url, tuple(hops), origin, result)
        try:
            target = way.follow(result.location, result.status)
        except FetchError as failure:
            return Fetched(url, tuple(hops), origin, failure.copy())
        hops.append(Hop(origin, target, result.status, result.exchange))
