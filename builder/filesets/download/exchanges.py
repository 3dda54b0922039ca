"""Exchanges as they are kept: requests and heads of responses, without secrets."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from builder.filesets.item import HttpExchange
from builder.http import responses
from builder.http.responses import FollowedRedirect, Response
from builder.http.secrets import clean_fields, mark_file, strip_secrets
from functions.snapshot.instant import to_digits


def digits(at: float) -> str:
    """Return seconds since 1970 as 14 digits (UTC)."""
    return to_digits(datetime.fromtimestamp(at, UTC))


def describe_redirects(answer: Response) -> tuple[HttpExchange, ...]:
    """Return the redirects that led to a response, in order; `mark_exchanges` completes them."""
    return tuple(map(_describe, answer.redirects))


def mark_exchanges(exchanges: Iterable[HttpExchange], sha256: str) -> tuple[HttpExchange, ...]:
    """Complete the URLs of exchanges that led to a file (builder.http.url.mark_file)."""
    return tuple(
        replace(
            one,
            url=mark_file(one.url, sha256),
            headers=tuple((name, mark_file(value, sha256)) for name, value in one.headers),
        )
        for one in exchanges
    )


def _describe(one: FollowedRedirect) -> HttpExchange:
    location = responses.fields_by_name(one.raw).get("location", "")
    shown = strip_secrets(location, marked=True)
    headers, body = one.raw, one.body
    if shown != location:  # other fields and the body may repeat it
        headers = tuple((name, value.replace(location, shown)) for name, value in headers)
        body = None
    return HttpExchange(
        url=strip_secrets(one.url, marked=True),
        at=digits(one.at),
        status=one.status,
        reason=one.reason,
        sent=clean_fields(one.sent),
        headers=clean_fields(headers),
        address=one.address,
        body=None if body is None else body.decode("latin-1"),
    )
