"""Chains of redirects from a URL to its file; a batch requests each URL on the way once."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from builder.gather.fetch_file import Final, Moved, Result
from builder.http.errors import FetchError
from builder.http.redirects import Redirects


@dataclass(frozen=True, slots=True)
class Hop:
    """One URL led to another; both are in normal form."""

    origin: str
    target: str
    status: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of fetching a URL: the hops on the way, the last URL, and the last result."""

    asked: str
    hops: tuple[Hop, ...]
    last: str
    final: Final


@dataclass(slots=True)
class Once:
    """Requests each URL once. Safe to use from threads.

    A thread may wait for a URL that another thread is requesting. A requesting thread waits for no
    other URL, so there is no deadlock.
    """

    ask: Callable[[str], Result]
    _asked: dict[str, "Future[Result]"] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __call__(self, url: str) -> Result:
        """Return the result of the URL. Raises Deferred if its host must not be asked now."""
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
    """Request a URL and follow its redirects. Raises Deferred.

    A fault of a redirect is a failure of the first URL.
    """
    hops: list[Hop] = []
    way = Redirects(url)
    while True:
        origin = way.last
        result = ask(origin)
        if not isinstance(result, Moved):
            return Fetched(url, tuple(hops), origin, result)
        try:
            target = way.follow(result.location, result.status)
        except FetchError as failure:
            return Fetched(url, tuple(hops), origin, failure.copy())
        hops.append(Hop(origin, target, result.status))
