"""Client for documents of platforms; implements builder.sources.datasets.protocols.Api.

A response is read completely. It has at most LARGEST bytes, both as received and decoded. Robot
challenges and login forms in place of a file or document are recognised.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from builder.http import responses
from builder.http.client import FetchRequest, HttpClient
from builder.http.errors import OUTCOMES, Deferred, FetchError
from builder.http.limits import Limits
from builder.http.responses import Response
from builder.http.url import normal_url
from builder.sources.datasets.download.exchanges import pack_answer
from builder.sources.datasets.item import PlatformAnswer
from builder.sources.datasets.platforms.json_document import host
from builder.sources.datasets.protocols import ApiAnswer, FilesetError

LOOKED = 1 << 16
"""Bytes of a page that are searched."""
BOT, LOGIN = "platform-bot-wall", "platform-login-wall"

_MARKUP = re.compile(rb"<(!doctype html|html|head|body|script|title|meta|!--)", re.IGNORECASE)
_PAGE_START = re.compile(rb"<(!doctype html|html[\s>])", re.IGNORECASE)
_PASSWORD = re.compile(rb"<input[^<>]{0,1024}type\s*=\s*[\"']?password", re.IGNORECASE)
_SIGN_IN = re.compile(
    r"/(log-?in|sign-?in|sso|saml2?|cas|oauth2?|shibboleth)(?=[/.;]|$)", re.IGNORECASE
)
_BOTS = re.compile(
    rb"challenges\.cloudflare\.com|/cdn-cgi/challenge-platform/|cf-browser-verification"
    rb"|<title>just a moment|attention required! \| cloudflare|anubis_challenge|/\.within\.website/"
    rb"|making sure you.{1,6}re not a bot|g-recaptcha|h-captcha|hcaptcha\.com|geo\.captcha-delivery"
    rb"|_incapsula_resource|awswafcookiedomainlist|awswaf\.com|px-captcha|ddos-guard"
    rb"|pardon our interruption|are you a robot|verify(ing)? (that )?you are (a )?human",
    re.IGNORECASE,
)
_HEADERS = {"cf-mitigated": "challenge", "x-amzn-waf-action": "c"}  # challenge, captcha
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
_JSON = "application/json"
_PAGE = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"
_MESSAGES = ("message", "detail", "error_description", "error", "errors", "title")
"""Members of the JSON of a refusal that may say why, the most telling first."""
_XML_MESSAGE = re.compile(rb"<Message>([^<]{1,1000})")
_WALLED = frozenset({401, 403, 405, 429, 503})
_CHALLENGE = 32 << 10
"""A smaller page that contains a part of a challenge counts as a challenge."""

STATUSES: Mapping[str, str] = {
    "not-found": "platform-404",
    "gone": "platform-gone",
    "forbidden": "platform-restricted",
    "too-many-requests": "platform-rate-limited",
    "robots-disallowed": "robots-disallowed",
    **dict.fromkeys(("connect-timeout", "no-answer", "too-slow", "too-long"), "platform-timeout"),
    **dict.fromkeys(("address-refused", "port-refused"), "blocked-address"),
    **dict.fromkeys(("too-large", "content-coding", "unsupported-scheme"), "platform-bad-response"),
    **dict.fromkeys(("userinfo", "bad-redirect", "redirect-loop"), "platform-bad-response"),
    "too-many-hops": "platform-bad-response",
}
"""Statuses of a request by FetchError code; other codes give platform-http-error."""


def media_type(headers: Mapping[str, str]) -> str | None:
    """Return the media type without parameters, in lower case; None if there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() or None


def is_html(kind: str | None) -> bool:
    """Return whether a media type is that of an HTML page."""
    return kind in {"text/html", "application/xhtml+xml"}


def is_page(kind: str | None, first: bytes) -> bool:
    """Return whether a body is an HTML page, by media type and first bytes."""
    text = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return is_html(kind)
    if text[:5] == b"<?xml":
        return is_html(kind) or bool(re.search(rb"<html[\s>]", text[:1024], re.IGNORECASE))
    return bool((_MARKUP if is_html(kind) else _PAGE_START).match(text))


