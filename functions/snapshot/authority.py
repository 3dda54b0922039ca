"""The authority of a URL (RFC 3986, section 3.2): its host, as people and as a SURT write it."""

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_to_bytes

_UNSAFE = re.compile(rb"[^!#-;=?-~]")
_URL = re.compile(r"(?:(https?|ftps?|gopher|rtsp|mms)://)+([^/?#\\]*)", re.IGNORECASE)
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}")
_IPV6 = re.compile(r"\[([0-9a-f:.]{2,45})\]")
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.\-]*[a-z0-9_\-])?")
_LONGEST = 1024
_DEFAULT_PORTS = {"http": "80", "https": "443", "ftp": "21"}


@dataclass(frozen=True, slots=True)
class Authority:
    """A host: its name, what it is in a SURT, and whether it is an IP address."""

    name: str
    surt: str
    is_ip: bool = False


def text(raw: bytes) -> str:
    """Return a URL for people and XML: spaces, controls, non-ASCII bytes, `<>"` become %XX."""
    if not _UNSAFE.search(raw):
        return raw.decode("ascii")
    return _UNSAFE.sub(lambda match: b"%%%02X" % match[0][0], raw).decode("ascii")


def split(url: str) -> tuple[str, str, int] | None:
    """Return scheme and authority of a URL, in lower case, and where its path begins.

    The authority is without user information. None for a URL that has none of these, and for one
    that is longer than any can be.
    """
    match = _URL.match(url)
    netloc = match[2].rpartition("@")[2].lower() if match else ""
    if match is None or len(netloc) > _LONGEST:
        return None
    return match[1].lower(), netloc, match.end()


@lru_cache(maxsize=1 << 12)
def parse(scheme: str, netloc: str) -> Authority | None:
    """Return what `split` gave as an authority, None if it is no host's name."""
    bracket = _IPV6.match(netloc)
    if bracket:
        name, port = bracket[1], netloc[bracket.end() :].lstrip(":")
        surt = bracket[0] + _port(scheme, port)
        return Authority(name, surt, is_ip=True) if _is_port(port) else None
    name, _, port = netloc.partition(":")
    known = _ascii_name(name)
    if known is None or not _is_port(port):
        return None
    if _IPV4.fullmatch(known):
        return Authority(known, known + _port(scheme, port), is_ip=True)
    bare = re.sub(r"^www\d*\.", "", known)
    return Authority(known, ",".join(reversed(bare.split("."))) + _port(scheme, port))


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
