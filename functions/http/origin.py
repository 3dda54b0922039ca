"""Requests that came by the proxy in front of the API, known by a secret that only it sends.

An HTTP API of AWS has an address of its own, which would bypass CloudFront with its limits and its
log. CloudFront adds HEADER to each request, and replaces what a client sent under that name.
"""

import hmac
from collections.abc import Mapping

from functions.http.http_message import UNKEPT, Call, Reply

VARIABLE = "ORIGIN_SECRET"
"""Environment variable with the secret. It is no key of the configuration, which is packed."""

HEADER = "x-origin-secret"

REFUSAL = Reply(
    403,
    "text/plain",
    b"This address answers no requests; use the repository's public base URL.\n",
    {"Cache-Control": UNKEPT},
)


def is_trusted(call: Call, environment: Mapping[str, str]) -> bool:
    """Return whether a call has the secret, or none is needed. Takes the same time for all."""
    secret = environment.get(VARIABLE, "")
    sent = call.headers.get(HEADER, "")
    return not secret or hmac.compare_digest(sent.encode("utf-8", "replace"), secret.encode())