def blocks_robots(headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether a response is a challenge against robots."""
    if any(headers.get(name, "").startswith(value) for name, value in _HEADERS.items()):
        return True
    return bool(_BOTS.search(body[:LOOKED]))


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
    heard: list[PlatformAnswer] = field(default_factory=list)

    def answer(
        self,
        url: str,
        *,
        accept: str = _JSON,
        statuses: frozenset[int] = frozenset(),
        hosts: Sequence[str] = (),
    ) -> ApiAnswer:
        """Return the response at `url` after redirects: its status is 200 or one of `statuses`.

        With `hosts`, no other host receives a request.
        """
        if hosts and host(url) not in hosts:
            detail = f"a link of {', '.join(hosts)} leads to another host: {url}"
            raise FilesetError("platform-bad-response", detail, code="foreign-link")

        def ask(rested: float) -> ApiAnswer:
            with self.client.fetch(self._request(url, accept, rested, hosts)) as answer:
                if answer.status != 200 and answer.status not in statuses:
                    raise self.refusal(answer)
                body = responses.read_body(answer.headers, answer.body, LARGEST)
                _check(answer.url, answer.headers, body, accept)
                now = self.client.wall()
                self.heard.append(pack_answer(answer, body, now, self.heard))
                return ApiAnswer(
                    url=answer.url,
                    status=answer.status,
                    body=body,
                    media_type=media_type(answer.headers),
                    headers=answer.headers,
                    hops=answer.hops,
                )

        return self.retry(ask)

    def document(self, url: str, *, hosts: Sequence[str] = ()) -> Any:
        """Return the JSON document at `url`. With `hosts`, no other host receives a request."""
        return parse_document(self.answer(url, hosts=hosts))

    def page(self, url: str) -> ApiAnswer:
        """Return a landing page, redirects followed, if its host's robots.txt allows it."""
        if self.obey:
            self.retry(lambda rested: self.client.obey(self._request(url, _PAGE, rested)))
        return self.answer(url, accept=_PAGE)

    def shows_token(self, host: str) -> bool:
        """Return whether there is a token for `host`."""
        return host in self.tokens

    def retry(self, ask: Callable[[float], T]) -> T:
        """Return the result of `ask`, retried after failures that may pass. Raises FilesetError."""
        rested = min(self.until, self.client.clock() + self.patience)
        last: FetchError | None = None
        for left in reversed(range(self.tries)):
            try:
                return ask(rested)
            except FetchError as failure:
                last = failure.copy()
                if not left or not passes(failure):
                    raise error_of(failure) from failure
            except Deferred as error:
                raise deferral(self.client, self.until, error_of(last) if last else None) from error
        raise AssertionError("unreachable")

    def refusal(self, answer: Response) -> FetchError | FilesetError:
        """Return the error for a refusal, with the platform's own message.

        If it is a robot challenge, its host pauses as asked.
        """
        failure, body = read_refusal(self.client, answer)
        if answer.status in _WALLED and blocks_robots(answer.headers, body):
            self.client.hosts.fail(host(answer.url), failure)
            return FilesetError(BOT, f"{answer.url}: HTTP status {answer.status}")
        return failure

    def _request(
        self, url: str, accept: str, rested: float, within: Sequence[str] = ()
    ) -> FetchRequest:
        return FetchRequest(
            url=normal_url(url),
            limits=replace(self.limits, total=_SECONDS, bytes=LARGEST),
            headers={"Accept": accept, "Accept-Encoding": "gzip, deflate"},
            until=self.until,
            end=self.until,
            rested=rested,
            within=within,
            record=True,
        )


def read_refusal(client: HttpClient, answer: Response) -> tuple[FetchError, bytes]:
    """Return the error for a refusal, with the platform's own message, and the body's beginning."""
    failure, body = client.refusal(answer), b""
    with suppress(FetchError):
        body = responses.read_start(answer.headers, answer.body, LOOKED)
    if message := _message(body):
        detail = f"{failure.detail}: {message}"
        failure = FetchError(failure.code, detail, failure.status, failure.retry_after)
    return failure, body


def _message(body: bytes) -> str:
    """Return the message in the JSON of a refusal, or in the XML of S3; empty if there is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        written = _XML_MESSAGE.search(body)
        document = written[1].decode("utf-8", "replace") if written else ""
    while isinstance(document, list | dict) and document:
        if isinstance(document, list):
            document = document[0]
        else:
            document = next((document[name] for name in _MESSAGES if document.get(name)), None)
    return " ".join(document.split())[:300] if isinstance(document, str) else ""


def _check(url: str, headers: Mapping[str, str], body: bytes, accept: str) -> None:
    """Raise FilesetError for a challenge, a login page, or a page instead of JSON."""
    if not is_page(media_type(headers), body[:LOOKED]):
        return
    if blocks_robots(headers, body) and (accept != _PAGE or len(body) < _CHALLENGE):
        raise FilesetError(BOT, url)
    # A page that asks for a password may merely offer a login.
    is_sign_in = accept == _JSON or _SIGN_IN.search(urlsplit(url).path)
    if is_sign_in and _PASSWORD.search(body[:LOOKED]):
        raise FilesetError(LOGIN, url)
    if accept == _JSON:
        raise FilesetError("platform-bad-response", f"{url}: a page instead of JSON")


def passes(failure: FetchError) -> bool:
    """Return whether a failure may pass."""
    return OUTCOMES[failure.code].soon or failure.status in {408, 425}


def error_of(failure: FetchError) -> FilesetError:
    """Return the request's error for a failure."""
    status = STATUSES.get(failure.code, "platform-http-error")
    return FilesetError(status, failure.detail, code=failure.code)


def deferral(
    client: HttpClient,
    until: float,
    failure: FilesetError | None,
    status: str = "platform-http-error",
) -> FilesetError:
    """Return the error for a request that is not sent any more; `failure` is that of the last."""
    if client.stop.is_set():
        return FilesetError("cancelled")
    if client.clock() >= until:
        return FilesetError("deadline-exceeded", failure.detail if failure else "")
    return failure or FilesetError(status, "its host failed before and is not asked again")


def parse_document(answer: ApiAnswer) -> Any:
    """Parse the JSON of a response. Raises FilesetError if it is invalid or too large."""
    if sum(map(answer.body.count, (b",", b":"))) > _VALUES:
        raise FilesetError("platform-bad-response", f"{answer.url}: more than {_VALUES:,} values")
    try:
        written = answer.body.decode(json.detect_encoding(answer.body), "surrogatepass")
        document = json.loads(written, parse_constant=_no_number)
        return _sound(document) if _SURROGATE.search(written) else document
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:200]
        raise FilesetError("platform-bad-response", f"{answer.url}: not JSON: {why}") from error


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _sound(value: Any) -> Any:
    """Return a value without lone surrogates, which no encoding can represent."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_sound(member) for member in value]
    if isinstance(value, dict):
        return {_sound(name): _sound(member) for name, member in value.items()}
    return value
