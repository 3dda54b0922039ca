"""Exchanges and answers of platforms as they are kept: without secrets, and bounded in all."""

import hashlib
import zlib
from collections.abc import Sequence
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


def describe_exchanges(answer: Response, at: str, sha256: str) -> tuple[HttpExchange, ...]:
    """Return the exchanges that led to a response, in order; its own, without the body, is last.

    It was received `at` (14 digits). The digest of its bytes completes the URLs
    (builder.http.secrets.mark_file).
    """
    return tuple(
        replace(
            exchange,
            url=mark_file(exchange.url, sha256),
            headers=tuple((name, mark_file(value, sha256)) for name, value in exchange.headers),
        )
        for exchange in (*map(_describe_redirect, answer.redirects), _describe(answer, at))
    )


def _describe(answer: Response, at: str) -> HttpExchange:
    return HttpExchange(
        url=strip_secrets(answer.url, marked=True),
        at=at,
        status=answer.status,
        reason=answer.reason,
        sent=clean_fields(answer.sent),
        headers=clean_fields(answer.raw),
        address=answer.address,
    )


def _describe_redirect(redirect: FollowedRedirect) -> HttpExchange:
    answer, headers, body = redirect.response, redirect.response.raw, redirect.body
    location = answer.headers.get("location", "")
    shown = strip_secrets(location, marked=True)
    if shown != location:  # other fields and the body may repeat it
        headers = tuple((name, value.replace(location, shown)) for name, value in headers)
        body = None
    return replace(
        _describe(replace(answer, raw=headers), digits(redirect.at)),
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
    sha256 = hashlib.sha256(body).hexdigest()
    *redirects, last = describe_exchanges(answer, digits(now), sha256)
    return PlatformAnswer(
        last=last,
        redirects=tuple(redirects),
        packed=packed if len(packed) <= room else None,
        unpacked=responses.content_coding(answer.headers) is not None,
    )
