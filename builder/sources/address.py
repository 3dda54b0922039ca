"""A capture's address: URL text, host, registered domain and the set of its domain."""

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from builder.sources import domain
from functions.snapshot import setspec

_UNSAFE = re.compile(rb"[^!#-;=?-~]")
_URL = re.compile(r"(?:(https?|ftps?|gopher|rtsp|mms)://)+([^/?#\\]*)", re.IGNORECASE)
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}")
_IPV6 = re.compile(r"\[([0-9a-f:.]{2,45})\]")
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.\-]*[a-z0-9_\-])?")
_SHORTEST = len("https://")
_CACHED = 200  # characters of a URL's beginning that may take a place in the cache
_DEFAULT_PORTS = {"http": "80", "https": "443", "ftp": "21"}


@dataclass(frozen=True, slots=True)
class Host:
    """A host: its name, what it is in a SURT, its registered domain and its set."""

    name: str
    surt: str
    registered: str | None
    set_spec: str


@dataclass(slots=True)
class Address:
    """A URL's text, its bytes where they differ, its host, and where its path begins; unchanged."""

    url: str
    raw: bytes | None
    host: Host | None
    path_at: int


def parse(raw: bytes) -> Address:
    """Return the address that the bytes of a URL are, whatever they hold."""
    url = text(raw)
    end = url.find("/", _SHORTEST)
    if 0 < end <= _CACHED and url[end + 1 : end + 2] != "/":  # as of a scheme that is repeated
        host, path_at = _authority(url[:end])
    else:
        host, path_at = _authority.__wrapped__(url)
    return Address(url, None if len(url) == len(raw) else raw, host, path_at)


@lru_cache(maxsize=1 << 14)
def _authority(url: str) -> tuple["Host | None", int]:
    """Return the host of a URL, or of its beginning before the path, and where that begins."""
    match = _URL.match(url)
    # What is longer than any host can be is not worth a place in the cache.
    netloc = match[2].rpartition("@")[2].lower() if match else ""
    host = host_of(match[1].lower(), netloc) if match and len(netloc) <= 1024 else None
    return host, match.end() if match else 0


def text(raw: bytes) -> str:
    """Return a URL for people and XML: spaces, controls, non-ASCII bytes, `<>"` become %XX."""
    if not _UNSAFE.search(raw):
        return raw.decode("ascii")
    return _UNSAFE.sub(lambda match: b"%%%02X" % match[0][0], raw).decode("ascii")


@lru_cache(maxsize=1 << 16)
def host_of(scheme: str, netloc: str) -> Host | None:
    """Return the host of a URL's authority (RFC 3986, 3.2), None if it is no host's name.

    `netloc` is lower case and without user information.
    """
    bracket = _IPV6.match(netloc)
    if bracket:
        name, port = bracket[1], netloc[bracket.end() :].lstrip(":")
        spec = setspec.join("domain", "ip", name)
        return Host(name, bracket[0] + _port(scheme, port), None, spec) if _is_port(port) else None
    name, _, port = netloc.partition(":")
    known = _ascii_name(name)
    if known is None or not _is_port(port):
        return None
    if _IPV4.fullmatch(known):
        return Host(known, known + _port(scheme, port), None, setspec.join("domain", "ip", known))
    bare = re.sub(r"^www\d*\.", "", known)
    surt = ",".join(reversed(bare.split("."))) + _port(scheme, port)
    parts = domain.divided(known)
    if parts is None:
        return Host(known, surt, None, setspec.join("domain", known))
    suffix, before = parts
    labels = [label for label in reversed(before.split(".")) if label]
    registered = f"{labels[0]}.{suffix}" if labels else None
    return Host(known, surt, registered, setspec.join("domain", suffix, *labels))


def _is_port(port: str) -> bool:
    return not port or (port.isdigit() and len(port) <= 5)


def _port(scheme: str, port: str) -> str:
    return f":{port}" if port and port != _DEFAULT_PORTS.get(scheme) else ""


def _ascii_name(name: str) -> str | None:
    if "%" in name:
        try:
            name = unquote_to_bytes(name).decode("utf-8").lower()
        except UnicodeDecodeError:
            return None
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    name = re.sub(r"\.{2,}", ".", name).strip(".")
    return name if len(name) <= 253 and _NAME.fullmatch(name) else None
