"""Refusals: failures that come of our own configuration, and whether it would allow them now."""

import re
from collections.abc import Callable
from ipaddress import ip_address

from builder.http.addresses import is_public
from builder.http.fetch import Means

_PORT = re.compile(r":([0-9]+)\Z")
_BYTES = re.compile(r"([0-9,]+) bytes\Z")
_BETWEEN = re.compile(r"[\s,]+")


def lifted(means: Means, code: str, detail: str) -> bool:
    """Tell whether a failure with this detail would be none now, as far as that can be told.

    Looks nothing up: the addresses, the port and the size are those of the last time.
    """
    held = _LIFTED.get(code)
    return held is not None and held(means, detail)


def _address(means: Means, detail: str) -> bool:
    for word in _BETWEEN.split(detail):
        try:
            ip_address(word.partition("%")[0])
        except ValueError:
            continue  # the host's name, or what was said around it
        if is_public(word, means.guard.allowed):
            return True
    return False


def _port(means: Means, detail: str) -> bool:
    found = _PORT.search(detail)
    return found is not None and int(found[1]) in means.guard.ports


def _robots(means: Means, detail: str) -> bool:
    return not means.obey


def _size(means: Means, detail: str) -> bool:
    """A file of unknown size was larger than what was allowed then: it may be allowed now."""
    found = _BYTES.search(detail)
    if found is None or not (digits := found[1].replace(",", "")):
        return False
    size = int(digits)
    return size < means.limits.bytes if "more than" in detail else size <= means.limits.bytes


_LIFTED: dict[str, Callable[[Means, str], bool]] = {
    "address-refused": _address,
    "port-refused": _port,
    "robots-disallowed": _robots,
    "too-large": _size,
}
CODES = frozenset(_LIFTED)
"""The codes of failures that may be lifted: those that builder.http.outcomes calls our own."""
