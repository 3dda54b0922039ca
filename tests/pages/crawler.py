"""Finds the pages that can be reached from the first one, and one of each kind among them."""

import re
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urljoin, urlsplit

from lxml import etree

from functions.site.site import PAGES

_BYTES = ("/content", "/web", "/cdx", "/timemap", "/timegate", "/oai")
_SECONDS = 60
_CAPTURE = re.compile("^/record/[^?]*:[a-z2-7]{24}$")


@dataclass
class Reached:
    """Pages by path and query, each with its HTML; and files beside them that are linked."""

    root: str
    pages: dict[str, bytes] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)

    def get(self, path: str) -> tuple[int, str, bytes]:
        """Return status, media type and body."""
        try:
            with urllib.request.urlopen(self.root + path, timeout=_SECONDS) as reply:
                return reply.status, reply.headers.get_content_type(), reply.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers.get_content_type(), error.read()

    def visit(self, path: str) -> list[str]:
        """Read a page, and return the paths of the pages that it links."""
        status, kind, body = self.get(path)
        assert kind == "text/html", (path, kind)
        self.pages[path], self.status[path] = body, status
        tree = etree.fromstring(body, etree.HTMLParser(encoding="utf-8"))
        found = []
        for a in tree.iter("{*}a"):
            parts = urlsplit(urljoin(self.root + path, a.get("href")))
            if f"{parts.scheme}://{parts.netloc}" != self.root:
                continue
            first = parts.path[1:].partition("/")[0]
            if first in PAGES:
                found.append(parts.path + (f"?{parts.query}" if parts.query else ""))
            else:
                assert parts.path.startswith(_BYTES) or "." in first, (path, parts.path)
        return found

    def walk(self, *starts: str, most: int = 2, records: int = 60) -> None:
        """Follow every link from these pages on.

        Of a kind of page `most` are read, so many captures, and all other records.
        """
        waiting, counts = [*starts], Counter[str]()
        while waiting:
            path = waiting.pop(0)
            kind = "capture" if _CAPTURE.search(path) else name_kind(path)
            limit = {"record": 1000, "capture": records}.get(kind, most)
            if path not in self.pages and (path in starts or counts[kind] < limit):
                counts[kind] += 1
                waiting += self.visit(path)

    def kinds(self) -> dict[str, str]:
        """Return the longest page of each kind, by the kind's name."""
        found: dict[str, str] = {}
        for path, body in sorted(self.pages.items(), key=lambda one: -len(one[1])):
            found.setdefault(name_kind(path, body, self.status[path]), path)
        return dict(sorted(found.items()))


def name_kind(path: str, body: bytes = b"", status: int = 200) -> str:
    """Return the kind of a page: its route, what it shows, its status and its language."""
    parts = urlsplit(path)
    arguments = dict(parse_qsl(parts.query, keep_blank_values=True))
    route = parts.path.split("/")[1]
    found = [route or "overview", arguments.get("verb", ""), arguments.get("match", "")]
    if route == "record":
        kind = re.search(rb'"@type": ?"(\w+)"', body)
        found += [kind[1].decode() if kind else "deleted" if body else ""]
        if found[-1] == "CreativeWork":
            label = re.search(r'class="over">([^<]+)', body.decode())
            found += ["harvested" if label and "har" in label[1] else "own"]
        found += ["image"] if b'class="thumb' in body else []
    found += ["found"] if route == "search" and arguments.get("q") else []
    found += ["days"] if route == "captures" and arguments.get("from", "").isdigit() else []
    found += ["in"] if {"under", "kind"} & {*arguments} else []
    found += [str(status)] if status != 200 else []
    return "-".join(filter(None, (*found, arguments.get("lang"))))
