"""Terms of a search: its SURT ranges, its filters, and the key where it continues.

As on pywb's and the Internet Archive's servers, a host covers itself with and without `www`, by
http and https. `domain` also covers all hosts below it, by the name as given.

A filter is `[!][=~]field:value`. `=` compares the whole value, `~` is a regular expression that
matches anywhere, and `!` negates. Without `=` or `~`, the field's name decides. A pywb name
searches for a part. An Internet Archive name (ALIASES) takes an expression that matches the whole
value. Expressions are RE2's, so their time is linear in the length of the text.

A resume key is a checksum and a place in the order of all captures, as base64url. The checksum
covers the namespace and the store's id, because a place is valid in one store only. It detects
errors, not forgery. So every field is also validated. Keys do not expire.
"""

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from functions.content.capture_row import (
    ALIASES,
    LINE_FIELDS,
    CaptureRow,
    field_value,
    redirect_target,
)
from functions.content.protocols import BytePlace
from functions.snapshot import authority, schema, surt
from functions.snapshot.errors import SheafError

_ESCAPED = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*%3[Aa]")
Range = tuple[str, str]
"""SURTs from the first one up to but not including the second."""

LONGEST_URL = 8192
"""Maximum length of a requested URL in characters."""

_SLASHES = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):/+(?=[^/])")
_ANY_HOST, _ANY_PATH = "*.", "*"
LONGEST_FILTER = 500
"""Longest filter in characters."""

Matching = Callable[[str, Sequence[str], bool], Sequence[bool]]
"""Returns for each text whether an expression matches, wholly (True) or anywhere."""
LONGEST = 1024
"""Maximum length of a key in characters."""

MARKS = 4
"""Maximum number of collapse hashes (16 digits) in a key: one for each collapsed field."""

_END = "\x7f"
"""Behind all SURTs."""
_CHECK_BYTES = 4
_HIGHEST = 2**63 - 1
_FIELDS = re.compile(
    rf"1:([0-9]{{1,14}}):([0-9]{{1,19}}):((?:[0-9a-f]{{16}}){{0,{MARKS}}}):([!-~]{{0,"
    rf"{schema.SURT_LONGEST}}})"
)


class NoScope(SheafError):
    """The URL or the kind of match is invalid; the text is a one-line reason."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is searched: the completed URL, the kind of match, and the ranges, ascending."""

    url: str
    match: str
    ranges: Sequence[Range]


def parse_scope(url: str, match: str = "") -> Scope:
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


def unescape_path(url: str) -> str:
    """Return a URL as it was before a client escaped it for a path: its scheme tells."""
    return unquote(url) if _ESCAPED.match(url) else url


def complete_url(url: str) -> str:
    """Return a URL with its scheme and both slashes. Raises NoScope if it is empty or too long."""
    url = url.strip()
    if not url or len(url) > LONGEST_URL:
        raise NoScope(f"url has {len(url)} characters, expected 1 to {LONGEST_URL}")
    if not authority.SCHEME.match(url):
        return f"http://{url.lstrip('/')}"
    # Gateways and browsers reduce two slashes within a path to one.
    match = _SLASHES.match(url)
    if match and match[1].lower() in ("http", "https", "ftp"):
        return f"{match[1]}://{url[match.end() :]}"
    return url


def exact_range(key: str) -> Range:
    """Return the range of one SURT; SURTs contain no character below `!`."""
    return key, key + " "


def _prefix(url: str, key: str) -> Sequence[Range]:
    """Return the ranges of a prefix, including a final slash, which SURTs drop."""
    if url.endswith("?") and "?" not in key:
        return (_below(f"{key}?"),)
    if url.endswith("/") and not key.endswith("/"):
        return exact_range(key), _below(f"{key}/"), _below(f"{key}?")
    return (_below(key),)


def _domain(url: str, key: str) -> Sequence[Range]:
    """Return the ranges of a host, of the hosts below it, and of its other ports."""
    host = _host_of(url, key)
    alone = ":" in host or host[:1].isdigit()  # with a port, or an IP address: no hosts below it
    return [_below(host + end) for end in (")" if alone else "),:")]


def _host_of(url: str, key: str) -> str:
    host, bracket, _ = key.partition(")")
    if not bracket or ":/" in host:
        raise NoScope("url has no host, expected one")
    return host


def _below(key: str) -> Range:
    """Return the range of all SURTs that begin with `key`."""
    return key, key[:-1] + chr(ord(key[-1]) + 1)


MATCHES: Mapping[str, Callable[[str, str], Sequence[Range]]] = {
    "exact": lambda url, key: (exact_range(key),),
    "prefix": _prefix,
    "host": lambda url, key: (_below(f"{_host_of(url, key)})"),),
    "domain": _domain,
    "range": lambda url, key: ((key, _END),),
}
"""Kinds of match by their names in matchType."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on a field; `how` is `=`, `~`, "" for a part, or `:` for a whole expression."""

    field: str
    how: str
    text: str
    is_negated: bool

    def matches(self, captures: Sequence[CaptureRow], matching: Matching) -> Sequence[bool]:
        """Return for each capture whether it passes.

        Raises QueryError for an invalid expression.
        """
        values = [field_value(capture, self.field) for capture in captures]
        if self.how in ("~", ":"):
            results = matching(self.text, values, self.how == ":")
        else:
            is_whole = self.how == "="
            results = [text == self.text if is_whole else self.text in text for text in values]
        return [is_match is not self.is_negated for is_match in results]


