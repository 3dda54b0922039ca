"""Readers of a site that know its files alone, and the same harvests of a server."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from lxml import etree

from functions.http.http_message import Call
from functions.oai.application import Application
from tests.builder.conftest import World

OAI = "{http://www.openarchives.org/OAI/2.0/}"
Record = tuple[str, str, bool, tuple[str, ...], bytes]
"""Identifier, datestamp, deletion, sets, and the canonical XML of the metadata."""


def read_records(document: etree._Element) -> list[Record]:
    """Return the records or headers of a document."""
    records = []
    for header in document.iter(f"{OAI}header"):
        parent = header.getparent()
        metadata = None if parent is None else parent.find(f"{OAI}metadata")
        records.append(
            (
                header.findtext(f"{OAI}identifier") or "",
                header.findtext(f"{OAI}datestamp") or "",
                header.get("status") == "deleted",
                tuple(element.text or "" for element in header.iter(f"{OAI}setSpec")),
                b"" if metadata is None else etree.tostring(metadata[0], method="c14n"),
            )
        )
    return records


@dataclass
class Folder:
    """A folder of a site, read as a router does."""

    root: Path
    read: list[str] = field(default_factory=list)

    @property
    def router(self) -> dict[str, Any]:
        router: dict[str, Any] = json.loads((self.root / "router.json").read_bytes())
        return router

    def _stem(self, letter: str, prefix: str, spec: str) -> str:
        folder = self.router["formats"][prefix][letter]
        return f"{folder}/set/{spec}" if spec else f"{folder}/all"

    def chain(self, letter: str, prefix: str, spec: str = "") -> list[tuple[str, int, str]]:
        """Return the instant and first position of each page of a list, and its folder."""
        stem = self._stem(letter, prefix, spec)
        path, whole = self.root / f"{stem}.json", self._stem(letter, prefix, "")
        rows = json.loads(path.read_bytes()) if path.exists() else []
        return [(at, f, whole if shared else stem) for at, fs, *shared in rows for f in fs]

    def page(self, name: str) -> etree._Element:
        self.read.append(name)
        return etree.fromstring((self.root / name).read_bytes())

    def begin(self, letter: str, prefix: str, spec: str = "", start: str = "") -> str:
        """Return the token of the first page of a list; empty if nothing matches."""
        firsts = (f for stamp, f, _ in self.chain(letter, prefix, spec) if stamp >= start)
        first = next(firsts, 0)
        return ",".join(filter(None, (letter, prefix, str(first), spec))) if first else ""

    def resume(self, token: str) -> tuple[list[Record], str]:
        """Return the records of a page and the next token, by position if the page is gone."""
        letter, prefix, number, spec = (*token.split(","), "")[:4]
        pages = self.chain(letter, prefix, spec)
        place = max((n for n, page in enumerate(pages) if page[1] <= int(number)), default=0)
        _, first, folder = pages[place]
        document = self.page(f"{folder}/{first}.xml")
        records = read_records(document)
        if not spec or "/set/" in folder:
            return records, document.findtext(f".//{OAI}resumptionToken") or ""
        chosen = [r for r in records if any(f"{s}:".startswith(f"{spec}:") for s in r[3])]
        assert chosen, (folder, first, spec)  # no page that it names is empty for it
        behind = pages[place + 1 : place + 2]
        return chosen, f"{letter},{prefix},{behind[0][1]},{spec}" if behind else ""

    def harvest(
        self, letter: str, prefix: str, spec: str = "", start: str = "", end: str = "9"
    ) -> list[Record]:
        records: list[Record] = []
        ends = {first: stamp for stamp, first, _ in self.chain(letter, prefix, spec)}
        token = self.begin(letter, prefix, spec, start)
        while token and ends[int(token.split(",")[2])] <= end:
            part, token = self.resume(token)
            records += part
        return records

    def sets(self) -> list[str]:
        specs: list[str] = []
        number = "0"
        while number and (self.root / f"sets/{number}.xml").exists():
            document = etree.fromstring((self.root / f"sets/{number}.xml").read_bytes())
            specs += [e.text or "" for e in document.iter(f"{OAI}setSpec")]
            number = (document.findtext(f".//{OAI}resumptionToken") or "").removeprefix("s,")
        return specs

    def get(self, identifier: str, prefix: str) -> Record | None:
        """Return a record by the index, and the page that has its position."""
        digest = hashlib.sha1(identifier.encode()).hexdigest()
        buckets = ("recent", digest[: self.router["digits"]])
        for bucket in buckets:
            entries = json.loads((self.root / f"index/{bucket}.json").read_bytes())
            if entry := entries.get(digest[:16]):
                pages = self.chain("r", prefix)
                first = max(first for _, first, _ in pages if first <= entry[1])
                records = read_records(self.page(f"{pages[0][2]}/{first}.xml"))
                return next((r for r in records if r[0] == identifier), None)
        return None


def ask(application: Application, **arguments: str) -> etree._Element:
    """Return the answer of a server."""
    call = Call("GET", "http://archive.example.org", "/oai", urlencode(arguments))
    return etree.fromstring(application.answer(call).body)


def harvest_server(
    application: Application, verb: str, **arguments: str
) -> Iterator[etree._Element]:
    """Yield the pages of a list of a server."""
    document = ask(application, verb=verb, **arguments)
    while True:
        yield document
        token = document.findtext(f".//{OAI}resumptionToken")
        if not token:
            return
        document = ask(application, verb=verb, resumptionToken=token)


def compare(world: World, folder: Folder, settings: dict[str, str]) -> None:
    """Assert that a folder has what the server answers: lists, parts of them, sets, records."""
    repository = world.repository()
    application = Application(repository, world.configuration(**settings), world.clock)
    manifest = world.newest()
    stamps = sorted({s.effective.strftime("%Y-%m-%dT%H:%M:%SZ") for s in manifest.sequences})
    answer = ask(application, verb="ListMetadataFormats")
    prefixes = [e.text or "" for e in answer.iter(f"{OAI}metadataPrefix")]
    assert prefixes == [*folder.router["formats"]]
    listed = harvest_server(application, "ListSets")
    specs = [e.text or "" for page in listed for e in page.iter(f"{OAI}setSpec")]
    assert folder.sets() == specs
    for spec in ("", *specs):
        for letter, verb in (("r", "ListRecords"), ("i", "ListIdentifiers")):
            for prefix in prefixes:
                chosen = {"metadataPrefix": prefix} | ({"set": spec} if spec else {})
                pages = harvest_server(application, verb, **chosen)
                expected = [record for page in pages for record in read_records(page)]
                assert folder.harvest(letter, prefix, spec) == expected, (verb, prefix, spec)
                at = [(start, "9") for start in stamps] + [("", end) for end in stamps]
                for start, end in at:
                    part = [r for r in expected if start <= r[1] <= end]
                    assert folder.harvest(letter, prefix, spec, start, end) == part
    for record in folder.harvest("r", prefixes[0]):
        assert folder.get(record[0], prefixes[0]) == record
    assert folder.get("oai:archive.example.org:none", prefixes[0]) is None
