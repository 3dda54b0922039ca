"""URLs of files in normal form, and the rule of redirects between them.

The normal form is the id of the file behind a URL. White space is removed, because templates wrap
URLs. The result of the WHATWG parser gets uniform escapes and loses its fragment. URLs that a
server could distinguish stay different. The only file that imports ada_url.

Object stores redirect to signed URLs, which open a file to every client that has them.
`strip_secrets` removes the signatures before a URL is published.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_plus, urljoin, urlsplit

import ada_url

from builder.http.errors import FetchError
from functions.url import redirects

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

PREFIXES = ("x-amz-", "x-goog-", "x-oss-", "x-cos-", "q-sign-", "temp_url_")
"""Prefixes of signing parameters of Amazon, Google, Alibaba, Tencent and OpenStack."""

SECRETS = frozenset(
    (
        "access_key",
        "access_token",
        "accesskeyid",
        "api_key",
        "api_token",
        "apikey",
        "auth",
        "auth_token",
        "authorization",
        "awsaccesskeyid",
        "client_secret",
        "credential",
        "delegation",
        "googleaccessid",
        "hmac",
        "id_token",
        "jsessionid",
        "jwt",
        "key-pair-id",
        "ossaccesskeyid",
        "password",
        "phpsessid",
        "q-ak",
        "q-header-list",
        "q-key-time",
        "q-signature",
        "q-url-param-list",
        "refresh_token",
        "secret",
        "security-token",
        "session_token",
        "sig",
        "signature",
        "token",
    )
)
"""Names of secrets, and of parameters that are useless without a secret."""

_AZURE = frozenset(
    (
        "se",
        "si",
        "sip",
        "ske",
        "skoid",
        "sks",
        "skt",
        "sktid",
        "skv",
        "sp",
        "spr",
        "sr",
        "srt",
        "ss",
        "st",
        "sv",
        "saoid",
        "scid",
        "sdd",
        "suoid",
    )
)
COMPANIONS: Mapping[str, frozenset[str]] = {
    "sig": _AZURE,
    "signature": frozenset(("expires", "policy")),
    "token": frozenset(("expires", "method", "until", "user")),
}
"""Names that belong to a signature only beside a parameter of the given name.

`sig` is of Azure, `policy` of CloudFront, `until` of Dataverse.
"""
_NAMING = frozenset(
    ("access_token", "auth", "auth_token", "delegation", "id_token", "jwt", "token")
)
"""Secrets that may be all that names a file, if nothing else in the query signs its path."""
_BESIDE = frozenset(("api_key", "api_token", "apikey", "jsessionid", "phpsessid", "session_token"))
"""Secrets of a client, which sign no path either."""
_MARK = "sheaf-file"
"""Parameter of our own, in place of such a secret: the beginning of the file's SHA-256."""
_LATER = "pending"
_MARK_DIGITS = 16
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
        found = ada_url.URL(text)
    except (ValueError, UnicodeEncodeError):
        return Url(None, BAD, spaced)
    if found.username or found.password:
        return Url(None, USERINFO, spaced)
    return Url(_escapes(found.href.partition("#")[0]), None, spaced)


def is_address(url: str) -> bool:
    """Return whether a URL can be requested as it is: http or https, ASCII, a host, no user."""
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:
        return False
    web = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
    return bool(web and has_port and url.isascii() and url.isprintable() and " " not in url)


def strip_secrets(url: str, *, marked: bool = False) -> str:
    """Return a URL without signatures and tokens in its query; the rest stays as it was sent.

    Names are compared without regard to case, and unescaped. With `marked`, a place is left for
    `mark_file` if a token was removed that may have named the file.
    """
    plain, mark, fragment = url.partition("#")
    root, _, query = plain.partition("?")
    parts = query.split("&")
    names = [_name(part) for part in parts]
    secrets = {name for name in names if _is_secret(name)}
    secrets |= _companions(secrets)
    if not secrets.intersection(names):
        return url
    kept = [part for part, name in zip(parts, names, strict=True) if name not in secrets]
    removed = secrets.intersection(names)
    if marked and removed & _NAMING and removed <= _NAMING | _BESIDE:
        kept.append(f"{_MARK}={_LATER}")
    return root + ("?" + "&".join(kept) if kept else "") + mark + fragment


def mark_file(url: str, sha256: str) -> str:
    """Complete a URL of `strip_secrets` that is `marked`, by the digest of the file behind it.

    The mark depends on the file alone. So the same file has the same URL each time, another file
    has another, and the mark tells nothing of the secret.
    """
    return url.replace(f"{_MARK}={_LATER}", f"{_MARK}={sha256[:_MARK_DIGITS]}")


def _escapes(text: str) -> str:
    # RFC 3986, 6.2.2: escapes in upper case, and none for unreserved characters.

    def write_escape(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        begun = _BEGUN.search(text, max(0, match.start() - 2), match.start())
        return character if character in _UNRESERVED and not begun else match[0].upper()

    return _ESCAPE.sub(write_escape, text)


def _name(part: str) -> str:
    return unquote_plus(part.partition("=")[0]).strip().lower()


def _is_secret(name: str) -> bool:
    return name in SECRETS or name.startswith(PREFIXES)


def _companions(secrets: Collection[str]) -> set[str]:
    return {other for name in secrets for other in COMPANIONS.get(name, ())}


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
        found = normalise(joined)
        if found.id is None:
            code = found.fault if found.fault in {SCHEME, USERINFO} else "bad-redirect"
            if ":" in joined.partition("/")[0] and not joined.lower().startswith(
                ("http:", "https:")
            ):
                code = SCHEME  # mailto:, javascript: and the like have no //
            raise FetchError(code or "bad-redirect", self._step(location), status)
        if self.exact and not is_address(joined):
            raise FetchError("bad-redirect", self._step(location), status)
        check_scheme(found.id)
        return joined if self.exact else found.id

    def _step(self, target: str) -> str:
        return f"{strip_secrets(self.last)} led to {strip_secrets(target)}"


def normal_url(url: str) -> str:
    """Return a URL in normal form. Raises FetchError if it cannot be requested."""
    found = normalise(url.strip().replace(" ", "%20"))
    if found.id is None:
        fault = found.fault if found.fault in (SCHEME, USERINFO) else None
        raise FetchError(fault or "bad-redirect", url)
    check_scheme(found.id)
    return found.id


def check_scheme(url: str) -> None:
    """Raise FetchError for a URL that is neither http nor https."""
    if not url.startswith(("http://", "https://")):
        raise FetchError(SCHEME, url)
