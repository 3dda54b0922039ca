"""Exchanges and answers of platforms as they are kept: without secrets, and bounded in all."""

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from builder.http import responses
from builder.http.responses import FollowedRedirect, Response
from builder.http.secrets import clean_fields, mark_file, strip_secrets
from builder.sources.datasets.item import HttpExchange, PlatformAnswer
from functions.snapshot.instant import to_digits

_ROOM = 32 << 20
"""Packed bytes of all answers for a request."""


def digits(at: float) -> str:
    """Return seconds since 1970 as 14 digits (UTC)."""
    return to_digits(datetime.fromtimestamp(at, UTC))


def describe_answer(answer: Response, at: str) -> HttpExchange:
    """Return the last exchange of a response, received `at` (14 digits), without its body."""
    return HttpExchange(
        url=strip_secrets(answer.url, marked=True),
        at=at,
        status=answer.status,
        reason=answer.reason,
        sent=clean_fields(answer.sent),
        headers=clean_fields(answer.raw),
        address=answer.address,
    )


def describe_redirects(answer: Response) -> tuple[HttpExchange, ...]:
    """Return the redirects that led to a response, in order; `mark_exchanges` completes them."""
    return tuple(map(_describe, answer.redirects))


def mark_exchanges(exchanges: Iterable[HttpExchange], sha256: str) -> tuple[HttpExchange, ...]:
    """Complete the URLs of exchanges that led to a file (builder.http.secrets.mark_file)."""
    return tuple(
        replace(
            exchange,
            url=mark_file(exchange.url, sha256),
            headers=tuple((name, mark_file(value, sha256)) for name, value in exchange.headers),
        )
        for exchange in exchanges
    )


def _describe(redirect: FollowedRedirect) -> HttpExchange:
    answer, headers, body = redirect.response, redirect.response.raw, redirect.body
    location = answer.headers.get("location", "")
    shown = strip_secrets(location, marked=True)
    if shown != location:  # other fields and the body may repeat it
        headers = tuple((name, value.replace(location, shown)) for name, value in headers)
        body = None
    return replace(
        describe_answer(replace(answer, raw=headers), digits(redirect.at)),
        body=None if body is None else body.decode("latin-1"),
    )


def pack_answer(
    answer: Response, body: bytes, now: float, earlier: Sequence[PlatformAnswer]
) -> PlatformAnswer:
    """Return a response as it is kept; its body is left out if `earlier` ones take the room.

    `now` is in seconds since 1970.
    """
    room = _ROOM - sum(len(stored.packed or b"") for stored in earlier)
    packed = zlib.compress(body, 1)
    exchanges = [*describe_redirects(answer), describe_answer(answer, digits(now))]
    *redirects, last = mark_exchanges(exchanges, hashlib.sha256(body).hexdigest())
    return PlatformAnswer(
        last=last,
        redirects=tuple(redirects),
        packed=packed if len(packed) <= room else None,
        unpacked=responses.content_coding(answer.headers) is not None,
    )
