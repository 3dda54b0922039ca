"""Signatures: what a URL's query shows that lets whoever reads it in. It is not published.

Object stores are led to by URLs that are signed for a while: the signature is nobody else's, and
the next time it is another one, so that it tells nothing of where a file was.
"""

from collections.abc import Collection, Mapping
from urllib.parse import unquote_plus

PREFIXES = ("x-amz-", "x-goog-", "x-oss-", "x-cos-", "q-sign-", "temp_url_")
"""How names begin that stores have for signing: of Amazon, Google, Alibaba, Tencent, OpenStack."""

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
"""Names that are secrets by themselves, or nothing without one."""

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
"""Names that are part of a signature where there is one of that name, and else mean other things:
`sig` is of Azure, `policy` of CloudFront, `until` of Dataverse."""


def unsigned(url: str) -> str:
    """Return a URL without signatures and tokens in its query; all else stays as it was sent.

    Names are compared without regard to case, and with their escapes read.
    """
    plain, mark, fragment = url.partition("#")
    root, _, query = plain.partition("?")
    parts = query.split("&")
    names = [_name(part) for part in parts]
    taken = {name for name in names if _is_secret(name)}
    taken |= _companions(taken)
    if not taken.intersection(names):
        return url
    kept = [part for part, name in zip(parts, names, strict=True) if name not in taken]
    return root + ("?" + "&".join(kept) if kept else "") + mark + fragment


def _name(part: str) -> str:
    return unquote_plus(part.partition("=")[0]).strip().lower()


def _is_secret(name: str) -> bool:
    return name in SECRETS or name.startswith(PREFIXES)


def _companions(taken: Collection[str]) -> set[str]:
    return {other for name in taken for other in COMPANIONS.get(name, ())}
