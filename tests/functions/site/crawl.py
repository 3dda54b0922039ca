"""A reader of the pages: follows every link, and checks what each page promises."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from lxml import etree

from tests.functions.oai.client import Client, content

ROOT = "https://oai.example.org"
LARGEST = 150_000
VOID = {"script": "src", "img": "src", "link": "href", "iframe": "src", "object": "data"}

_FILES = (".atom", "ld", ".csv", ".json", ".bib", ".ris")


@dataclass
class Visit:
    """A page that was read: its address and its tree."""

    path: str
    tree: etree._Element

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.tree.itertext()).split())

    def links(self) -> Iterator[str]:
        for a in self.tree.iter("a"):
            yield urljoin(f"{ROOT}{self.path}", a.get("href"))


@dataclass
class Crawl:
    """Reads pages of a client; `visits` are those that were read, by path and query."""

    client: Client
    visits: dict[str, Visit] = field(default_factory=dict)

    def read(self, path: str, status: int = 0) -> Visit:
        """Read a page, and hold what is true of every page. A tombstone is one as well."""
        place, _, query = path.partition("?")
        reply = self.client.raw(query, path=place)
        assert reply["statusCode"] in ([status] if status else [200, 410]), path
        headers, body = reply["headers"], content(reply)
        assert headers["Content-Type"] == "text/html; charset=utf-8", path
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert len(body) <= LARGEST, path
        tree = etree.fromstring(body, etree.HTMLParser(encoding="utf-8"))
        for tag, name in VOID.items():
            for one in tree.iter(tag):
                assert (one.get(name) or "/").startswith("/"), (path, one.attrib)
        for one in tree.iter():
            assert isinstance(one, etree._Comment) or not [n for n in one.attrib if n[:2] == "on"]
            assert "style" not in one.attrib
        for script in tree.iter("script"):
            assert script.get("src") or script.get("type") == "application/ld+json"
        assert len(list(tree.iter("h1"))) == 1, path
        names = [one.get("id") for one in tree.iter() if one.get("id")]
        assert len(names) == len({*names}), path
        for one in tree.iter("input", "select"):
            labels = {label.get("for") for label in tree.iter("label")}
            assert one.get("type") == "hidden" or one.get("id") in labels, path
        visit = self.visits[path] = Visit(path, tree)
        return visit

    def read_table(self, path: str, name: str) -> list[dict[str, Any]]:
        """Return the rows of a table of a page that has no SQL; its CSV must have them as well."""
        links = [urlsplit(link) for link in self.read(path).links()]
        (query,) = {link.query for link in links if link.path == f"/{name}.json"}
        json_text, csv_text = (
            content(self.client.raw(query, path=f"/{name}.{form}")).decode()
            for form in ("json", "csv")
        )
        table = json.loads(json_text)
        texts = [["" if v is None else str(v) for v in row.values()] for row in table["rows"]]
        assert [*csv.reader(io.StringIO(csv_text))][1:] == texts
        assert table.keys() == {"table", "rows"}
        rows: list[dict[str, Any]] = table["rows"]
        return rows

    def walk(self, start: str = "/", most: int = 400) -> dict[str, Visit]:
        """Follow every link to a page from `start` on; each must lead somewhere."""
        waiting = [start]
        while waiting and len(self.visits) < most:
            path = waiting.pop(0)
            if path in self.visits:
                continue
            for link in self.read(path).links():
                parts = urlsplit(link)
                assert parts.scheme in ("http", "https", "mailto"), link
                own = link.startswith(f"{ROOT}/")
                if not own or parts.path.startswith(("/content", "/web", "/cdx", "/timemap")):
                    continue
                target = parts.path + (f"?{parts.query}" if parts.query else "")
                if parts.path == "/oai" or parts.path.endswith(_FILES):
                    reply = self.client.raw(parts.query, path=parts.path)
                    assert reply["statusCode"] == 200, link
                elif target not in self.visits:
                    waiting.append(target)
        return self.visits
