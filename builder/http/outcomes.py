"""Outcomes of an attempt to fetch a file that brought no bytes; one row each.

A `loss` means that the file is gone, which is an incidence for a file that was there. All other
outcomes are failures, which say nothing about the file. An unreachable server becomes a loss only
when it recurs: see builder.gather.incidences.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


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


def _table(outcomes: Iterable[FetchOutcome]) -> Mapping[str, FetchOutcome]:
    return {outcome.code: outcome for outcome in outcomes}


OUTCOMES = _table(
    (
        FetchOutcome("not-found", "the server has no such file (404)", loss=True),
        FetchOutcome("gone", "the server has it no more, for good (410)", loss=True),
        FetchOutcome("forbidden", "the server gives it to others only (401, 402, 403, 407, 451)"),
        FetchOutcome("too-many-requests", "the server was asked too often (429)", soon=True),
        FetchOutcome("server-error", "the server failed (5xx)", soon=True),
        FetchOutcome(
            "http-status", "another answer than the file, a redirect or an error known here"
        ),
        FetchOutcome("dns", "the host's name has no address", unreachable=True, soon=True),
        FetchOutcome(
            "connect", "the server did not take the connection", unreachable=True, soon=True
        ),
        FetchOutcome(
            "connect-timeout",
            "the server did not answer within http.connect_seconds",
            unreachable=True,
            soon=True,
        ),
        FetchOutcome("tls", "the server's certificate or its TLS is not good", soon=True),
        FetchOutcome(
            "no-answer",
            "the answer did not begin within http.first_byte_seconds of the request",
            soon=True,
        ),
        FetchOutcome("too-slow", "the bytes came slower than http.least_rate", soon=True),
        FetchOutcome("too-long", "the whole took longer than http.total_seconds", soon=True),
        FetchOutcome("cut-short", "the connection ended before all bytes had come", soon=True),
        FetchOutcome("bad-answer", "what was answered is not HTTP", soon=True),
        FetchOutcome("too-large", "the file is larger than http.max_bytes", ours=True),
        FetchOutcome(
            "content-coding", "the bytes came in a content coding although identity was asked for"
        ),
        FetchOutcome("address-refused", "the host's address is not a public one", ours=True),
        FetchOutcome("port-refused", "the port is none of http.ports", ours=True),
        FetchOutcome("robots-disallowed", "the host's robots.txt forbids it", ours=True),
        FetchOutcome(
            "robots-unreachable", "the host's robots.txt could not be had (RFC 9309: no)", soon=True
        ),
        FetchOutcome(
            "unsupported-scheme",
            "the URL is, or led to one that is, neither http nor https",
            chain=True,
        ),
        FetchOutcome("userinfo", "the URL led to one that has a user or a password", chain=True),
        FetchOutcome(
            "bad-redirect", "the URL led to nowhere: no Location, or one that is no URL", chain=True
        ),
        FetchOutcome(
            "redirect-loop", "the URL led back to itself, or to one on the way", chain=True
        ),
        FetchOutcome("too-many-hops", "more than 10 redirects, one behind the other", chain=True),
    )
)

_BY_STATUS = {
    404: "not-found",
    410: "gone",
    401: "forbidden",
    402: "forbidden",
    403: "forbidden",
    407: "forbidden",
    451: "forbidden",
    429: "too-many-requests",
}


def of_status(status: int) -> str:
    """Return the code of an HTTP status other than 200 and redirects."""
    return _BY_STATUS.get(status) or ("server-error" if 500 <= status <= 599 else "http-status")
