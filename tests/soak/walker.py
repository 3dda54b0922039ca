"""A harvester that walks lists page by page, and looks at each page: nothing may come twice."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from lxml import etree

from tests.soak.actors import Actor
from tests.soak.shell import Site

OAI = "{http://www.openarchives.org/OAI/2.0/}"
_PATIENCE = 300.0
"""Seconds for which an answer is waited for; a server that was killed needs some to start."""


class ListError(Exception):
    """A list broke a promise."""


@dataclass(frozen=True)
class Header:
    """The header of a record."""

    identifier: str
    datestamp: str
    deleted: bool


@dataclass
class ListedRecords:
    """What a walk over one list gave.

    `repeated` are headers that came again. An item that changed meanwhile comes again, with its new
    datestamp, as the list goes on in the snapshots published since.
    """

    headers: dict[str, Header]
    repeated: list[Header]
    began: str = ""
    """`responseDate` of the first page, from which the next harvest asks."""


def walk(url: str, prefix: str, since: str = "") -> ListedRecords:
    """Walk a whole list of ListRecords. Raises ListError if an answer never comes or is wrong."""
    arguments = {"verb": "ListRecords", "metadataPrefix": prefix}
    if since:
        arguments["from"] = since
    found = ListedRecords({}, [])
    while arguments:
        root = _ask(url, arguments)
        codes = [error.get("code") for error in root.iter(f"{OAI}error")]
        if codes not in ([], ["noRecordsMatch"]):
            raise ListError(f"{arguments} was answered by {codes}")
        found.began = found.began or root.findtext(f"{OAI}responseDate", "")
        for header in _headers(root):
            if header.datestamp < since:
                raise ListError(f"{header} is older than {since}")
            known = found.headers.get(header.identifier)
            if known is not None and header.datestamp <= known.datestamp:
                found.repeated.append(header)
            found.headers[header.identifier] = header
        token = root.findtext(f"{OAI}ListRecords/{OAI}resumptionToken")
        arguments = {"verb": "ListRecords", "resumptionToken": token} if token else {}
    return found


def formats(url: str) -> list[str]:
    """Return the metadata prefixes of a repository."""
    root = _ask(url, {"verb": "ListMetadataFormats"})
    return [element.text or "" for element in root.iter(f"{OAI}metadataPrefix")]


def _headers(root: etree._Element) -> Iterator[Header]:
    for header in root.iter(f"{OAI}header"):
        yield Header(
            header.findtext(f"{OAI}identifier", ""),
            header.findtext(f"{OAI}datestamp", ""),
            header.get("status") == "deleted",
        )


def _ask(url: str, arguments: dict[str, str]) -> etree._Element:
    """Ask until there is an answer. A server may be away, or say 503, for a while."""
    end, said = time.monotonic() + _PATIENCE, ""
    while time.monotonic() < end:
        try:
            with urlopen(f"{url}?{urlencode(arguments)}", timeout=60) as reply:
                return etree.fromstring(reply.read())
        except HTTPError as error:
            if error.code != 503 or not error.headers["Retry-After"]:
                raise ListError(f"{arguments} was answered by {error.code}") from error
            said = "503"
        except (OSError, HTTPException, etree.XMLSyntaxError) as error:
            said = repr(error)  # it was killed while it answered
        time.sleep(0.5)
    raise ListError(f"{arguments} was not answered for {_PATIENCE:.0f} s: {said}")


class Walker(Actor):
    """Harvests what is new since its last list, in one format."""

    def __init__(self, site: Site, name: str, seed: int, url: str, prefix: str) -> None:
        super().__init__(site, name, seed)
        self.url, self.prefix = url, prefix
        self.held: dict[str, Header] = {}
        self._since = ""

    def round(self) -> None:
        """Walk one list."""
        self.take()
        self.site.stop.wait(self.random.uniform(0, 3))

    def take(self) -> None:
        """Walk the list of what is new. A retired snapshot may repeat records of its list."""
        before = list(self.site.expiries)
        found = walk(self.url, self.prefix, self._since)
        quiet = self.site.expiries == before and before[-1:] != ["begun"]
        if found.repeated and quiet:
            raise ListError(f"came twice within a list: {found.repeated[:3]}")
        self.held.update(found.headers)
        self._since = found.began
        self.site.report.add("harvest", "lists walked")
