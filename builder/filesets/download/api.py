"""Asking platforms for documents; the seam is builder.filesets.protocols.Api.

An answer is read whole, and is never larger than `LARGEST` bytes, neither as it comes nor unpacked.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from builder.filesets.download import interstitial
from builder.filesets.download.client import (
    Line,
    Pace,
    Reached,
    Wanted,
    normalised,
    reached,
    refused,
)
from builder.filesets.metadata.json_document import host
from builder.filesets.protocols import ApiAnswer, FilesetError
from builder.http import coding, robots
from builder.http.errors import Deferred, NotHad
from builder.http.fetch import AGENT
from builder.http.outcomes import OUTCOMES
from builder.http.robots import Robots, Rules

T = TypeVar("T")

LARGEST = 32 << 20
_SECONDS = 300.0
"""How long one answer may take."""
_PATIENCE = 1200.0
"""For how long a host that rests is waited for."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_VALUES = 1 << 21
"""How many values a document may have, for want of a better number by its commas and colons: the
smallest of them take some seventy bytes of memory each."""
_AGAIN = frozenset({408, 425})
_JSON = "application/json"
_PAGE = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"
_WALLED = frozenset({401, 403, 405, 429, 503})
_CHALLENGE = 32 << 10
"""Bytes of the longest page that is taken for no more than a challenge, having a part of one."""

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
"""What a failure of an exchange means for a request; all others are platform-http-error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformApi:
    """Asks with `tries` for each answer, none after `until` (the line's clock).

    A host that rests is waited for as long as `patience`, in seconds, and one that is busy as long
    as there is time. `obey` has robots.txt decide about landing pages.
    """

    line: Line
    tries: int
    until: float = math.inf
    obey: bool = True
    pace: Pace = field(default_factory=Pace)
    robots: Robots = field(default_factory=Robots)
    patience: float = _PATIENCE

    def answer(
        self, url: str, *, accept: str = _JSON, statuses: frozenset[int] = frozenset()
    ) -> ApiAnswer:
        """Return the answer at `url`, redirects followed: one of 200, or of those `statuses`."""
        return self._answer(url, accept, statuses, ())

    def document(self, url: str, *, hosts: Sequence[str] = ()) -> Any:
        """Return the JSON document at `url`. With `hosts`, none but these are asked for it."""
        if hosts and host(url) not in hosts:
            detail = f"a link leads from {', '.join(hosts)} to {url}"
            raise FilesetError("platform-bad-response", detail, code="foreign-link")
        return parsed(self._answer(url, _JSON, frozenset(), hosts))

    def page(self, url: str) -> ApiAnswer:
        """Return a landing page, redirects followed, if its host's robots.txt allows it."""
        if self.obey:
            self._tried(lambda rested: self._obey(url, rested))
        return self._answer(url, _PAGE, frozenset(), ())

    def shows_token(self, host: str) -> bool:
        """Tell whether there is a token that `host` is shown."""
        return host in self.line.tokens

    def _answer(
        self, url: str, accept: str, statuses: frozenset[int], within: Sequence[str]
    ) -> ApiAnswer:
        return self._tried(lambda rested: self._once(url, accept, statuses, within, rested))

    def _tried(self, ask: Callable[[float], T]) -> T:
        """Return what `ask` gives, again where its failure passes. Raises FilesetError."""
        rested = min(self.until, self.line.clock() + self.patience)
        said: NotHad | None = None
        for left in reversed(range(self.tries)):
            try:
                return ask(rested)
            except NotHad as failure:
                said = failure.told()
                if not left or not passes(failure):
                    raise error_of(failure) from failure
            except Deferred as error:
                raise self._deferred(said) from error
        raise AssertionError("unreachable")

    def _deferred(self, said: NotHad | None) -> FilesetError:
        if self.line.stop.is_set():
            return FilesetError("cancelled")
        if self.line.clock() >= self.until:
            return FilesetError("deadline-exceeded", said.detail if said else "")
        if said is not None:
            return error_of(said)
        return FilesetError("platform-http-error", "its host failed before, and is left alone")

    def _once(
        self,
        url: str,
        accept: str,
        statuses: frozenset[int],
        within: Sequence[str],
        rested: float,
    ) -> ApiAnswer:
        with reached(self.line, url, self._wanted(accept, rested, within)) as found:
            answer = found.answer
            if answer.status != 200 and answer.status not in statuses:
                self._tell_wall(found)
                raise refused(self.line, answer)
            body = coding.body(answer.headers, answer.body, LARGEST)
            kind = interstitial.media_type(answer.headers)
            _check(found.url, answer.headers, body, accept)
            return ApiAnswer(
                url=found.url, status=answer.status, body=body, media_type=kind,
                headers=answer.headers, hops=found.hops,
            )  # fmt: skip

    def _tell_wall(self, found: Reached) -> None:
        """Raise FilesetError where a refusal is meant for robots; its host rests as it asks to."""
        answer = found.answer
        if answer.status not in _WALLED:
            return
        with suppress(NotHad):
            body = coding.first(answer.headers, answer.body, interstitial.LOOKED)
            if interstitial.kept_out(answer.headers, body):
                self.line.hosts.failed(host(found.url), refused(self.line, answer))
                raise FilesetError(interstitial.BOT, f"{found.url}: HTTP status {answer.status}")

    def _wanted(self, accept: str, rested: float, within: Sequence[str] = ()) -> Wanted:
        return Wanted(
            headers={"Accept": accept, "Accept-Encoding": "gzip, deflate"}, pace=self.pace,
            bytes=LARGEST, until=self.until, seconds=_SECONDS, rested=rested, within=within,
        )  # fmt: skip

    def _obey(self, url: str, rested: float) -> None:
        parts = urlsplit(normalised(url))
        origin = f"{parts.scheme}://{parts.netloc}"
        rules = self.robots.of(origin, lambda: self._rules(f"{origin}/robots.txt", rested))
        if delay := rules.delay(AGENT):
            self.line.hosts.slow_down(parts.hostname or "", delay)
        if not rules.allow(normalised(url), AGENT):
            raise NotHad("robots-disallowed", f"{origin}/robots.txt")

    def _rules(self, url: str, rested: float) -> Rules:
        """Return the rules at `url`. Raises NotHad."""
        wanted = self._wanted("text/plain,*/*;q=0.5", rested)
        with reached(self.line, url, wanted) as found:
            answer = found.answer
            try:
                return robots.parsed(answer.status, robots.body(answer.headers, answer.body))
            except NotHad as failure:
                detail = f"{url}: {failure.detail}"
                raise NotHad(failure.code, detail, failure.status) from failure


def _check(url: str, headers: Mapping[str, str], body: bytes, accept: str) -> None:
    """Raise FilesetError for a page in the place of a document, or of another page."""
    if not interstitial.is_page(interstitial.media_type(headers), body[: interstitial.LOOKED]):
        return
    if interstitial.kept_out(headers, body) and (accept != _PAGE or len(body) < _CHALLENGE):
        raise FilesetError(interstitial.BOT, url)
    if interstitial.is_login(url, body) or (accept == _JSON and interstitial.wants_login(body)):
        raise FilesetError(interstitial.LOGIN, url)
    if accept == _JSON:
        raise FilesetError("platform-bad-response", f"{url}: a page in the place of JSON")


def passes(failure: NotHad) -> bool:
    """Tell whether a failure may be none a little later."""
    return OUTCOMES[failure.code].soon or failure.status in _AGAIN


def error_of(failure: NotHad) -> FilesetError:
    """Return what a failure means for a request."""
    status = STATUSES.get(failure.code, "platform-http-error")
    return FilesetError(status, failure.detail, code=failure.code)


def parsed(answer: ApiAnswer) -> Any:
    """Return an answer's JSON document. Raises FilesetError for what is none that can be kept."""
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
    raise ValueError(f"{name} is no number")


def _sound(value: Any) -> Any:
    """Return it with no half of a character left alone, which nothing could write down."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_sound(one) for one in value]
    if isinstance(value, dict):
        return {_sound(name): _sound(one) for name, one in value.items()}
    return value
