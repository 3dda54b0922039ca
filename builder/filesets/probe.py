"""Probes: documents of an API by which a host is told to run a platform's software.

They are for hosts that no list names, and are asked only where a URL looks as that software's do.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from builder.filesets.document import inner
from builder.filesets.item import Resource
from builder.filesets.registry import ENDS
from builder.filesets.seam import Api, FilesetError
from builder.obi.outcome import OUTCOMES

_PASSING = frozenset({"platform-rate-limited", "platform-timeout"})


@dataclass(frozen=True, slots=True)
class Probe:
    """A document that shows the platform called `platform`.

    `shape` is what the landing page's URL looks like behind its host: what it captures is put into
    `path`. With `doi`, a DOI has to be known. `shows` tells by the document.
    """

    platform: str
    shape: re.Pattern[str]
    path: str
    shows: Callable[[Mapping[str, Any]], bool]
    doi: bool = False


def _dataverse(document: Mapping[str, Any]) -> bool:
    version = inner(document, "data").get("version")
    return document.get("status") == "OK" and isinstance(version, str)


def _record(document: Mapping[str, Any]) -> bool:
    return "id" in document and "metadata" in document and bool(inner(document, "links"))


def _package(document: Mapping[str, Any]) -> bool:
    return document.get("success") is True and "resources" in inner(document, "result")


PROBES: tuple[Probe, ...] = (
    Probe(
        "inveniordm",
        re.compile(r"/records?/([A-Za-z0-9-]+)(?:[/?].*)?"),
        "/api/records/{0}",
        _record,
    ),
    Probe(
        "ckan",
        re.compile(r"((?:/[^/?]+)*?)/dataset/([a-z0-9_-]+)/?(?:\?.*)?", re.I),
        "{0}/api/3/action/package_show?id={1}",
        _package,
    ),
    Probe("dataverse", re.compile(r".*"), "/api/info/version", _dataverse, doi=True),
)
"""One row each, in the order in which they are asked."""


def probed(
    resource: Resource,
    api: Api,
    probes: tuple[Probe, ...] = PROBES,
    failed: Callable[[FilesetError], None] = lambda error: None,
) -> str | None:
    """Return the name of the platform that a resource's host is shown to run; None if none is.

    An answer that says nothing, or none at all, shows nothing; `failed` is told of what may be
    otherwise another time. Raises FilesetError if the run ends.
    """
    parts = urlsplit(resource.url)
    behind = parts.path + (f"?{parts.query}" if parts.query else "")
    for probe in probes:
        found = probe.shape.fullmatch(behind)
        if found is None or (probe.doi and resource.doi is None):
            continue
        try:
            path = probe.path.format(*found.groups())
            document = api.document(f"{parts.scheme}://{parts.netloc}{path}")
        except FilesetError as error:
            if error.status in ENDS:
                raise
            if error.status in _PASSING or (error.code in OUTCOMES and OUTCOMES[error.code].soon):
                failed(error)
            continue
        if isinstance(document, Mapping) and probe.shows(document):
            return probe.platform
    return None
