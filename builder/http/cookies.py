"""Cookies of one run (RFC 6265), in memory alone, for sessions that resumption tokens depend on.

Each origin has a jar of its own, so no cookie reaches another one, whatever domain it names.
"""

from dataclasses import dataclass, field
from email.message import Message
from http.cookiejar import CookieJar
from types import SimpleNamespace
from typing import Any
from urllib.request import Request

from builder.http.responses import Fields
from builder.http.url import origin_of

_LONGEST = 4096
"""Characters of a Set-Cookie; the limits are those that browsers have (RFC 6265, section 6.1)."""
_MOST = 50


@dataclass(frozen=True, slots=True)
class Cookies:
    """Stores cookies and sends them back. Safe to use from threads."""

    _jars: dict[str, CookieJar] = field(default_factory=dict, repr=False)

    def header(self, url: str) -> dict[str, str]:
        """Return the header field for a request of `url`, or nothing."""
        jar = self._jars.get(origin_of(url))
        request = Request(url)
        if jar is not None:
            jar.add_cookie_header(request)
        return dict(request.header_items())

    def store(self, url: str, fields: Fields) -> bool:
        """Take the cookies of a response. Return whether the next request of `url` differs."""
        message = Message()
        for name, value in fields:
            if name.lower() == "set-cookie" and len(value) <= _LONGEST and value.isascii():
                message.add_header(name, value)
        if not message:
            return False
        before = self.header(url)
        jar = self._jars.setdefault(origin_of(url), CookieJar())
        response: Any = SimpleNamespace(info=lambda: message)
        jar.extract_cookies(response, Request(url))
        if len(jar) > _MOST:  # of a server that names each page, not the session
            jar.clear()
        return self.header(url) != before
