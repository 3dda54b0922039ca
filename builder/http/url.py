"""URLs of files in normal form, and the rule of redirects between them.

The normal form is the id of the file behind a URL. White space is removed, because templates wrap
URLs. The result of the WHATWG parser gets uniform escapes and loses its fragment. URLs that a
server could distinguish stay different. The only file that imports ada_url.

builder.http.secrets says what of a URL may be stored.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

import ada_url

from builder.http.errors import FetchError
from builder.http.secrets import strip_secrets
from functions.snapshot import redirects

BAD, USERINFO, SCHEME = "bad-file-url", "userinfo", "unsupported-scheme"
"""Faults of URLs that are not the id of a file."""

NORMAL = re.compile(
    r"https?://(?:[a-z0-9]+(?:-[a-z0-9]+)*\.)+[a-z]+"
    r"(?:/(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*)?)"
    r"(?:\?[A-Za-z0-9._~=&+-]+)?"
)
"""The form of most URLs in normal form, which need no parser."""

_PREFIX = re.compile(r"URL:", re.IGNORECASE)
_FETCHED = re.compile(r"(https?|ftp)://[^/?#]", re.IGNORECASE)
_OTHER = re.compile(r"(?!https?:|ftp:)[a-z][a-z0-9+.-]*://", re.IGNORECASE)
# An escape stays if it follows the start of another one: its character would complete that.
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_BEGUN = re.compile(r"%[0-9A-Fa-f]?\Z")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

MOST_REDIRECTS = redirects.MOST
"""Most redirects in a row that are followed."""
_LONGEST_URL = 8000  # characters of a URL


@dataclass(frozen=True, slots=True)
class Url:
    """A URL's `id`, or its `fault` if `id` is None.

    `spaced`: there was white space within a line of it.
    """

    id: str | None
    fault: str | None = None
    spaced: bool = False


def normalise(raw: str) -> Url:
    """Return the id of the file behind a URL as it was written. Idempotent."""
    if NORMAL.fullmatch(raw):
        return Url(raw)
    text = raw.strip()
    if _PREFIX.match(text):
        text = text[4:].strip()
    spaced = any(len(line.split()) > 1 for line in text.splitlines())
    text = "".join(text.split())
    if not _FETCHED.match(text):
        return Url(None, SCHEME if _OTHER.match(text) else BAD, spaced)
    try:
        parsed = ada_url.URL(text)
    except (ValueError, UnicodeEncodeError):
        return Url(None, BAD, spaced)
    if parsed.username or parsed.password:
        return Url(None, USERINFO, spaced)
    return Url(_escapes(parsed.href.partition("#")[0]), None, spaced)


def is_address(url: str) -> bool:
    """Return whether a URL can be requested as it is: http or https, ASCII, a host, no user."""
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:
        return False
    web = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
    return bool(web and has_port and url.isascii() and url.isprintable() and " " not in url)


def _escapes(text: str) -> str:
    # RFC 3986, 6.2.2: escapes in upper case, and none for unreserved characters.

    def write_escape(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        begun = _BEGUN.search(text, max(0, match.start() - 2), match.start())
        return character if character in _UNRESERVED and not begun else match[0].upper()

    return _ESCAPE.sub(write_escape, text)


@dataclass(slots=True)
class Redirects:
    """The redirects of one request so far. `last` is the URL to request now.

    `exact` keeps targets as servers write them; otherwise they get the normal form of a file's id.
    """

    last: str
    exact: bool = False
    hops: list[str] = field(default_factory=list)

    def follow(self, location: str, status: int, *, again: bool = False) -> str:
        """Move to the target of a redirect and return its URL. Raises FetchError.

        With `again`, the response may differ the next time, so that a repeated URL is no loop.
        """
        target = self._target(location, status)
        if target in (self.last, *self.hops) and not again:
            raise FetchError("redirect-loop", self._step(target), status)
        if len(self.hops) == MOST_REDIRECTS:
            raise FetchError("too-many-hops", self._step(target), status)
        self.hops.append(self.last)
        self.last = target
        return target

    def _target(self, location: str, status: int) -> str:
        written = location if self.exact else location.replace(" ", "%20")
        if len(written) > _LONGEST_URL:
            raise FetchError("bad-redirect", f"a URL of {len(written):,} characters", status)
        try:
            joined = urljoin(self.last, written).partition("#")[0]
        except ValueError as error:
            raise FetchError("bad-redirect", location, status) from error
        normal = normalise(joined)
        if normal.id is None:
            code = normal.fault if normal.fault in {SCHEME, USERINFO} else "bad-redirect"
            if ":" in joined.partition("/")[0] and not joined.lower().startswith(
                ("http:", "https:")
            ):
                code = SCHEME  # mailto:, javascript: and the like have no //
            raise FetchError(code or "bad-redirect", self._step(location), status)
        if self.exact and not is_address(joined):
            raise FetchError("bad-redirect", self._step(location), status)
        check_scheme(normal.id)
        return joined if self.exact else normal.id

    def _step(self, target: str) -> str:
        return f"{strip_secrets(self.last)} led to {strip_secrets(target)}"


def normal_url(url: str) -> str:
    """Return a URL in normal form. Raises FetchError if it cannot be requested."""
    normal = normalise(url.strip().replace(" ", "%20"))
    if normal.id is None:
        fault = normal.fault if normal.fault in (SCHEME, USERINFO) else None
        raise FetchError(fault or "bad-redirect", url)
    check_scheme(normal.id)
    return normal.id


def check_scheme(url: str) -> None:
    """Raise FetchError for a URL that is neither http nor https."""
    if not url.startswith(("http://", "https://")):
        raise FetchError(SCHEME, url)


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
