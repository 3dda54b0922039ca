"""The response to a request: status, header fields (RFC 9110, section 5) and body."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from builder.http.errors import FetchError

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SHORT = 1 << 12


@dataclass(frozen=True, slots=True)
class Response:
    """The head of a response and its body as it arrives, without its transfer coding.

    `headers` has the first field of each name, with names in lower case. `raw` has all fields, in
    the order and spelling of the server. Values are decoded as UTF-8, else as latin-1. `hops` are
    the URLs that led to `url` by redirects, in order.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: Iterator[bytes]
    reason: str = ""
    raw: tuple[tuple[str, str], ...] = ()
    hops: tuple[str, ...] = ()

    @property
    def location(self) -> str | None:
        """The target of a redirect as the server wrote it; None for other responses."""
        found = self.headers.get("location") if self.status in REDIRECTS else None
        return found or None

    def drain(self) -> None:
        """Read a body to its end if it is short, so that its connection can be reused."""
        length = self.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length) <= _SHORT:
            with suppress(FetchError):
                for _ in self.body:
                    pass


def text(value: bytes) -> str:
    """Return the value of a field without surrounding blanks."""
    try:
        found = value.decode()
    except UnicodeDecodeError:
        found = value.decode("latin-1")
    return found.strip()


def by_name(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the first field of each name, names in lower case."""
    found: dict[str, str] = {}
    for name, value in fields:
        found.setdefault(name.lower(), value)
    return found
