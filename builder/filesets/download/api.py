"""Client for documents of platforms; implements builder.filesets.protocols.Api.

A response is read completely. It has at most LARGEST bytes, both as received and decoded.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from builder.filesets.download import interstitial
from builder.filesets.metadata.json_document import host
from builder.filesets.protocols import ApiAnswer, FilesetError
from builder.http import coding
from builder.http.client import FetchRequest, HttpClient
from builder.http.errors import Deferred, FetchError
from builder.http.limits import Limits
from builder.http.outcomes import OUTCOMES
from builder.http.redirects import normal_url
from builder.http.response import Response

T = TypeVar("T")

LARGEST = 32 << 20
_SECONDS = 300.0
"""Seconds that one response may take."""
_PATIENCE = 1200.0
"""Longest wait in seconds for a host in a pause."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_VALUES = 1 << 21
"""Values that a document may have, estimated by its commas and colons. The smallest values take
some seventy bytes of memory each."""
_AGAIN = frozenset({408, 425})
_JSON = "application/json"
_PAGE = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"
_WALLED = frozenset({401, 403, 405, 429, 503})
_CHALLENGE = 32 << 10
"""A smaller page that contains a part of a challenge counts as a challenge."""

STATUSES: Mapping[str, str] = {
    "not-found": "platform-404",
    "gone": "platform-gone",
    "forbidden": "platform-restricted",
    "too-many-requests": "platform-rate-limited",
    "connect-timeout": "platform-timeout",
    "no-answer": "platform-timeout",
    "too-slow": "platform-timeout",
    "too-long": "platform-timeout",
    "too-large": "platform-bad-response",
    "content-coding": "platform-bad-response",
    "address-refused": "blocked-address",
    "port-refused": "blocked-address",
    "robots-disallowed": "robots-disallowed",
    "unsupported-scheme": "platform-bad-response",
    "userinfo": "platform-bad-response",
    "bad-redirect": "platform-bad-response",
    "redirect-loop": "platform-bad-response",
    "too-many-hops": "platform-bad-response",
}
"""Statuses of a request by FetchError code; other codes give platform-http-error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformApi:
    """Sends each request at most `tries` times, and none after `until` (the client's clock).

    It waits at most `patience` seconds for a host in a pause, and for a busy host as long as time
    is left. With `obey`, robots.txt decides on landing pages.
    """

    client: HttpClient
    tries: int
    until: float = math.inf
    obey: bool = True
    limits: Limits = field(default_factory=Limits)
    tokens: Mapping[str, str] = field(default_factory=dict)
    patience: float = _PATIENCE

    def answer(
        self, url: str, *, accept: str = _JSON, statuses: frozenset[int] = frozenset()
    ) -> ApiAnswer:
        """Return the response at `url` after redirects: its status is 200 or one of `statuses`."""
        return self._answer(url, accept, statuses, ())

    def document(self, url: str, *, hosts: Sequence[str] = ()) -> Any:
        """Return the JSON document at `url`. With `hosts`, no other host receives a request."""
        if hosts and host(url) not in hosts:
            detail = f"a link of {', '.join(hosts)} leads to another host: {url}"
            raise FilesetError("platform-bad-response", detail, code="foreign-link")
        return parse_document(self._answer(url, _JSON, frozenset(), hosts))

    def page(self, url: str) -> ApiAnswer:
        """Return a landing page, redirects followed, if its host's robots.txt allows it."""
        if self.obey:
            self._retry(lambda rested: self.client.obey(self._request(url, _PAGE, rested)))
        return self._answer(url, _PAGE, frozenset(), ())

    def shows_token(self, host: str) -> bool:
        """Return whether there is a token for `host`."""
        return host in self.tokens

    def _answer(
        self, url: str, accept: str, statuses: frozenset[int], within: Sequence[str]
    ) -> ApiAnswer:
        return self._retry(lambda rested: self._once(url, accept, statuses, within, rested))

    def _retry(self, ask: Callable[[float], T]) -> T:
        """Return the result of `ask`, retried after failures that may pass. Raises FilesetError."""
        rested = min(self.until, self.client.clock() + self.patience)
        said: FetchError | None = None
        for left in reversed(range(self.tries)):
            try:
                return ask(rested)
            except FetchError as failure:
                said = failure.copy()
                if not left or not passes(failure):
                    raise error_of(failure) from failure
            except Deferred as error:
                raise self._deferral(said) from error
        raise AssertionError("unreachable")

    def _deferral(self, said: FetchError | None) -> FilesetError:
        if self.client.stop.is_set():
            return FilesetError("cancelled")
        if self.client.clock() >= self.until:
            return FilesetError("deadline-exceeded", said.detail if said else "")
        if said is not None:
            return error_of(said)
        return FilesetError("platform-http-error", "its host failed before and is not asked again")

    def _once(
        self,
        url: str,
        accept: str,
        statuses: frozenset[int],
        within: Sequence[str],
        rested: float,
    ) -> ApiAnswer:
        with self.client.fetch(self._request(url, accept, rested, within)) as answer:
            if answer.status != 200 and answer.status not in statuses:
                self._check_wall(answer)
                raise self.client.refusal(answer)
            body = coding.body(answer.headers, answer.body, LARGEST)
            kind = interstitial.media_type(answer.headers)
            _check(answer.url, answer.headers, body, accept)
            return ApiAnswer(
                url=answer.url, status=answer.status, body=body, media_type=kind,
                headers=answer.headers, hops=answer.hops,
            )  # fmt: skip

    def _check_wall(self, answer: Response) -> None:
        """Raise FilesetError if the refusal is a robot challenge; its host then pauses as asked."""
        if answer.status not in _WALLED:
            return
        with suppress(FetchError):
            body = coding.start(answer.headers, answer.body, interstitial.LOOKED)
            if interstitial.blocks_robots(answer.headers, body):
                self.client.hosts.fail(host(answer.url), self.client.refusal(answer))
                raise FilesetError(interstitial.BOT, f"{answer.url}: HTTP status {answer.status}")

    def _request(
        self, url: str, accept: str, rested: float, within: Sequence[str] = ()
    ) -> FetchRequest:
        return FetchRequest(
            url=normal_url(url), limits=replace(self.limits, total=_SECONDS, bytes=LARGEST),
            headers={"Accept": accept, "Accept-Encoding": "gzip, deflate"},
            until=self.until, end=self.until, rested=rested, within=within,
        )  # fmt: skip


def _check(url: str, headers: Mapping[str, str], body: bytes, accept: str) -> None:
    """Raise FilesetError for a challenge, a login page, or a page instead of JSON."""
    if not interstitial.is_page(interstitial.media_type(headers), body[: interstitial.LOOKED]):
        return
    if interstitial.blocks_robots(headers, body) and (accept != _PAGE or len(body) < _CHALLENGE):
        raise FilesetError(interstitial.BOT, url)
    if interstitial.is_login(url, body) or (accept == _JSON and interstitial.wants_login(body)):
        raise FilesetError(interstitial.LOGIN, url)
    if accept == _JSON:
        raise FilesetError("platform-bad-response", f"{url}: a page instead of JSON")


def passes(failure: FetchError) -> bool:
    """Return whether a failure may pass."""
    return OUTCOMES[failure.code].soon or failure.status in _AGAIN


def error_of(failure: FetchError) -> FilesetError:
    """Return the request's error for a failure."""
    status = STATUSES.get(failure.code, "platform-http-error")
    return FilesetError(status, failure.detail, code=failure.code)


def parse_document(answer: ApiAnswer) -> Any:
    """Parse the JSON of a response. Raises FilesetError if it is invalid or too large."""
    if sum(map(answer.body.count, (b",", b":"))) > _VALUES:
        detail = f"{answer.url}: more than {_VALUES:,} values"
        raise FilesetError("platform-bad-response", detail)
    try:
        written = answer.body.decode(json.detect_encoding(answer.body), "surrogatepass")
        found = json.loads(written, parse_constant=_no_number)
        return _sound(found) if _SURROGATE.search(written) else found
    except (ValueError, RecursionError) as error:
        said = " ".join(str(error).split())[:200]
        raise FilesetError("platform-bad-response", f"{answer.url}: no JSON: {said}") from error


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _sound(value: Any) -> Any:
    """Return a value without lone surrogates, which no encoding can represent."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_sound(one) for one in value]
    if isinstance(value, dict):
        return {_sound(name): _sound(one) for name, one in value.items()}
    return value