def parse_filter(text: str, *, whole: bool = False) -> Filter:
    """Parse a filter. Raises ValueError, which says what was expected.

    With `whole`, a value without `=` or `~` is an expression for the whole value, as on the
    Internet Archive's server. Otherwise this holds for its field names only; other fields search
    for a part.
    """
    rest = text.removeprefix("!")
    how = rest[:1] if rest[:1] in ("=", "~") else ""
    field, colon, wanted = rest[len(how) :].partition(":")
    if len(text) > LONGEST_FILTER or not colon or not is_field(field):
        raise ValueError(
            f"[!][=~]field:value of up to {LONGEST_FILTER} characters, by a known field"
        )
    return Filter(field, how or (":" if whole or field in ALIASES else ""), wanted, rest != text)


def parse_loose_filter(text: str) -> Filter:
    """Parse a filter of OutbackCDX's, `[~][!]field:value`. Raises ValueError (see parse_filter).

    The value is an expression for the whole value, or with `~` a part of it.
    """
    part = text.startswith("~")
    condition = parse_filter(text.removeprefix("~"), whole=True)
    if condition.how in ("=", "~"):
        raise ValueError("[~][!]field:value")
    return replace(condition, how="") if part else condition


class NoSelfRedirect:
    """The condition that a capture is no redirect to its own SURT, as from http to https."""

    def matches(self, captures: Sequence[CaptureRow], matching: Matching) -> Sequence[bool]:
        """Return for each capture whether it passes."""
        targets = [redirect_target(capture) for capture in captures]
        keys = [target and surt.of(target.encode("utf-8", "surrogateescape")) for target in targets]
        return [not key or key != c.surt for key, c in zip(keys, captures, strict=True)]


def is_field(name: str) -> bool:
    """Return whether a field has this name or alias."""
    return name in LINE_FIELDS or name in ALIASES


@dataclass(frozen=True, slots=True)
class Collapse:
    """Keeps the first of adjacent captures with the same value, or the same start of it."""

    field: str
    length: int | None = None

    def mark(self, capture: CaptureRow) -> str:
        """Return a hash of the value, equal for captures that collapse: 16 hexadecimal digits."""
        text = field_value(capture, self.field)[: self.length]
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def parse_collapse(text: str) -> Collapse:
    """Parse `field` or `field:length`. Raises ValueError, which says what was expected."""
    field, colon, length = text.partition(":")
    is_number = length.isascii() and length.isdecimal() and len(length) <= 4 and int(length) > 0
    if not is_field(field) or (colon and not is_number):
        raise ValueError("field or field:length, by a known field")
    return Collapse(field, int(length) if colon else None)


def apply_filters(
    captures: Sequence[CaptureRow], filters: Sequence[Filter | NoSelfRedirect], matching: Matching
) -> Sequence[CaptureRow]:
    """Return the captures that pass all filters."""
    for condition in filters:
        if captures:
            passed = condition.matches(captures, matching)
            captures = [c for c, is_in in zip(captures, passed, strict=True) if is_in]
    return captures


def cut_surt(surt: str) -> str:
    """Return the part of a SURT that the order of captures uses."""
    return surt[: schema.SURT_LONGEST]


@dataclass(frozen=True, slots=True)
class ResumeKey:
    """Where a search continues: behind `place`. `mark` is the collapse hashes of the last line."""

    place: BytePlace
    mark: str = ""

    def to_text(self, namespace: str, store: str = "") -> str:
        """Return the key as text for that namespace and that store's id."""
        at = self.place
        data = f"1:{at.stamp}:{at.position}:{self.mark}:{at.surt}".encode("ascii")
        whole = _check(data, namespace, store) + data
        return base64.urlsafe_b64encode(whole).rstrip(b"=").decode("ascii")

    @staticmethod
    def from_text(text: str, namespace: str, store: str = "") -> "ResumeKey | None":
        """Parse the output of `to_text`; None for anything else."""
        if not text.isascii() or len(text) > LONGEST:
            return None
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        check, data = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
        match = _FIELDS.fullmatch(data.decode("latin-1"))
        if match is None or int(match[2]) > _HIGHEST:
            return None
        if check != _check(data, namespace, store):
            return None
        key = ResumeKey(BytePlace(match[4], int(match[1]), int(match[2])), match[3])
        # Each key has only one valid text, though base64 has spare bits and numbers could have
        # zeros.
        return key if key.to_text(namespace, store) == text else None


def _check(data: bytes, namespace: str, store: str) -> bytes:
    issuer = f"{namespace} {store}"
    return zlib.crc32(data, zlib.crc32(issuer.encode())).to_bytes(_CHECK_BYTES, "big")
