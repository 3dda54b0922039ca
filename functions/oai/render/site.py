"""The page for people: the content of the repository, and how to harvest it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlencode

from functions.config.configuration import Configuration
from functions.http.message import OAI_PATH
from functions.oai.as_of import PointerReading
from functions.oai.format import MANDATORY
from functions.oai.repository import RecordSelection, Repository
from functions.oai.request import (
    GET_RECORD,
    IDENTIFY,
    LIST_FORMATS,
    LIST_IDENTIFIERS,
    LIST_RECORDS,
    LIST_SETS,
)
from functions.snapshot import setspec
from functions.snapshot.manifest import Manifest, Span

_MOST_SETS = 50


@dataclass(frozen=True, slots=True)
class TopSet:
    """A set without a parent: specification, name, number of live and of deleted records."""

    spec: str
    name: str
    records: int
    deleted: int
    url: str


@dataclass(frozen=True, slots=True)
class Link:
    """An example request."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class View:
    """Variables of the page."""

    name: str
    emails: tuple[str, ...]
    base_url: str
    snapshot: int
    effective: datetime
    earliest: datetime
    latest: datetime
    kinds: Mapping[str, int]
    """Number of records by kind, deleted ones included."""
    records: int
    """Number of records, deleted ones excluded."""
    deleted: int
    set_count: int
    sets: tuple[TopSet, ...]
    links: tuple[Link, ...]
    list_url: str
    content: str
    """Base URL of /content and /cdx; "" if archived bytes are not served."""


def view(
    repository: Repository, configuration: Configuration, reading: PointerReading, base_url: str
) -> View:
    """Return the variables of the page as of `reading`. Raises StoreError."""
    manifest = repository.manifest(reading.entry.snapshot)
    kinds = dict(sorted((k, n) for k, n in manifest.kinds().items() if n))
    sets = _top_sets(repository, manifest, configuration["sets.names"], base_url)
    return View(
        name=configuration["repository.name"],
        emails=tuple(configuration["repository.admin_emails"]),
        base_url=base_url,
        snapshot=manifest.snapshot,
        effective=manifest.effective,
        earliest=manifest.earliest,
        latest=manifest.sequences[-1].effective if manifest.sequences else manifest.effective,
        kinds=kinds,
        records=sum(kinds.values()) - manifest.tombstones,
        deleted=manifest.tombstones,
        set_count=manifest.sets,
        sets=sets,
        links=_links(repository, manifest, base_url),
        list_url=_url(base_url, LIST_RECORDS, metadataPrefix=MANDATORY),
        content=_content(configuration, base_url),
    )


def _content(configuration: Configuration, base_url: str) -> str:
    if not (configuration["content.serve"] and base_url.endswith(OAI_PATH)):
        return ""
    return base_url.removesuffix(OAI_PATH)


def _top_sets(
    repository: Repository, manifest: Manifest, names: dict[str, str], base_url: str
) -> tuple[TopSet, ...]:
    """Return the sets without a parent; descendants are skipped by leaps.

    `;` follows `:` in ASCII and no specification holds it, so that behind `mime;` there is nothing
    more of `mime:`. (`mime-x` comes before `mime:`, hence the leap at the first child.)
    """
    found: list[TopSet] = []
    after = ""
    while len(found) < _MOST_SETS:
        rows = repository.sets(manifest, after, 1)
        if not rows:
            break
        root, colon, _ = rows[0].spec.partition(":")
        after = f"{root};" if colon else root
        if not colon:
            url = _url(base_url, LIST_RECORDS, metadataPrefix=MANDATORY, set=root)
            name = setspec.name(root, names, rows[0].name)
            deleted = rows[0].records - rows[0].live
            found.append(TopSet(root, name, rows[0].live, deleted, url))
    return tuple(found)


def _links(repository: Repository, manifest: Manifest, base_url: str) -> tuple[Link, ...]:
    """Return an example of each verb; GetRecord asks for the first record of the repository."""
    links = [
        Link(IDENTIFY, _url(base_url, IDENTIFY)),
        Link(LIST_FORMATS, _url(base_url, LIST_FORMATS)),
        Link(LIST_SETS, _url(base_url, LIST_SETS)),
        Link(LIST_IDENTIFIERS, _url(base_url, LIST_IDENTIFIERS, metadataPrefix=MANDATORY)),
        Link(LIST_RECORDS, _url(base_url, LIST_RECORDS, metadataPrefix=MANDATORY)),
    ]
    everything = RecordSelection(tuple(manifest.kinds()), Span(1, manifest.last_position))
    if manifest.last_position:
        for record in repository.page(manifest, everything, 1, headers=True):
            url = _url(base_url, GET_RECORD, metadataPrefix=MANDATORY, identifier=record.identifier)
            links.append(Link(GET_RECORD, url))
    return tuple(links)


def _url(base_url: str, verb: str, **arguments: str) -> str:
    return f"{base_url}?{urlencode({'verb': verb, **arguments}, quote_via=quote, safe=':')}"
