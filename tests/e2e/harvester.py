"""A minimal OAI-PMH harvester: walks a whole list and says what it saw."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen
from xml.etree import ElementTree

from functions.snapshot.errors import SheafError

_OAI = "{http://www.openarchives.org/OAI/2.0/}"
_TIMEOUT = 60.0


class HarvestError(SheafError):
    """The repository did not answer as OAI-PMH 2.0 wants it."""


@dataclass(frozen=True)
class HarvestSummary:
    """What a harvest saw."""

    records: int
    """All records, the deleted ones included."""
    deleted: int
    pages: int
    identifiers: frozenset[str]
    began: str
    """`responseDate` of the first page: from when on the next harvest has to ask."""
    seconds: float


def harvest(
    base_url: str, prefix: str = "oai_dc", set: str | None = None, since: str | None = None
) -> HarvestSummary:
    """Harvest all records of `base_url` in the format `prefix`, of one set if `set` is given.

    With `since`, a datestamp or the `responseDate` of an earlier harvest, only what is as new.
    Raises HarvestError, with one line, on an OAI-PMH error, on a failure of HTTP, on an answer
    that is no OAI-PMH and on an identifier that comes twice. noRecordsMatch is a harvest of
    nothing.
    """
    if not base_url.startswith(("http://", "https://")):
        raise HarvestError(f"{base_url} is not an http or https URL")
    started = time.monotonic()
    arguments = {"verb": "ListRecords", "metadataPrefix": prefix}
    if set is not None:
        arguments["set"] = set
    if since is not None:
        arguments["from"] = since
    identifiers: dict[str, bool] = {}
    pages = 0
    began = ""
    for page, answered in _pages(base_url, arguments):
        pages += 1
        began = began or answered
        for identifier, deleted in page:
            if not identifier:
                raise HarvestError(f"{base_url} lists a record without an identifier")
            if identifier in identifiers:
                raise HarvestError(f"{base_url} lists {identifier} twice")
            identifiers[identifier] = deleted
    return HarvestSummary(
        records=len(identifiers),
        deleted=sum(identifiers.values()),
        pages=pages,
        identifiers=frozenset(identifiers),
        began=began,
        seconds=time.monotonic() - started,
    )


def _pages(
    base_url: str, arguments: dict[str, str]
) -> Iterator[tuple[list[tuple[str, bool]], str]]:
    """Yield each page's identifiers and whether each is deleted, to the empty token.

    With each comes the page's `responseDate`.
    """
    token = ""
    while True:
        root = _request(base_url, arguments)
        codes = [error.get("code") for error in root.findall(f"{_OAI}error")]
        if not token and codes == ["noRecordsMatch"]:
            return
        _refuse_errors(base_url, root)
        headers = root.findall(f"{_OAI}ListRecords/{_OAI}record/{_OAI}header")
        if not headers:
            raise HarvestError(f"{base_url} answered a list without records")
        answered = _line(root.findtext(f"{_OAI}responseDate"))
        yield [_header(header) for header in headers], answered
        token = _line(root.findtext(f"{_OAI}ListRecords/{_OAI}resumptionToken"))
        if not token:
            return
        arguments = {"verb": "ListRecords", "resumptionToken": token}


def _refuse_errors(base_url: str, root: ElementTree.Element) -> None:
    errors = root.findall(f"{_OAI}error")
    if errors:
        said = "; ".join(f"{error.get('code')}: {_line(error.text)}" for error in errors)
        raise HarvestError(f"{base_url} answered {said}")


def _header(header: ElementTree.Element) -> tuple[str, bool]:
    return _line(header.findtext(f"{_OAI}identifier")), header.get("status") == "deleted"


def _request(base_url: str, arguments: dict[str, str]) -> ElementTree.Element:
    try:
        request = Request(f"{base_url}?{urlencode(arguments)}")
        with urlopen(request, timeout=_TIMEOUT) as response:
            root = ElementTree.fromstring(response.read())
    except HTTPError as error:
        error.close()
        raise HarvestError(
            f"{base_url} answered HTTP {error.code} {_line(error.reason)}"
        ) from error
    except (OSError, HTTPException, ValueError) as error:
        raise HarvestError(f"{base_url} could not be harvested: {_line(str(error))}") from error
    except ElementTree.ParseError as error:
        raise HarvestError(f"{base_url} answered something that is no XML: {error}") from error
    if root.tag != f"{_OAI}OAI-PMH":
        raise HarvestError(f"{base_url} answered XML that is no OAI-PMH")
    return root


def _line(text: str | None) -> str:
    return " ".join((text or "").split())
