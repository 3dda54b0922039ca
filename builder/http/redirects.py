"""The rule of redirects: where each may lead, and how many may follow each other."""

from dataclasses import dataclass, field
from urllib.parse import urljoin

from builder.http import url as urls
from builder.http.errors import FetchError

MOST = 10
"""Most redirects in a row that are followed."""
_LONGEST = 8000  # characters of a URL


@dataclass(slots=True)
class Redirects:
    """The redirects of one request so far. `last` is the URL to request now.

    `exact` keeps targets as servers write them; otherwise they get the normal form of a file's id.
    """

    last: str
    exact: bool = False
    hops: list[str] = field(default_factory=list)

    def follow(self, location: str, status: int) -> str:
        """Move to the target of a redirect and return its URL. Raises FetchError."""
        found = self._target(location, status)
        if found == self.last or found in self.hops:
            raise FetchError("redirect-loop", self._step(found), status)
        if len(self.hops) == MOST:
            raise FetchError("too-many-hops", self._step(found), status)
        self.hops.append(self.last)
        self.last = found
        return found

    def _target(self, location: str, status: int) -> str:
        written = location if self.exact else location.replace(" ", "%20")
        if len(written) > _LONGEST:
            raise FetchError("bad-redirect", f"a URL of {len(written):,} characters", status)
        try:
            joined = urljoin(self.last, written).partition("#")[0]
        except ValueError as error:
            raise FetchError("bad-redirect", location, status) from error
        found = urls.normalise(joined)
        if found.id is None:
            code = found.fault if found.fault in {urls.SCHEME, urls.USERINFO} else "bad-redirect"
            if ":" in joined.partition("/")[0] and not joined.lower().startswith(
                ("http:", "https:")
            ):
                code = urls.SCHEME  # mailto:, javascript: and the like have no //
            raise FetchError(code or "bad-redirect", self._step(location), status)
        if self.exact and not urls.is_address(joined):
            raise FetchError("bad-redirect", self._step(location), status)
        check_scheme(found.id)
        return joined if self.exact else found.id

    def _step(self, target: str) -> str:
        return f"{urls.strip_secrets(self.last)} led to {urls.strip_secrets(target)}"


def normal_url(url: str) -> str:
    """Return a URL in normal form. Raises FetchError if it cannot be requested."""
    found = urls.normalise(url.strip().replace(" ", "%20"))
    if found.id is None:
        fault = found.fault if found.fault in (urls.SCHEME, urls.USERINFO) else None
        raise FetchError(fault or "bad-redirect", url)
    check_scheme(found.id)
    return found.id


def check_scheme(url: str) -> None:
    """Raise FetchError for a URL that is neither http nor https."""
    if not url.startswith(("http://", "https://")):
        raise FetchError(urls.SCHEME, url)
