"""The scope of a search: the SURT ranges of a URL and a kind of match. Pure.

As on pywb's and the Internet Archive's servers, a host covers itself with and without `www`, by
http and https. `domain` also covers all hosts below it, by the name as given.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from functions.snapshot.errors import SheafError
from functions.url import surt

Range = tuple[str, str]
"""SURTs from the first one up to but not including the second."""

LONGEST = 8192
"""Maximum length of a requested URL in characters."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?![0-9])")
_SLASHES = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):/+(?=[^/])")
_ANY_HOST, _ANY_PATH = "*.", "*"


class NoScope(SheafError):
    """The URL or the kind of match is invalid; the text is a one-line reason."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is searched: the completed URL, the kind of match, and the ranges, ascending."""

    url: str
    match: str
    ranges: Sequence[Range]


def parse(url: str, match: str = "") -> Scope:
    """Return the scope of a URL and one of MATCHES. Raises NoScope.

    If `match` is empty, `*.example.org` is a domain, `example.org/a*` a prefix, and all else exact.
    A URL without a scheme is an http URL.
    """
    if not match:
        if url.startswith(_ANY_HOST):
            url, match = url.removeprefix(_ANY_HOST), "domain"
        elif url.endswith(_ANY_PATH):
            url, match = url.removesuffix(_ANY_PATH), "prefix"
    url = complete_url(url)
    key = surt.of(url.encode("utf-8", "surrogateescape"))
    return Scope(url, match or "exact", MATCHES[match or "exact"](url, key))


def complete_url(url: str) -> str:
    """Return a URL with its scheme and both slashes. Raises NoScope if it is empty or too long."""
    url = url.strip()
    if not url or len(url) > LONGEST:
        raise NoScope(f"url has {len(url)} characters, expected 1 to {LONGEST}")
    if not _SCHEME.match(url):
        return f"http://{url.lstrip('/')}"
    # Gateways and browsers reduce two slashes within a path to one.
    match = _SLASHES.match(url)
    if match and match[1].lower() in ("http", "https", "ftp"):
        return f"{match[1]}://{url[match.end() :]}"
    return url


def exact(key: str) -> Range:
    """Return the range of one SURT; SURTs contain no character below `!`."""
    return key, key + " "


def _exact(url: str, key: str) -> Sequence[Range]:
    return (exact(key),)


def _prefix(url: str, key: str) -> Sequence[Range]:
    """Return the ranges of a prefix, including a final slash, which SURTs drop."""
    if url.endswith("?") and "?" not in key:
        return (_below(f"{key}?"),)
    if url.endswith("/") and not key.endswith("/"):
        return exact(key), _below(f"{key}/"), _below(f"{key}?")
    return (_below(key),)


def _host(url: str, key: str) -> Sequence[Range]:
    return (_below(f"{_host_of(url, key)})"),)


def _domain(url: str, key: str) -> Sequence[Range]:
    """Return the ranges of a host, of the hosts below it, and of its other ports."""
    host = _host_of(url, key)
    alone = ":" in host or host[:1].isdigit()  # with a port, or an IP address: no hosts below it
    if alone:
        return (_below(f"{host})"),)
    return _below(f"{host})"), _below(f"{host},"), _below(f"{host}:")


def _host_of(url: str, key: str) -> str:
    host, bracket, _ = key.partition(")")
    if not bracket or ":/" in host:
        raise NoScope("url has no host, expected one")
    return host


def _below(key: str) -> Range:
    """Return the range of all SURTs that begin with `key`."""
    return key, key[:-1] + chr(ord(key[-1]) + 1)


MATCHES: Mapping[str, Callable[[str, str], Sequence[Range]]] = {
    "exact": _exact,
    "prefix": _prefix,
    "host": _host,
    "domain": _domain,
}
"""Kinds of match by their names in matchType."""
