"""Requests for a dataset's parts and pages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from builder.filesets.metadata.json_document import mapping
from builder.filesets.protocols import Api, FilesetError

PAGES = 2_000
"""Most pages of a list; with 100 entries each, twice the allowed number of files."""


@contextmanager
def parts() -> Iterator[None]:
    """Wrap errors of requests for parts of an existing dataset.

    A missing part does not mean that the dataset was removed (platform-404, platform-gone): it
    raises incomplete-manifest.
    """
    try:
        yield
    except FilesetError as error:
        if error.status not in ("platform-404", "platform-gone"):
            raise
        raise FilesetError("incomplete-manifest", error.detail, code=error.code) from error


def part(api: Api, url: str, hosts: Sequence[str] = ()) -> Any:
    """Return the document of a part. Raises FilesetError as the API and `parts` do."""
    with parts():
        return api.document(url, hosts=hosts)


def edition(api: Api, whole: str, url: str, version: str | None) -> Any:
    """Return the document at `url` for a requested version, or at `whole` if none is requested.

    Raises FilesetError as the API does; platform-scope if the dataset exists but the version does
    not.
    """
    if version is None:
        return api.document(whole)
    try:
        return api.document(url)
    except FilesetError as error:
        if error.status != "platform-404":
            raise
        missing = error
    api.document(whole)
    detail = f"it has no version {version}"
    raise FilesetError("platform-scope", detail, code="wrong-version") from missing


def pages(
    api: Api,
    first: str,
    hosts: Sequence[str],
    following: Callable[[Mapping[str, Any]], str | None],
) -> Iterator[Mapping[str, Any]]:
    """Yield the pages of a list; `following` returns the URL of the next page.

    Raises FilesetError as `part` does, and platform-error for a list that links back to itself or
    has too many pages.
    """
    seen: set[str] = set()
    url: str | None = first
    while url is not None:
        if url in seen or len(seen) >= PAGES:
            raise FilesetError("platform-error", f"the list at {first} is a loop or endless")
        seen.add(url)
        page = mapping(part(api, url, hosts), f"the list at {url}")
        yield page
        url = following(page)
