"""Chains: a URL, and where it leads in the end, each URL on the way asked for once in a run."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from urllib.parse import urljoin

from builder.http import url as urls
from builder.http.errors import NotHad
from builder.http.response import Fetched, Hop, Moved, Result

MOST = 10
"""Redirects that are followed, one behind the other."""
_LONGEST = 8000  # characters of a URL


@dataclass(slots=True)
class Once:
    """Asks for each URL once, whoever wants it; safe to use from threads.

    Who wants what another thread is asking for waits for it. That thread waits for no third one.
    """

    ask: Callable[[str], Result]
    _asked: dict[str, "Future[Result]"] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __call__(self, url: str) -> Result:
        """Return what the URL gave. Raises Deferred where it is not to be asked for now."""
        with self._lock:
            known = self._asked.get(url)
            mine: Future[Result] = Future()
            if known is None:
                self._asked[url] = mine
        if known is not None:
            return known.result()
        try:
            result = self.ask(url)
        except BaseException as error:
            with self._lock:
                del self._asked[url]
            mine.set_exception(error)
            raise
        mine.set_result(result)
        return result


def follow(url: str, ask: Callable[[str], Result]) -> Fetched:
    """Ask for a URL and for those to which it leads. Raises Deferred.

    What is wrong with the way itself is a failure of the URL that was asked for first.
    """
    hops: list[Hop] = []
    passed = {url}
    last = url
    while True:
        result = ask(last)
        if not isinstance(result, Moved):
            return Fetched(url, tuple(hops), last, result)
        try:
            found = target(last, result)
            if found in passed:
                raise NotHad("redirect-loop", f"{last} led to {found}", result.status)
            if len(hops) == MOST:
                raise NotHad("too-many-hops", f"{last} led to {found}", result.status)
        except NotHad as failure:
            return Fetched(url, tuple(hops), last, failure)
        hops.append(Hop(last, found, result.status))
        passed.add(found)
        last = found


def target(base: str, moved: Moved) -> str:
    """Return the URL to which a Location leads. Raises NotHad where that is none to be asked."""
    written = moved.location.replace(" ", "%20")
    if len(written) > _LONGEST:
        raise NotHad("bad-redirect", f"a URL of {len(written):,} characters", moved.status)
    try:
        joined = urljoin(base, written)
    except ValueError as error:
        raise NotHad("bad-redirect", moved.location, moved.status) from error
    found = urls.normalised(joined)
    if found.id is None:
        code = found.fault if found.fault in {urls.SCHEME, urls.USERINFO} else "bad-redirect"
        if ":" in joined.partition("/")[0] and not joined.lower().startswith(("http:", "https:")):
            code = urls.SCHEME  # mailto:, javascript: and their like have no //
        raise NotHad(code or "bad-redirect", f"{base} led to {moved.location}", moved.status)
    check_scheme(found.id)
    return found.id


def check_scheme(url: str) -> None:
    """Raise NotHad for a URL that is neither http nor https."""
    if not url.startswith(("http://", "https://")):
        raise NotHad(urls.SCHEME, url)
