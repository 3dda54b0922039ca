"""CORS: harvesters in web pages of other sites may send requests and read every answer.

The WHATWG's Fetch standard, section 3.2; nothing here depends on the client.
"""

from collections.abc import Sequence

ANSWER = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Retry-After",
}
"""Headers of every answer."""

_DAY = "86400"


def preflight(allowed: Sequence[str]) -> dict[str, str]:
    """Return the headers of an answer to OPTIONS; `allowed` are the permitted methods."""
    methods = ", ".join(allowed)
    return {
        "Allow": methods,
        "Access-Control-Allow-Methods": methods,
        # The names are for clients that do not know the asterisk.
        "Access-Control-Allow-Headers": "Content-Type, If-None-Match, *",
        "Access-Control-Max-Age": _DAY,
    }
