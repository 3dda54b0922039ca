"""The files of a site in a store or folder, each document with its gzip beside it."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from functions.http.http_message import compress
from functions.snapshot.errors import MissingObject
from functions.snapshot.store import Writer

GZIP = ".gz"
_PACKED = (".xml", ".xsd", ".html")


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
            self._replace(self.folder + part, content)

    def write_all(self, documents: Iterable[tuple[str, bytes]]) -> None:
        """Write many files, most of them new. Raises as `write` does."""
        ahead: deque[tuple[str, bytes]] = deque()

        def list_parts() -> Iterator[tuple[str, bytes]]:
            for name, data in documents:
                for part, content in self._pack(name, data):
                    ahead.append((self.folder + part, content))
                    yield ahead[-1]

        for is_new in self.store.create_all(list_parts()):
            key, content = ahead.popleft()
            if is_new:
                self._count(content)
            elif self.store.read(key) != content:
                self._replace(key, content)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files with what lies beside them."""
        keys = [self.folder + part for name in names for part in (name, name + GZIP)]
        if keys:
            self.store.remove(*keys)

    def list_names(self) -> Iterator[str]:
        """Yield the names of all files, in byte order."""
        return (key.removeprefix(self.folder) for key in self.store.keys(self.folder))

    def expect(self, name: str) -> tuple[str, ...]:
        """Return the names of a document and of what lies beside it."""
        return (name, name + GZIP) if self.is_packed and name.endswith(_PACKED) else (name,)

    def _pack(self, name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
        for part in reversed(self.expect(name)):
            yield part, data if part == name else compress(data)

    def _replace(self, key: str, content: bytes) -> None:
        self.store.replace(key, content, self.store.tag(key))
        self._count(content)

    def _count(self, content: bytes) -> None:
        self.count += 1
        self.size += len(content)
