"""OAI-PMH client for one repository.

Requests are sent one after the other. Temporary failures are retried, after the time that the
repository asks for or after a growing delay. Other failures end the request. While a page of
records is processed, the next page is fetched.
"""

import contextlib
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field, replace
from email.message import Message
from functools import partial
from html import unescape
from time import gmtime, strftime
from urllib.parse import urlsplit

from builder.http import responses
from builder.http.client import FetchRequest, HttpClient, add_arguments, own_headers
from builder.http.cookies import Cookies
from builder.http.errors import OUTCOMES, Deferred, FetchError
from builder.http.limits import ANNOUNCED, PASSING_STATUSES, Limits, RetryPolicy, find_wish
from builder.sources.harvest import answer
from builder.sources.harvest.errors import Broken, Unanswered
from builder.sources.harvest.page import ListPage
from builder.text import tally

_SURE = frozenset({"noRecordsMatch", "badResumptionToken", "cannotDisseminateFormat"})
"""OAI-PMH errors that count whatever the HTTP status is."""
_TOKEN = re.compile(rb"<(?:[\w.-]+:)?resumptionToken\b[^>]*>\s*([^<]*?)\s*</")
_TAIL = 1 << 14
_FEW, _PATIENT = 2, 20
"""Number of retries of failures that are rarely temporary, and of failures with Retry-After."""
_LASTING = frozenset(
    {"dns", "tls", "content-coding", "too-large"}
    | {code for code, outcome in OUTCOMES.items() if outcome.chain}
)
_UNREACHED = frozenset({"dns", "connect", "connect-timeout", "tls"})
_HEADERS = {
    "Accept": "text/xml, application/xml;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip, deflate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OaiSettings:
    """Settings of the requests. `say` prints a message for the user.

    `headers` are sent in addition to our own, to the host of the base URL only. They are never sent
    unencrypted if the base URL is https.
    """

    limits: Limits
    say: Callable[[str], None]
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    headers: Mapping[str, str] = field(default_factory=dict)


_Came = tuple[int, Mapping[str, str], bytes]
"""The status, the headers and the body of a response."""


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Reason why an attempt failed; `often` is the number of retries it deserves.

    `later`: the repository is unavailable at present. `salvage` returns the readable part of a
    broken response.
    """

    text: str
    often: int
    status: int | None = None
    rest: float | None = None
    salvage: Callable[[], ListPage | None] | None = None
    later: bool = False


class OaiClient:
    """Client of one repository. Not thread-safe. Closing it closes the connections."""

    def __init__(self, base_url: str, client: HttpClient, settings: OaiSettings) -> None:
        self._base = base_url
        credentials = own_headers(base_url, settings.headers)
        self._client = replace(client, credentials=credentials, keep_alive=True, cookies=Cookies())
        self._settings = settings
        self._pool = ThreadPoolExecutor(1, "harvest-ahead")
        self._silent = 0.0
        """Seconds that were waited since the last message."""
        self._ahead: tuple[str, Future[_Came]] | None = None

    def ask(self, arguments: Mapping[str, str]) -> ListPage:
        """Return the response to a request. Raises Unanswered, and Deferred after a stop.

        A response that is invalid XML on every attempt is salvaged if it has records.
        """
        tried = 0
        while True:
            outcome = self._attempt(arguments)
            if isinstance(outcome, ListPage):
                return outcome
            tried += 1
            if tried > outcome.often:
                if outcome.salvage is not None and (page := outcome.salvage()) is not None:
                    return page
                shown = {k: v if len(v) < 60 else f"{v[:57]}..." for k, v in arguments.items()}
                request = " ".join([shown.pop("verb"), *(f"{k}={v}" for k, v in shown.items())])
                raise Unanswered(f"{request}: {outcome.text}", outcome.status, outcome.later)
            seconds = self._settings.retry.wait(tried, outcome.rest)
            self._silent += seconds
            if self._silent >= ANNOUNCED:
                self._silent, left = 0.0, tally(outcome.often - tried, "more try", "more tries")
                self._settings.say(
                    f"{self._base}: {outcome.text}: asking again in {seconds:,.0f} s, then "
                    f"{left} at most; Ctrl-C ends it"
                )
            if self._client.stop.wait(seconds):
                raise Deferred("ended")

    def close(self) -> None:
        """Close the connections."""
        self._pool.shutdown()
        self._client.close()

    def _attempt(self, arguments: Mapping[str, str]) -> ListPage | _Trouble:
        retries = self._settings.retry.retries
        try:
            status, headers, data = self._come(add_arguments(self._base, arguments))
        except FetchError as failure:
            often = min(retries, _FEW) if failure.code in _LASTING else retries
            return _Trouble(str(failure), often, later=failure.code in _UNREACHED)
        rest = find_wish(headers, status, self._client.wall())
        if rest is not None and (status in PASSING_STATUSES or status == 403):
            if self._settings.retry.is_too_long(rest):
                until = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(self._client.wall() + rest))
                text = f"HTTP status {status}, asked to wait until {until}"
                return _Trouble(f"{text}, beyond http.wait_seconds", 0, status, later=True)
            text = f"HTTP status {status}{_find_reason(headers, data)}"
            return _Trouble(text, min(_PATIENT, retries * 4), status, rest, later=True)
        if status == 200 and arguments["verb"] == "ListRecords":
            self._look_ahead(data)
        message = Message()
        message["Content-Type"] = headers.get("content-type", "")
        charset = message.get_content_charset()
        try:
            page = answer.page(data, charset)
        except Broken as error:
            if status != 200:
                return _refusal(status, retries)
            few = min(retries, _FEW if str(error).startswith("not XML") else retries)
            return _Trouble(
                f"the response is {error}", few, salvage=partial(answer.take_apart, data, charset)
            )
        is_sure = any(code in _SURE for code, _ in page.errors)
        if status != 200 and (not page.errors or (status >= 500 and not is_sure)):
            return _refusal(status, retries)
        return page

    def _look_ahead(self, data: bytes) -> None:
        """Fetch the next page while this one is processed."""
        match = _TOKEN.search(data, max(0, len(data) - _TAIL))
        with contextlib.suppress(UnicodeDecodeError):
            if match and (token := unescape(match[1].decode()).strip()):
                url = add_arguments(self._base, {"verb": "ListRecords", "resumptionToken": token})
                if self._ahead is None or self._ahead[0] != url:  # a token may be valid only once
                    self._ahead = url, self._pool.submit(self._fetch, url)

    def _come(self, url: str) -> _Came:
        """Return the response, which may have been fetched already. Raises FetchError, Deferred."""
        if self._ahead is not None:
            ahead_url, came = self._ahead
            if ahead_url == url:
                self._ahead = None
                return came.result()
            wait_for([came])
        return self._fetch(url)

    def _fetch(self, url: str) -> _Came:
        """Return the response after redirects. Raises FetchError, Deferred."""
        request = FetchRequest(
            url=url, limits=self._settings.limits, headers=_HEADERS, exact=True, keep_query=True
        )
        with self._client.fetch(request) as response:
            before, after = urlsplit(url), urlsplit(response.url)
            if response.hops and after.query == before.query:
                own_query = urlsplit(self._base).query
                self._move(url, after._replace(query=own_query, fragment="").geturl())
            raw, most = b"".join(response.body), self._settings.limits.bytes
            body, _ = responses.read_mislabelled(response.headers, raw, most)
            return response.status, response.headers, body

    def _move(self, url: str, base: str) -> None:
        before, after = urlsplit(url), urlsplit(base)
        if before.netloc != after.netloc:
            self._settings.say(f"{self._base} redirects to another host: {base}")
        elif before.scheme == "https" != after.scheme:
            self._settings.say(f"{self._base} redirects to an unencrypted address: {base}")
        self._base = base


def _find_reason(headers: Mapping[str, str], body: bytes) -> str:
    """Return what a plain text in place of an answer says in its first line, in brackets."""
    if not headers.get("content-type", "").startswith("text/plain"):
        return ""
    line = body[:200].decode("utf-8", "replace").strip().partition("\n")[0].strip()
    return f" ({line.rstrip('.')})" if line else ""


def _refusal(status: int, retries: int) -> _Trouble:
    often = 0
    if status in PASSING_STATUSES:
        often = retries
    elif status >= 500:
        often = min(retries, _FEW)
    return _Trouble(f"HTTP status {status}", often, status, later=status in (429, 503))
