"""URLs of files in normal form, which is the id of the file behind them.

White space is removed, because templates wrap URLs. The result of the WHATWG parser gets uniform
escapes and loses its fragment. URLs that a server could distinguish stay different.

Object stores redirect to signed URLs, which open a file to every client that has them.
`strip_secrets` removes the signatures before a URL is published. The only file that imports
ada_url.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import unquote_plus, urlsplit

import ada_url

BAD, USERINFO, SCHEME = "bad-file-url", "userinfo", "unsupported-scheme"
"""Faults of URLs that are not the id of a file."""

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
        "access_key", "access_token", "accesskeyid", "api_key", "api_token", "apikey", "auth",
        "auth_token", "authorization", "awsaccesskeyid", "client_secret", "credential",
        "googleaccessid", "hmac", "id_token", "jsessionid", "jwt", "key-pair-id", "ossaccesskeyid",
        "password", "phpsessid", "q-ak", "q-header-list", "q-key-time", "q-signature",
        "q-url-param-list", "refresh_token", "secret", "security-token", "session_token", "sig",
        "signature", "token",
    )
)  # fmt: skip
"""Names of secrets, and of parameters that are useless without a secret."""

_AZURE = frozenset(
    (
        "se", "si", "sip", "ske", "skoid", "sks", "skt", "sktid", "skv", "sp", "spr", "sr", "srt",
        "ss", "st", "sv", "saoid", "scid", "sdd", "suoid",
    )
)  # fmt: skip
COMPANIONS: Mapping[str, frozenset[str]] = {
    "sig": _AZURE,
    "signature": frozenset(("expires", "policy")),
    "token": frozenset(("expires", "method", "until", "user")),
}
"""Names that belong to a signature only beside a parameter of the given name.

`sig` is of Azure, `policy` of CloudFront, `until` of Dataverse.
"""


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


def strip_secrets(url: str) -> str:
    """Return a URL without signatures and tokens in its query; the rest stays as it was sent.

    Names are compared without regard to case, and unescaped.
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
    return root + ("?" + "&".join(kept) if kept else "") + mark + fragment


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
