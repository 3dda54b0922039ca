"""Names of datasets, and the registries that give their landing pages.

A name is a URL, a DOI or another handle, in any form.
"""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from builder.http import url as address
from builder.sources.datasets.platforms.json_document import (
    entries,
    first_at,
    handle_of,
    inner,
    web,
)
from builder.sources.datasets.protocols import Api, FilesetError

DOI_RESOLVER = "https://doi.org/"
HANDLE_RESOLVER = "https://hdl.handle.net/"

_VIEW = re.compile(r"#/?view/[!-~]+\Z")
"""A fragment that names the dataset, because the page is an application in the browser."""
ENDS = frozenset({"cancelled", "deadline-exceeded"})
"""Statuses caused by the run itself; they say nothing about the request."""


@dataclass(frozen=True, slots=True)
class DatasetName:
    """The name of a dataset. `url` can be requested; for a handle it is the resolver's URL.

    `handle` is a DOI or another handle as written, without a resolver's URL.
    """

    url: str
    handle: str | None = None

    @property
    def doi(self) -> str | None:
        """The DOI in lower case, or None."""
        return self.handle.lower() if self.handle and self.handle.startswith("10.") else None


def parse_name(text: str) -> DatasetName:
    """Parse the name in a request. Raises FilesetError (bad-identifier)."""
    text = text.strip()
    if text and text.isprintable():
        handle = handle_of(text)
        if handle is not None:
            resolver = DOI_RESOLVER if handle.startswith("10.") else HANDLE_RESOLVER
            return DatasetName(resolver + quote(handle, safe="/:;()~+@!$,="), handle)
        normal = address.normalise(text)
        if normal.id is not None and not normal.spaced and normal.id.startswith("http"):
            view = _VIEW.search(text)
            return DatasetName(normal.id + (view[0] if view else ""))
    shown = text if len(text) <= 200 else text[:200] + "..."
    raise FilesetError("bad-identifier", f"not a URL or DOI: {shown!r}")


def find_target(handle: str, api: Api) -> str:
    """Return the URL that a DOI or another handle is registered for.

    The handle system is asked first, then, for a DOI, DataCite. If neither has a
    URL, raises FilesetError: an error of the API, or no-platform-match if both responded.
    """
    doi = handle.startswith("10.")
    name = quote(handle, safe="/:;()")
    base = DOI_RESOLVER if doi else HANDLE_RESOLVER
    registries = [(f"{base}api/handles/{name}", _of_handle)]
    if doi:
        registries.append(("https://api.datacite.org/dois/" + name, _of_datacite))
    failed: FilesetError | None = None
    for url, read in registries:
        try:
            if (target := read(api.document(url))) is not None:
                return target
        except FilesetError as error:
            if error.status in ENDS:
                raise
            if error.status != "platform-404":
                failed = failed or error
    raise failed or FilesetError("no-platform-match", f"{handle} is not registered, or has no URL")


def _of_handle(document: Any) -> str | None:
    """Return the first URL among a handle's values."""
    values = entries(inner(document).get("values"))
    urls = [value for value in values if value.get("type") == "URL"]
    urls.sort(key=lambda v: v["index"] if isinstance(v.get("index"), int) else 0)
    return first_at(urls, "data.value", web)


def _of_datacite(document: Any) -> str | None:
    attributes = inner(document, "data", "attributes") or inner(document, "attributes")
    return web(attributes.get("url"))
