"""Recorded redirects of files at URLs, from the tables of a snapshot."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from functions.snapshot import redirects
from functions.snapshot.manifest import Manifest
from functions.store.catalog import Catalogue
from functions.store.files import FILE, Files

_HOP = (
    f"SELECT tist, target FROM {FILE} WHERE origin = $url AND tist <= $at "
    "AND target_key IS NOT NULL ORDER BY tist DESC, target LIMIT 1"
)
_SIGHTS = {
    "obi": f"SELECT unnest([noted, seen]) FROM {FILE} WHERE id = $id AND kind = 'fobi'",
    "version": f"SELECT tist FROM {FILE} WHERE id = $id AND kind = 'fobi'",
}
"""The times at which a URL had bytes of its own, by table."""
_MOST = 16
"""Maximum number of URLs that lead to one, and of templates that name these."""
_ORIGINS = (
    f"SELECT DISTINCT origin FROM {FILE} WHERE list_contains($urls, target) "
    f"ORDER BY origin LIMIT {_MOST}"
)
_NAMED = (
    f"SELECT DISTINCT handle FROM {FILE} WHERE list_contains($ids, id) "
    f"ORDER BY handle LIMIT {_MOST}"
)
_FOREVER = 1 << 40  # seconds


class RedirectTables:
    """Follows the redirects of a store's snapshots. Thread-safe.

    The table of redirects is in the order of runs, so each hop reads all of it.
    """

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue = catalogue
        self._files = files

    def chain(self, manifest: Manifest, url: str, at: datetime | None) -> Sequence[str]:
        """Return a URL and those it led to at a time, as far as there are bytes at the end.

        Raises RedirectChainError.
        """
        until = _FOREVER if at is None else int(at.timestamp())
        return redirects.follow(url, lambda origin: self._target(manifest, origin, until))

    def lead_to(self, manifest: Manifest, url: str) -> Sequence[str]:
        """Return a URL and some that ever led to it, directly or by others."""
        urls, last = [url], [url]
        for _ in range(redirects.MOST):
            origins = self._scan(manifest, "redirect", _ORIGINS, urls=last)
            last = [origin for (origin,) in origins if origin not in urls]
            urls += last
            if not last or len(urls) > _MOST:
                break
        return urls[:_MOST]

    def handles(self, manifest: Manifest, url: str) -> Sequence[str]:
        """Return some templates that name a file by its id, or by a URL that led to it."""
        ids = self.lead_to(manifest, url)
        return [handle for (handle,) in self._scan(manifest, "refipo", _NAMED, ids=ids)][:_MOST]

    def _target(self, manifest: Manifest, url: str, until: int) -> str | None:
        """Return the target of a URL, unless the URL had bytes of its own after the redirect."""
        hops = self._scan(manifest, "redirect", _HOP, url=url, at=until)
        if not hops:
            return None
        tist, target = max(hops)
        own = [
            time
            for table, sql in _SIGHTS.items()
            for (time,) in self._files.look_up(
                sql, self._catalogue.groups(manifest, table, url, url), id=url
            )
            if time is not None and time <= until
        ]
        return None if own and max(own) >= tist else str(target)

    def _scan(
        self, manifest: Manifest, table: str, sql: str, **values: Any
    ) -> list[tuple[Any, ...]]:
        """Return rows of the whole table."""
        files = self._catalogue.files(manifest, table)
        return [row for file in files for row in self._files.rows(sql, file, **values)]
