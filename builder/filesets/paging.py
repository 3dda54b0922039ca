"""Paging: lists that platforms give in pages, each of which names the next."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from builder.filesets.document import mapping
from builder.filesets.seam import Api, FilesetError

PAGES = 2_000
"""How many pages a list may have; with 100 entries each, twice the files that may be allowed."""


def pages(
    api: Api,
    first: str,
    hosts: Sequence[str],
    following: Callable[[Mapping[str, Any]], str | None],
) -> Iterator[Mapping[str, Any]]:
    """Yield the pages of a list; `following` tells the URL of the next out of each.

    Raises FilesetError as the API does, and platform-error for a list that leads back to itself or
    has no end.
    """
    seen: set[str] = set()
    url: str | None = first
    while url is not None:
        if url in seen or len(seen) >= PAGES:
            raise FilesetError("platform-error", f"the list at {first} leads back or has no end")
        seen.add(url)
        page = mapping(api.document(url, hosts=hosts), f"the list at {url}")
        yield page
        url = following(page)
