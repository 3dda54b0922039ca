"""Probes: documents of an API by which a host is told to run a platform's software.

They are for hosts that no list names, and are asked only where a URL looks as that software's do.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from builder.filesets.detect.registry import ENDS
from builder.filesets.item import DatasetResource
from builder.filesets.metadata.json_document import inner
from builder.filesets.protocols import Api, FilesetError
from builder.http.outcomes import OUTCOMES

_PASSING = frozenset({"platform-rate-limited", "platform-timeout"})

_GONE = 410


@dataclass(frozen=True, slots=True)
class Probe:
    """A document that shows the platform called `platform`.

    `shape` is what the landing page's URL looks like behind its host: what it captures is put into
    `path`. With `doi`, a DOI has to be known. `shows` tells by the document, and `buried` by the
    one that comes with HTTP status 410 in its place: what was deleted is at a platform as well.
    """

    platform: str
    shape: re.Pattern[str]
    path: str
    shows: Callable[[Mapping[str, Any]], bool]
    doi: bool = False
    buried: Callable[[Mapping[str, Any]], bool] | None = None


def _dataverse(document: Mapping[str, Any]) -> bool:
    version = inner(document, "data").get("version")
    return document.get("status") == "OK" and isinstance(version, str)


def _record(document: Mapping[str, Any]) -> bool:
    return "id" in document and "metadata" in document and bool(inner(document, "links"))


def _tombstone(document: Mapping[str, Any]) -> bool:
    told = isinstance(document.get("message"), str) or bool(inner(document, "tombstone"))
    return document.get("status") == _GONE and told


def _package(document: Mapping[str, Any]) -> bool:
    return document.get("success") is True and "resources" in inner(document, "result")


PROBES: tuple[Probe, ...] = (
    Probe(
        "inveniordm",
        re.compile(r"/(?:api/)?records?/([A-Za-z0-9-]+)(?:[/?].*)?"),
        "/api/records/{0}",
        _record,
        buried=_tombstone,
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


def probe(
    resource: DatasetResource,
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
        url = f"{parts.scheme}://{parts.netloc}{probe.path.format(*found.groups())}"
        try:
            document = api.document(url)
        except FilesetError as error:
            if error.status in ENDS:
                raise
            if error.status == "platform-gone" and _is_buried(probe, url, api):
                return probe.platform
            if error.status in _PASSING or (error.code in OUTCOMES and OUTCOMES[error.code].soon):
                failed(error)
            continue
        if isinstance(document, Mapping) and probe.shows(document):
            return probe.platform
    return None


def _is_buried(probe: Probe, url: str, api: Api) -> bool:
    """Tell whether what is said of something deleted is what the platform says."""
    if probe.buried is None:
        return False
    try:
        document = json.loads(api.answer(url, statuses=frozenset({_GONE})).body)
    except (ValueError, RecursionError):
        return False
    except FilesetError as error:
        if error.status in ENDS:
            raise
        return False
    return isinstance(document, Mapping) and probe.buried(document)
