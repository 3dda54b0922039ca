"""The site: the page for people, our own schemas, and files that browsers request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, urlencode
from xml.parsers import expat

from functions.config.configuration import Configuration
from functions.http import http_message
from functions.http.http_message import OAI_PATH, Reply
from functions.oai.as_of import PointerReading
from functions.oai.format import MANDATORY, SCHEMA_PATH
from functions.oai.repository import RecordSelection, Repository
from functions.oai.request import (
    GET_RECORD,
    IDENTIFY,
    LIST_FORMATS,
    LIST_IDENTIFIERS,
    LIST_RECORDS,
    LIST_SETS,
)
from functions.snapshot import oai_name
from functions.snapshot.errors import ConfigurationError
from functions.snapshot.manifest import Manifest, Span

_MOST_SETS = 50
_TYPE = "application/xml"
_DAY = 86_400
"""Cache lifetime of these files in seconds: a day, the limit for crawlers (RFC 9309, 2.4)."""
_TYPES: Mapping[str, str] = {"favicon.ico": "image/vnd.microsoft.icon", "robots.txt": "text/plain"}
"""The files, with their media types."""


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
            name = oai_name.set_name(root, names, rows[0].name)
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


def schema_replies(places: Sequence[Path]) -> Mapping[str, Reply]:
    """Return the replies by path below the base URL: all files under schemas/ of the places.

    Raises ConfigurationError for a file that is unreadable or not XML in UTF-8.
    """
    found: dict[str, Reply] = {}
    for place in reversed(places):
        for path in sorted((place / "schemas").glob("*.xsd")):
            try:
                data = path.read_bytes()
            except OSError as error:
                raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
            _check(data, path)
            reply = Reply(200, _TYPE, data, digest=http_message.document_digest(data))
            found[f"/{SCHEMA_PATH}{path.name}"] = reply
    return found


def _check(data: bytes, path: Path) -> None:
    """Raise ConfigurationError for XML that is not well-formed or not in UTF-8."""
    declared: list[str] = []
    parser = expat.ParserCreate("UTF-8")  # overrides the encoding that the file declares
    parser.XmlDeclHandler = lambda version, encoding, alone: declared.append(encoding or "UTF-8")
    try:
        data.decode("utf-8")
        parser.Parse(data, True)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(
            f"{path}, line {line}: {error.reason}; expected XML in UTF-8"
        ) from error
    except expat.ExpatError as error:
        message = expat.errors.messages[error.code]
        raise ConfigurationError(
            f"{path}, line {error.lineno}: {message}; expected XML in UTF-8"
        ) from error
    if declared and declared[0].upper() != "UTF-8":
        raise ConfigurationError(
            f"{path} declares the encoding {declared[0]}, expected XML in UTF-8"
        )


def file_replies(templates: Path) -> Mapping[str, Reply]:
    """Return the reply for the path of each file under `site/` of the templates."""
    return {f"/{name}": _reply(templates / "site" / name, type_) for name, type_ in _TYPES.items()}


def _reply(path: Path, type_: str) -> Reply:
    data = path.read_bytes()
    headers = {"Cache-Control": http_message.withdrawable_control(_DAY)}
    return Reply(200, type_, data, headers, http_message.document_digest(data))
