"""The links of an HTML page."""

import re
from html.parser import HTMLParser
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

_CHARSET = re.compile(rb"""charset\s*=\s*["']?([A-Za-z0-9_.:-]+)""")
_SAFE = "/%:@!$&'()*+,;=~"


def links(content: bytes, base: str, charset: str | None) -> list[str]:
    """Return the URLs that a page at `base` refers to by href and src, in the page's order.

    `charset` is that of the HTTP header; without it the page's own meta counts. Only http URLs are
    returned, each in one canonical form and without a fragment.
    """
    parser = _Links()
    parser.feed(_text(content, charset))
    parser.close()
    found = (canonical(link, base) for link in parser.found)
    return list(dict.fromkeys(url for url in found if url is not None))


def canonical(link: str, base: str = "") -> str | None:
    """Return `link` as an absolute http URL of ASCII characters, or None if it is not one."""
    try:
        parts = urlsplit(urljoin(base, link.strip()))
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme != "http" or not host:
        return None
    netloc = host if port in (None, 80) else f"{host}:{port}"
    path = quote(parts.path or "/", safe=_SAFE)
    return urlunsplit(("http", netloc, path, quote(parts.query, safe=_SAFE + "?"), ""))


def _text(content: bytes, charset: str | None) -> str:
    if charset is None:
        meta = _CHARSET.search(content[:1024])
        charset = meta[1].decode("ascii") if meta else "utf-8"
    try:
        return content.decode(charset, "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the values of href and src."""
        self.found += [value for name, value in attrs if name in ("href", "src") and value]
