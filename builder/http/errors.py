"""Errors of the HTTP client, and the outcome that each code of an error stands for.

An outcome is an attempt to fetch a file that brought no bytes. A `loss` means that the file is
gone, which is an incidence for a file that was there. All other outcomes are failures, which say
nothing about the file. An unreachable server becomes a loss only when it recurs: see
builder.sources.fulltexts.incidences.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from builder.http.secrets import clean_text
from functions.snapshot.errors import SheafError

_LONGEST = 300
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class FetchError(SheafError):
    """A URL could not be fetched; `code` is one of builder.http.errors.

    `retry_after` is the wait in seconds that the server asks for.
    """

    def __init__(
        self,
        code: str,
        detail: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        detail = clean_text(detail)
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.detail = _UNPRINTABLE.sub(" ", detail).strip()[:_LONGEST]  # may be a server's text
        self.status = status
        self.retry_after = retry_after

    def copy(self) -> "FetchError":
        """Return an equal error without a traceback, to be stored or raised again.

        A raised error keeps the stack frames of each raise, with all their objects.
        """
        return FetchError(self.code, self.detail, self.status, self.retry_after)


class ReplacedError(SheafError):
    """The file was removed or replaced since it was found."""


class Deferred(SheafError):
    """The request must wait: its host is resting, or the work was stopped."""


@dataclass(frozen=True, slots=True)
class FetchOutcome:
    """A code, its meaning and its consequences.

    `unreachable`: there was no connection. `soon`: it is retried early. `chain`: it concerns the
    redirects, and not the last URL. `ours`: it follows from the configuration, and may not occur
    with another one.
    """

    code: str
    meaning: str
    loss: bool = False
    unreachable: bool = False
    soon: bool = False
    chain: bool = False
    ours: bool = False


OUTCOMES: Mapping[str, FetchOutcome] = {
    outcome.code: outcome
    for outcome in (
        FetchOutcome("not-found", "the server has no such file (404)", loss=True),
        FetchOutcome("gone", "the server has removed it permanently (410)", loss=True),
        FetchOutcome("forbidden", "the server denies access (401, 402, 403, 407, 451)"),
        FetchOutcome(
            "too-many-requests", "the server limits the rate of requests (429)", soon=True
        ),
        FetchOutcome("server-error", "the server failed (5xx)", soon=True),
        FetchOutcome("http-status", "the response is not the file, a redirect or a known error"),
        FetchOutcome("dns", "the host's name has no address", unreachable=True, soon=True),
        FetchOutcome("connect", "the server refused the connection", unreachable=True, soon=True),
        FetchOutcome(
            "connect-timeout",
            "the server did not answer within http.connect_seconds",
            unreachable=True,
            soon=True,
        ),
        FetchOutcome("tls", "the server's certificate or TLS is invalid", soon=True),
        FetchOutcome(
            "no-answer",
            "the response did not begin within http.first_byte_seconds",
            soon=True,
        ),
        FetchOutcome("too-slow", "the response was slower than http.least_rate", soon=True),
        FetchOutcome("too-long", "the response took longer than http.total_seconds", soon=True),
        FetchOutcome(
            "cut-short", "the connection ended before the response was complete", soon=True
        ),
        FetchOutcome("bad-answer", "the response is not HTTP", soon=True),
        FetchOutcome("empty", "the response has no bytes (200)", soon=True),
        FetchOutcome("too-large", "the file is larger than http.max_bytes", ours=True),
        FetchOutcome(
            "content-coding", "the response has a content coding, although identity was requested"
        ),
        FetchOutcome("excluded", "gather.rules exclude the host", ours=True),
        FetchOutcome("address-refused", "the host's address is not public", ours=True),
        FetchOutcome("port-refused", "the port is not in http.ports", ours=True),
        FetchOutcome("robots-disallowed", "the host's robots.txt forbids it", ours=True),
        FetchOutcome(
            "robots-unreachable",
            "the host's robots.txt could not be fetched (RFC 9309: disallowed)",
            soon=True,
        ),
        FetchOutcome(
            "unsupported-scheme",
            "the URL or a redirect is not http or https",
            chain=True,
        ),
        FetchOutcome("userinfo", "a redirect's URL has a user or a password", chain=True),
        FetchOutcome("bad-redirect", "a redirect has no valid Location", chain=True),
        FetchOutcome("redirect-loop", "the redirects are a loop", chain=True),
        FetchOutcome("too-many-hops", "more than 10 redirects in sequence", chain=True),
    )
}

BY_STATUS = {
    404: "not-found",
    410: "gone",
    401: "forbidden",
    402: "forbidden",
    403: "forbidden",
    407: "forbidden",
    451: "forbidden",
    429: "too-many-requests",
}
