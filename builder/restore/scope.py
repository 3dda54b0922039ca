"""Scope of a restore: the URLs that match the user's URL arguments."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from functions.content import scope
from functions.content.scope import Range, Scope
from functions.url import surt
from functions.url.authority import text as shown


def parse(text: str) -> Scope:
    """Return the scope: a whole host, `*.host` with its subdomains, else a prefix.

    Raises functions.content.scope.NoScope.
    """
    if text.startswith("*."):
        return scope.parse(text)
    url = scope.complete_url(text.removesuffix("*"))
    parts = urlsplit(url)
    whole = not text.endswith("*") and parts.netloc and not (parts.path + parts.query)
    return scope.parse(url, "host" if whole else "prefix")


def request_url(url: str, method: str | None, body: str | None) -> str:
    """Return a URL, with the method and the body as arguments unless the method was GET."""
    raw = url.encode("utf-8", "surrogatepass")
    return shown(raw if method is None else surt.request_url(raw, method, body))


def ranges(urls: Sequence[str]) -> Sequence[Range] | None:
    """Return the ranges of SURTs of URLs; None without URLs, which matches everything."""
    if not urls:
        return None
    return [some for url in urls for some in parse(url).ranges]
