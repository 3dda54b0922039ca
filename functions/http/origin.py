"""Requests that came by the proxy in front of the API, known by a secret that only it sends.

An HTTP API of AWS has an address of its own, which would bypass CloudFront with its limits and its
log. CloudFront adds HEADER to each request, and replaces what a client sent under that name.
"""

import hmac
from collections.abc import Mapping

from functions.http import gateway
from functions.http.http_message import UNKEPT, Reply

VARIABLE = "ORIGIN_SECRET"
"""Environment variable with the secret. It is no key of the configuration, which is packed."""

HEADER = "x-origin-secret"

REFUSAL = Reply(
    403,
    "text/plain",
    b"This address answers no requests; use the repository's public base URL.\n",
    {"Cache-Control": UNKEPT},
)


def is_trusted(event: object, environment: Mapping[str, str]) -> bool:
    """Return whether an event has the secret, or none is needed. Takes the same time for all."""
    secret = environment.get(VARIABLE, "")
    if not secret:
        return True
    given = gateway.read(event).headers.get(HEADER, "")
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
