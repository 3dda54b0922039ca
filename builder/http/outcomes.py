"""Outcomes: what can come of an attempt to fetch a file, but for its bytes; one row each.

`loss` says that the file is not there any more, which is an incidence of a file that was. All
others are failures: the file could not be had now, which says nothing about it. That a server was
not to be reached becomes a loss only by coming again: see builder.gather.incidences.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """A code with what it means, and what follows.

    `unreachable`: no connection came about. `soon`: it is tried again before its time. `chain`: it
    is about how URLs led to each other, and not about the last of them. `ours`: the configuration
    decided it, so another one may decide otherwise.
    """

    code: str
    meaning: str
    loss: bool = False
    unreachable: bool = False
    soon: bool = False
    chain: bool = False
    ours: bool = False


def _table(outcomes: Iterable[Outcome]) -> Mapping[str, Outcome]:
    return {outcome.code: outcome for outcome in outcomes}


OUTCOMES = _table(
    (
        Outcome("not-found", "the server has no such file (404)", loss=True),
        Outcome("gone", "the server has it no more, for good (410)", loss=True),
        Outcome("forbidden", "the server gives it to others only (401, 402, 403, 407, 451)"),
        Outcome("too-many-requests", "the server was asked too often (429)", soon=True),
        Outcome("server-error", "the server failed (5xx)", soon=True),
        Outcome("http-status", "another answer than the file, a redirect or an error known here"),
        Outcome("dns", "the host's name has no address", unreachable=True, soon=True),
        Outcome(
            "connect", "the server did not take the connection", unreachable=True, soon=True
        ),
        Outcome(
            "connect-timeout",
            "the server did not answer within http.connect_seconds",
            unreachable=True,
            soon=True,
        ),
        Outcome("tls", "the server's certificate or its TLS is not good", soon=True),
        Outcome(
            "no-answer",
            "the answer did not begin within http.first_byte_seconds of the request",
            soon=True,
        ),
        Outcome("too-slow", "the bytes came slower than http.least_rate", soon=True),
        Outcome("too-long", "the whole took longer than http.total_seconds", soon=True),
        Outcome("cut-short", "the connection ended before all bytes had come", soon=True),
        Outcome("bad-answer", "what was answered is not HTTP", soon=True),
        Outcome("too-large", "the file is larger than http.max_bytes", ours=True),
        Outcome(
            "content-coding", "the bytes came in a content coding although identity was asked for"
        ),
        Outcome("address-refused", "the host's address is not a public one", ours=True),
        Outcome("port-refused", "the port is none of http.ports", ours=True),
        Outcome("robots-disallowed", "the host's robots.txt forbids it", ours=True),
        Outcome("robots-unreachable", "the host's robots.txt could not be had (RFC 9309: no)",
                soon=True),
        Outcome("unsupported-scheme", "the URL is, or led to one that is, neither http nor https",
                chain=True),
        Outcome("userinfo", "the URL led to one that has a user or a password", chain=True),
        Outcome("bad-redirect", "the URL led to nowhere: no Location, or one that is no URL",
                chain=True),
        Outcome("redirect-loop", "the URL led back to itself, or to one on the way", chain=True),
        Outcome("too-many-hops", "more than 10 redirects, one behind the other", chain=True),
    )
)  # fmt: skip

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
    """Return the code of an HTTP status that is neither the file nor a redirect."""
    return _BY_STATUS.get(status) or ("server-error" if 500 <= status <= 599 else "http-status")
