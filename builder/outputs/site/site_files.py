"""The files of a site in a store or folder, each document with its gzip beside it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from functions.http.http_message import compress
from functions.snapshot.errors import MissingObject
from functions.snapshot.store import Writer

GZIP = ".gz"
_PACKED = (".xml", ".xsd", ".html", ".css", ".js", ".atom")


@dataclass(slots=True)
class SiteFiles:
    """Reads and writes names below `folder` of a store; counts the files and bytes written.

    With `is_packed`, each document has a gzip beside it, which is written first.
    """

    store: Writer
    folder: str
    is_packed: bool = True
    count: int = field(default=0, init=False)
    size: int = field(default=0, init=False)

    def read(self, name: str) -> bytes:
        """Return a file. Raises MissingObject and StoreError."""
        return self.store.read(self.folder + name)

    def find(self, name: str) -> bytes | None:
        """Return a file, None if it is missing. Raises StoreError."""
        try:
            return self.read(name)
        except MissingObject:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write or replace a file. Raises Conflict and StoreError."""
        for part, content in self._pack(name, data):
            key = self.folder + self._count(part, content)
            self.store.replace(key, content, self.store.tag(key))

    def write_all(self, documents: Iterable[tuple[str, bytes]]) -> None:
        """Write or replace many files, in any order. Raises as `write` does."""
        parts = (part for named in documents for part in self._pack(*named))
        self.store.replace_all((self.folder + self._count(*part), part[1]) for part in parts)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files. Raises StoreError."""
        self.store.remove(*(self.folder + name for name in names))

    def list_names(self, beginning: str = "") -> Iterator[str]:
        """Yield the names of all files that begin so, in byte order."""
        return (key.removeprefix(self.folder) for key in self.store.keys(self.folder + beginning))

    def _pack(self, name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
        for part in reversed(list_parts(name, is_packed=self.is_packed)):
            yield part, data if part == name else compress(data)

    def _count(self, name: str, content: bytes) -> str:
        """Count a file that is written, and return its name."""
        self.count += 1
        self.size += len(content)
        return name


def list_parts(name: str, *, is_packed: bool) -> tuple[str, ...]:
    """Return the names of a document and, if such are packed, of the gzip beside it."""
    return (name, name + GZIP) if is_packed and name.endswith(_PACKED) else (name,)
