"""Probes: requests that recognise a platform by the API of a host that no list names."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from builder.http.errors import OUTCOMES
from builder.sources.datasets.download.api import parse_document
from builder.sources.datasets.item import DatasetResource
from builder.sources.datasets.platforms.json_document import inner
from builder.sources.datasets.platforms.landing import ENDS
from builder.sources.datasets.protocols import Api, FilesetError

_PASSING = frozenset({"platform-rate-limited", "platform-timeout"})
_GONE = 410


@dataclass(frozen=True, slots=True)
class Probe:
    """A document that identifies the platform `platform`.

    `shape` matches the landing page's URL after its host; its groups are put into `path`. With
    `doi`, a DOI must be known. `shows` checks the document. `buried` checks the document of HTTP
    status 410, which means a deleted dataset of this platform.
    """

    platform: str
    shape: re.Pattern[str]
    path: str
    shows: Callable[[Mapping[str, Any]], bool]
    doi: bool = False
    buried: Callable[[Mapping[str, Any]], bool] | None = None


PROBES: tuple[Probe, ...] = (
    Probe(
        "inveniordm",
        re.compile(r"/(?:api/)?records?/([A-Za-z0-9-]+)(?:[/?].*)?"),
        "/api/records/{0}",
        lambda record: {"id", "metadata"} <= record.keys() and bool(inner(record, "links")),
        buried=lambda grave: (
            grave.get("status") == _GONE
            and (isinstance(grave.get("message"), str) or bool(inner(grave, "tombstone")))
        ),
    ),
    Probe(
        "ckan",
        re.compile(r"((?:/[^/?]+)*?)/dataset/([a-z0-9_-]+)/?(?:\?.*)?", re.I),
        "{0}/api/3/action/package_show?id={1}",
        lambda answer: answer.get("success") is True and "resources" in inner(answer, "result"),
    ),
    Probe(
        "dataverse",
        re.compile(r".*"),
        "/api/info/version",
        lambda answer: (
            answer.get("status") == "OK" and isinstance(inner(answer, "data").get("version"), str)
        ),
        doi=True,
    ),
)
"""All probes, in the order in which they are sent."""


def probe(
    resource: DatasetResource,
    api: Api,
    probes: tuple[Probe, ...] = PROBES,
    failed: Callable[[FilesetError], None] = lambda error: None,
) -> str | None:
    """Return the name of the platform that a resource's host runs, or None.

    A failed or uninformative response proves nothing; `failed` receives errors that may pass.
    Raises FilesetError if the run ends.
    """
    parts = urlsplit(resource.url)
    behind = parts.path + (f"?{parts.query}" if parts.query else "")
    for probe in probes:
        match = probe.shape.fullmatch(behind)
        if match is None or (probe.doi and resource.doi is None):
            continue
        url = f"{parts.scheme}://{parts.netloc}{probe.path.format(*match.groups())}"
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
    """Return whether the response for a deleted dataset comes from the platform."""
    if probe.buried is None:
        return False
    try:
        document = parse_document(api.answer(url, statuses=frozenset({_GONE})))
    except FilesetError as error:
        if error.status in ENDS:
            raise
        return False
    return isinstance(document, Mapping) and probe.buried(document)
