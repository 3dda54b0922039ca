"""The authority of a URL (RFC 3986, section 3.2), and the endpoint of a server."""

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_to_bytes

_UNSAFE = re.compile(rb"[^!#-;=?-~]")
_URL = re.compile(r"(?:(https?|ftps?|gopher|rtsp|mms):/{1,2})+([^/?#\\]*)", re.IGNORECASE)
_BARE = re.compile(r"(/*)([^/?#\\]*)")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?![0-9]+(?:[/?#]|\Z))")
"""The scheme of a URL; digits behind a colon are a port."""
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}")
_IPV6 = re.compile(r"\[([0-9a-f:.]{2,45})\]")
_NAME = re.compile(r"[a-z0-9_\-](?:[a-z0-9_.\-]*[a-z0-9_\-])?")
_LONGEST = 1024
_OCTAL = re.compile(r"[0-7]{1,20}(?:\.[0-7]{1,20}){0,3}")
_DECIMAL = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20}){0,3}")
_DEFAULT_PORTS = {"http": "80", "https": "443", "ftp": "21"}
ENDPOINT_EXPECTED = "an http or https URL of a server"

_ENDPOINT = re.compile(
    r"https?://([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?/?"
)
_NUMBER = re.compile(
    r"[0-9]+|0[Xx][0-9A-Fa-f]*"
)  # a host that ends like this is read as an IPv4 address


@dataclass(frozen=True, slots=True)
class Authority:
    """A host: its name, its form in a SURT, and whether it is an IP address."""

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

    User information is removed from the authority. A URL without a scheme is one of http. Returns
    None for a URL without authority, and for an authority that is too long to be valid.
    """
    match = _URL.match(url) or (None if SCHEME.match(url) else _BARE.match(url))
    netloc = match[2].rpartition("@")[2].lower() if match else ""
    if match is None or len(netloc) > _LONGEST:
        return None
    return match[1].strip("/").lower() or "http", netloc, match.end()


@lru_cache(maxsize=1 << 12)
def parse(scheme: str, netloc: str) -> Authority | None:
    """Return the authority parsed from the result of `split`, None if it is not a valid host."""
    bracket = _IPV6.match(netloc)
    if bracket:
        name, port = bracket[1], netloc[bracket.end() :].lstrip(":")
        surt = backwards(name) + _port(scheme, port)
        return Authority(name, surt, is_ip=True) if _is_port(port) else None
    name, _, port = netloc.partition(":")
    host = _ascii_name(name)
    if host is None or not _is_port(port):
        return None
    bare = re.sub(r"^www\d*\.", "", _ipv4(host) or host)
    surt = backwards(bare) + _port(scheme, port)
    return Authority(host, surt, is_ip=_IPV4.fullmatch(host) is not None)


def _ipv4(host: str) -> str | None:
    """Return the address given by one to four numbers, as inet_aton(3) reads them; else None.

    A number with a leading zero is octal, but a number alone is decimal. If the first number is
    octal, all must be valid octal, as in the package `surt`.
    """
    if not (_OCTAL if host.startswith("0") else _DECIMAL).fullmatch(host):
        return None
    parts = host.split(".")
    if len(parts) == 1:
        value = int(host) & 0xFFFFFFFF
    else:
        try:
            *high, low = (int(part, 8 if part.startswith("0") else 10) for part in parts)
        except ValueError:  # 8 and 9 are not octal digits
            return None
        room = 1 << 8 * (4 - len(high))
        if low >= room or any(number > 255 for number in high):
            return None
        value = sum(number << 24 - 8 * at for at, number in enumerate(high)) + low
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))


def backwards(host: str) -> str:
    """Return a host with its labels in reverse order; IPv4 addresses are reversed like names."""
    return ",".join(reversed(host.split(".")))


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


def is_endpoint(text: str) -> bool:
    """Return whether `text` is the URL of a server, without user, path and query."""
    match = _ENDPOINT.fullmatch(text)
    if match is None or not 0 < int(match[2] or 80) < 65536:
        return False
    host = match[1]
    try:
        if host.startswith("["):
            ipaddress.IPv6Address(host[1:-1])
        elif _NUMBER.fullmatch(host.rpartition(".")[2]):
            ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True
