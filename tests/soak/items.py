"""Items of a writer as the soak test expects them, and the sources that they are ingested from.

Each writer has items of its own, so what an item must be depends on its writer alone.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from functions.snapshot import oai_name
from tests.builder.redif.trees import archive, paper, tree
from tests.e2e.conftest import warc

NAMESPACE = "soak.example"
_DATE = "2007-11-05T12:00:00Z"


@dataclass(frozen=True)
class Item:
    """What harvesters must see of an item: title, collections, and whether it is deleted.

    A template's title has its version. `withdrawn` items are deleted until they are reinstated.
    `collections` is empty for templates.
    """

    identifier: str
    title: str
    collections: frozenset[str] = frozenset()
    withdrawn: bool = False
    removed: bool = False

    @property
    def deleted(self) -> bool:
        """Return whether harvesters see a tombstone."""
        return self.withdrawn or self.removed


@dataclass(frozen=True)
class Archive:
    """A web archive with pages, of which no one changes; `number` names it within its writer."""

    writer: str
    number: int
    pages: int

    @property
    def urls(self) -> list[str]:
        """Return the URLs of its captures, in order."""
        host = f"http://{self.writer}.example.cz"
        return [f"{host}/{self.number}/{page}" for page in range(self.pages)]

    def items(self) -> Iterable[Item]:
        """Return its items as its first ingest makes them."""
        for url in self.urls:
            digest = base64.b32encode(hashlib.sha1(_body(url)).digest()).decode()
            name = oai_name.capture_identity(url.encode(), _DATE, 200, digest)
            yield Item(f"oai:{NAMESPACE}:{name}", _title(url))

    def write(self, folder: Path) -> Path:
        """Write the file, unless it is there: the time of a file tells ingest that it changed."""
        path = folder / f"{self.writer}-{self.number}.warc.gz"
        if not path.exists():
            draft = warc(path.with_suffix(".draft"), {url: _body(url) for url in self.urls}, _DATE)
            draft.rename(path)
        return path


def handle(code: str, number: int) -> str:
    """Return the handle of a paper of the writer's RePEc archive."""
    return f"RePEc:{code}:wpaper:{number}"


def template(code: str, number: int, version: int) -> Item:
    """Return the item of a paper's template in a version."""
    identifier = f"oai:{NAMESPACE}:{handle(code, number)}"
    return Item(identifier, f"Paper {number} of {code}, version {version}")


def write_tree(folder: Path, code: str, papers: Mapping[int, Item]) -> Path:
    """Write the RePEc archive of a writer with these papers, by number; return its folder."""
    text = b"\n".join(
        paper(number, item.title, archive=code) for number, item in sorted(papers.items())
    )
    return tree(folder / f"tree-{code}", {**archive(code), f"{code}/wpaper/all.rdf": text})


def _title(url: str) -> str:
    return f"Page {url.partition('//')[2]}"


def _body(url: str) -> bytes:
    return f"<title>{_title(url)}</title>".encode()
