"""A capture's address: URL text, host, registered domain and the set of its domain.

Registered domains follow the ICANN part of the public suffix list.
"""

import importlib.metadata
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import publicsuffixlist

from functions.snapshot import setspec
from functions.url import authority, surt
from functions.url.authority import text as text


@cache
def _suffix_list() -> publicsuffixlist.PublicSuffixList:
    return publicsuffixlist.PublicSuffixList(accept_unknown=False, only_icann=True)


def split_suffix(host: str) -> tuple[str, str] | None:
    """Return a host's public suffix and the part before it; None without a known suffix.

    `host` is lower case; an internationalized one is in punycode.
    """
    suffix = _suffix_list().publicsuffix(host)
    if suffix is None:
        return None
    return suffix, host[: -len(suffix)].rstrip(".")


def suffix_list_version() -> str:
    """Return the version of the package and of its list."""
    package = importlib.metadata.version("publicsuffixlist")
    path = Path(publicsuffixlist.__file__).with_name("public_suffix_list.dat")
    with path.open(encoding="utf-8") as lines:
        for _, line in zip(range(40), lines, strict=False):
            match = re.match(r"// VERSION: (\S+)", line)
            if match:
                return f"{package} ({match[1]})"
    return package


_SHORTEST = len("https://")
_CACHED = 200  # the most characters of a URL's start in the cache


@dataclass(frozen=True, slots=True)
class Host:
    """A host: its name, its form in a SURT, its registered domain and its set."""

    name: str
    surt: str
    registered: str | None
    set_spec: str


@dataclass(slots=True)
class CaptureAddress:
    """A URL's text, its bytes if they differ, its host, and its path's index. Do not change it."""

    url: str
    raw: bytes | None
    host: Host | None
    path_at: int

    @property
    def surt(self) -> str:
        """The SURT, computed at each call."""
        return surt.key(self.url, self.host.surt if self.host else None, self.path_at)


def parse(raw: bytes) -> CaptureAddress:
    """Return the address of a URL's bytes, whatever they are."""
    url = text(raw)
    end = url.find("/", _SHORTEST)
    if 0 < end <= _CACHED and url[end + 1 : end + 2] != "/":  # else a repeated scheme
        host, path_at = _authority(url[:end])
    else:
        host, path_at = _authority.__wrapped__(url)
    return CaptureAddress(url, None if len(url) == len(raw) else raw, host, path_at)


@lru_cache(maxsize=1 << 14)
def _authority(url: str) -> tuple["Host | None", int]:
    """Return the host of a URL, or of its part before the path, and the path's index."""
    found = authority.split(url)
    return (parse_host(*found[:2]), found[2]) if found else (None, 0)


@lru_cache(maxsize=1 << 16)
def parse_host(scheme: str, netloc: str) -> Host | None:
    """Return the host of a URL's authority (RFC 3986, 3.2), None without a valid host name.

    `netloc` is lower case and without user information.
    """
    found = authority.parse(scheme, netloc)
    if found is None:
        return None
    name = found.name
    if found.is_ip:
        return Host(name, found.surt, None, setspec.join("domain", "ip", name))
    parts = split_suffix(name)
    if parts is None:
        return Host(name, found.surt, None, setspec.join("domain", name))
    suffix, before = parts
    labels = [label for label in reversed(before.split(".")) if label]
    registered = f"{labels[0]}.{suffix}" if labels else None
    return Host(name, found.surt, registered, setspec.join("domain", suffix, *labels))
