"""Sources of answers: a repository that is asked politely, or a folder of saved answers.

A visit has a budget of time and requests. When it is used up, nothing more is asked.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

from builder.check.exchange import Arguments, Exchange, Question
from builder.errors import UsageError
from builder.http import responses
from builder.http.client import FetchRequest, HttpClient, add_arguments, own_headers
from builder.http.cookies import Cookies
from builder.http.errors import Deferred, FetchError
from builder.http.limits import PASSING_STATUSES, Limits, find_wish
from builder.http.responses import Response

_ACCEPT = "text/xml, application/xml;q=0.9, */*;q=0.1"
_FORM = "application/x-www-form-urlencoded"
_TRIES = 3
_PATIENCE = 10.0
"""Longest wait in seconds that a server is granted within a visit."""
_BROKEN = frozenset({"cut-short", "bad-answer"})
_REQUEST = re.compile(rb"<(?:[\w.-]+:)?request\b([^>]*)>")
_ATTRIBUTE = re.compile(r"([A-Za-z]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_VERB = re.compile(
    rb"<(?:[\w.-]+:)?(Identify|ListSets|ListMetadataFormats|ListRecords|GetRecord)\b"
)


@dataclass(slots=True)
class AskBudget:
    """The rest of a visit: its `end` on the client's clock in seconds, and requests.

    `pause` is the wait in seconds before a failed request is sent again.
    """

    end: float
    requests: int = 600
    pause: float = 1.0


class Asker(Protocol):
    """What answers a visit; its `reason` says why `ask` returned None."""

    base_url: str
    reason: str

    def ask(self, question: Question) -> Exchange | None:
        """Return what came for a question, or None if it cannot be asked."""

    def seconds_left(self) -> float:
        """Return how long the visit may still take."""

    def others(self) -> Iterator[Exchange]:
        """Yield answers that were not asked for."""
        yield from ()

    def close(self) -> None:
        """Close what is open."""
        return


class RepositoryAsker(Asker):
    """Asks one repository, request by request. `headers` are sent to its own origin only.

    A question is None as soon as the budget is used up.
    """

    reason = "the visit's time was used up"

    def __init__(
        self,
        base_url: str,
        client: HttpClient,
        limits: Limits,
        headers: Mapping[str, str],
        budget: AskBudget,
    ) -> None:
        self.base_url = base_url
        self._limits = limits
        self._budget = budget
        own = replace(client, credentials=own_headers(base_url, headers), keep_alive=True)
        self._client = replace(own, cookies=Cookies())
        self._bare = own
        """A client without cookies."""

    def seconds_left(self) -> float:
        """Return how long the visit may still take."""
        return max(0.0, self._budget.end - self._client.clock())

    def ask(self, question: Question) -> Exchange | None:
        """Return the exchange of a request, after retries; None if the budget is used up."""
        failures, tries = 0, 1 if question.wrong else _TRIES
        for tried in range(1, tries + 1):
            if self._budget.requests <= 0 or self.seconds_left() <= 0:
                return None
            self._budget.requests -= 1
            exchange = self._exchange(question)
            if exchange is None:
                return None
            exchange = replace(exchange, failures=failures)
            wish = find_wish(exchange.fields, exchange.status, self._client.wall())
            seconds = self._budget.pause if wish is None else wish
            is_passing = exchange.status >= 500 or exchange.status in PASSING_STATUSES
            if tried == tries or not (is_passing or exchange.code in _BROKEN):
                return exchange
            failures += exchange.status not in (429, 503)
            if seconds > min(_PATIENCE, self.seconds_left()):
                return exchange
            if self._client.stop.wait(seconds):
                raise Deferred("ended")
        return None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        self._bare.close()

    def _exchange(self, question: Question) -> Exchange | None:
        client = self._client if question.cookies else self._bare
        url, form = add_arguments(self.base_url, question.arguments), b""
        headers = {"Accept": _ACCEPT, "Accept-Encoding": question.coding}
        if question.method == "POST":
            url, form = self.base_url, urlencode(question.arguments).encode()
            headers |= {"Content-Type": _FORM, "Content-Length": str(len(form))}
        exchange = Exchange(question.arguments, url, question.method)
        request = FetchRequest(
            url=url,
            limits=self._limits,
            headers=headers,
            until=self._budget.end,
            end=self._budget.end,
            exact=True,
            keep_query=True,
            record=True,
            form=form,
        )
        begun = client.clock()
        try:
            with client.ask(request) if form else client.fetch(request) as response:
                exchange = _head(exchange, response)
                raw = b"".join(response.body)
                body, is_other = responses.read_mislabelled(
                    response.headers, raw, self._limits.bytes
                )
                exchange = replace(exchange, body=body, size=len(body), mislabelled=is_other)
        except FetchError as failure:
            if self.seconds_left() <= 0:  # it was cut off by the visit, not by the server
                return None
            exchange = replace(exchange, trouble=str(failure), code=failure.code)
        except Deferred:
            if client.stop.is_set():
                raise
            return None
        return replace(exchange, seconds=round(client.clock() - begun, 3))


def _head(exchange: Exchange, response: Response) -> Exchange:
    targets = [hop.response.location or "" for hop in response.redirects]
    return replace(
        exchange,
        status=response.status,
        fields=response.headers,
        coded=responses.content_coding(response.headers) or "",
        redirected=bool(response.redirects),
        moved=any(hop.response.status in (301, 308) for hop in response.redirects),
        lost_query=any("?" not in target for target in targets),
    )


class SavedAnswers(Asker):
    """A folder of saved answers: what an answer's element `request` says is what it answers.

    Raises UsageError if the folder has no file that looks like an answer.
    """

    reason = "no saved answer has it"

    def __init__(self, folder: Path) -> None:
        self._answers: dict[Arguments, bytes] = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and b"OAI-PMH" in (body := path.read_bytes())[:4000]:
                self._answers.setdefault(tuple(sorted(_arguments_of(body))), body)
        if not self._answers:
            raise UsageError(f"{folder} has no saved answers of OAI-PMH")
        self.base_url = folder.resolve().as_uri()

    def seconds_left(self) -> float:
        """Return how long the visit may still take."""
        return 120.0

    def ask(self, question: Question) -> Exchange | None:
        """Return the saved answer to a request, or None."""
        if question.method != "GET" or not question.cookies:
            return None
        body = self._answers.pop(tuple(sorted(question.arguments)), None)
        return None if body is None else self._exchange(question.arguments, body)

    def others(self) -> Iterator[Exchange]:
        """Yield the answers that were not asked for."""
        for arguments, body in self._answers.items():
            yield self._exchange(arguments, body)

    def _exchange(self, arguments: Arguments, body: bytes) -> Exchange:
        url = add_arguments(self.base_url, arguments)
        return Exchange(arguments, url, status=200, body=body, size=len(body))


def _arguments_of(body: bytes) -> list[tuple[str, str]]:
    """Return the arguments that an answer repeats, or else its verb."""
    request, verb = _REQUEST.search(body), _VERB.search(body)
    attributes = request[1].decode("utf-8", "replace") if request else ""
    pairs = [(name, unescape(a or b)) for name, a, b in _ATTRIBUTE.findall(attributes)]
    return pairs or ([("verb", verb[1].decode())] if verb else [])
