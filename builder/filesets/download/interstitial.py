"""Interstitial pages: robot challenges and login forms in place of a file or document."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

LOOKED = 1 << 16
"""Bytes of a page that are searched."""
BOT, LOGIN = "platform-bot-wall", "platform-login-wall"

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_MARKUP = re.compile(rb"<(!doctype html|html|head|body|script|title|meta|!--)", re.IGNORECASE)
_PAGE = re.compile(rb"<(!doctype html|html[\s>])", re.IGNORECASE)
_PASSWORD = re.compile(rb"<input[^<>]{0,1024}type\s*=\s*[\"']?password", re.IGNORECASE)
_SIGN_IN = re.compile(r"/(log-?in|sign-?in|sso|saml2?|cas|oauth2?|shibboleth)\b", re.IGNORECASE)
_BOTS = re.compile(
    rb"challenges\.cloudflare\.com|/cdn-cgi/challenge-platform/|cf-browser-verification"
    rb"|<title>just a moment|attention required! \| cloudflare|anubis_challenge|/\.within\.website/"
    rb"|making sure you.{1,6}re not a bot|g-recaptcha|h-captcha|hcaptcha\.com|geo\.captcha-delivery"
    rb"|_incapsula_resource|awswafcookiedomainlist|awswaf\.com|px-captcha|ddos-guard"
    rb"|pardon our interruption|are you a robot|verify(ing)? (that )?you are (a )?human",
    re.IGNORECASE,
)
_HEADERS = {"cf-mitigated": "challenge", "x-amzn-waf-action": "c"}  # challenge, captcha


def media_type(headers: Mapping[str, str]) -> str | None:
    """Return the media type without parameters, in lower case; None if there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() or None


def is_html(kind: str | None) -> bool:
    """Return whether a media type is that of an HTML page."""
    return kind in _HTML


def is_page(kind: str | None, first: bytes) -> bool:
    """Return whether a body is an HTML page, by media type and first bytes."""
    text = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return is_html(kind)
    if text[:5] == b"<?xml":
        return is_html(kind) or bool(re.search(rb"<html[\s>]", text[:1024], re.IGNORECASE))
    return bool((_MARKUP if is_html(kind) else _PAGE).match(text))


def blocks_robots(headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether a response is a challenge against robots."""
    if any(headers.get(name, "").startswith(value) for name, value in _HEADERS.items()):
        return True
    return bool(_BOTS.search(body[:LOOKED]))


def wants_login(body: bytes) -> bool:
    """Return whether a page asks for a password."""
    return bool(_PASSWORD.search(body[:LOOKED]))


def is_login(url: str, body: bytes) -> bool:
    """Return whether a page is a login page, and not one that merely offers a login."""
    return bool(_SIGN_IN.search(urlsplit(url).path)) and wants_login(body)
