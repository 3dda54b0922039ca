"""Client for registries of DOIs and handles, which give the landing page's URL."""

from typing import Any
from urllib.parse import quote

from builder.filesets.detect.name import DOI_RESOLVER, HANDLE_RESOLVER
from builder.filesets.metadata.json_document import inner, web
from builder.filesets.protocols import Api, FilesetError

_DATACITE = "https://api.datacite.org/dois/"
_SAFE = "/:;()"
ENDS = frozenset({"cancelled", "deadline-exceeded"})
"""Statuses caused by the run itself; they say nothing about the request."""


def target(handle: str, api: Api) -> str:
    """Return the URL that a DOI or another handle is registered for.

    The handle system is asked first, then, for a DOI, DataCite. If neither has a
    URL, raises FilesetError: an error of the API, or no-platform-match if both responded.
    """
    doi = handle.startswith("10.")
    name = quote(handle, safe=_SAFE)
    base = DOI_RESOLVER if doi else HANDLE_RESOLVER
    asked = [(f"{base}api/handles/{name}", _of_handle)]
    if doi:
        asked.append((_DATACITE + name, _of_datacite))
    failed: FilesetError | None = None
    for url, read in asked:
        try:
            found = read(api.document(url))
        except FilesetError as error:
            if error.status in ENDS:
                raise
            if error.status != "platform-404":
                failed = failed or error
        else:
            if found is not None:
                return found
    if failed is not None:
        raise FilesetError(failed.status, failed.detail, code=failed.code) from failed
    raise FilesetError("no-platform-match", f"{handle} is not registered, or has no URL")


def _of_handle(document: Any) -> str | None:
    """Return the first URL among a handle's values."""
    values = inner({"of": document}, "of").get("values")
    listed = [v for v in values if isinstance(v, dict)] if isinstance(values, list) else []
    listed.sort(key=lambda v: v["index"] if isinstance(v.get("index"), int) else 0)
    for value in listed:
        if value.get("type") == "URL" and (found := web(inner(value, "data").get("value"))):
            return found
    return None


def _of_datacite(document: Any) -> str | None:
    attributes = inner(document, "data", "attributes") or inner(document, "attributes")
    return web(attributes.get("url"))
