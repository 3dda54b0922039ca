"""CORS: harvesters that run in the pages of other sites may ask, and read every answer.

The WHATWG's Fetch standard, section 3.2; nothing here depends on who asks.
"""

from collections.abc import Sequence

ANSWER = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Retry-After",
}
"""Headers of every answer."""

_DAY = "86400"


def preflight(allowed: Sequence[str]) -> dict[str, str]:
    """Return the headers that answer OPTIONS where the methods `allowed` may be used."""
    methods = ", ".join(allowed)
    return {
        "Allow": methods,
        "Access-Control-Allow-Methods": methods,
        # The names are for what does not know the asterisk.
        "Access-Control-Allow-Headers": "Content-Type, If-None-Match, *",
        "Access-Control-Max-Age": _DAY,
    }
