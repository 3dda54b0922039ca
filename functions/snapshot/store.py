"""Protocols of object storage: a folder or a bucket."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object in a listing: key, size in bytes, modification time (UTC), a bucket's ETag."""

    key: str
    bytes: int
    modified: datetime
    tag: str = ""


class Sink(Protocol):
    """Receives the bytes of an object in order."""

    def write(self, data: bytes) -> int:
        """Write data and return its length. Raises StoreError."""
        ...

    def flush(self) -> None:
        """Do nothing; writers of files call it."""
        ...


class Reader(Protocol):
    """Reads objects by key; keys are relative, with `/` between their parts.

    Every method raises MissingObject if the object does not exist, and StoreError if the store does
    not answer.
    """

    @property
    def address(self) -> str:
        """The store's address for messages: a folder's path or a URI."""
        ...

    def read(self, key: str) -> bytes:
        """Return the whole object."""
        ...

    def open(self, key: str) -> BinaryIO:
        """Return the object as a stream for forward reading; the caller closes it."""
        ...

    def local(
        self, key: str, spans: Sequence[tuple[int, int]] | None = None, size: int | None = None
    ) -> Path:
        """Return a file of the object's size in which `spans` (offset, length) are correct.

        Without `spans`, the whole file is correct. If the object's `size` in bytes is known, fewer
        bytes are fetched. The file belongs to the reader: do not write to it.
        """
        ...

    def forget(self, key: str) -> None:
        """Drop local copies of an object that proved damaged; the object itself may be repaired."""
        ...

    def close(self) -> None:
        """Release local resources; nothing can be read afterwards."""
        ...


class Writer(Reader, Protocol):
    """Also writes. Writes are atomic: a concurrent reader sees a whole object or no object."""

    def put(self, key: str, source: BinaryIO) -> None:
        """Write an object that is named by its content; an existing one stays."""
        ...

    def create(self, key: str, data: bytes) -> None:
        """Write a small new object. Raises Conflict if it exists."""
        ...

    def create_file(self, key: str, path: Path) -> None:
        """Write a new object from a local file, with a small part in memory at a time.

        Raises Conflict if the object exists, and also if its own write was sent twice.
        """
        ...

    def creating(self, key: str, most: int | None = None) -> AbstractContextManager[Sink]:
        """Write a new object of unknown size; only a small part is in memory or on the local disk.

        `most` is the number of bytes that can come: a bucket takes at most 10,000 equal parts.
        The object exists once the block ends; if the block raises, nothing is written. Raises
        Conflict if the object exists, at the end of the block at the latest.
        """
        ...

    def create_all(self, objects: Iterable[tuple[str, bytes]]) -> Iterator[bool]:
        """Write many small objects; yield for each, in order, whether it was written.

        An existing object stays. All writes are durable when the iterator ends.
        """
        ...

    def replace_all(self, objects: Iterable[tuple[str, bytes]]) -> None:
        """Write many objects, whether they exist or not; all are durable when it returns.

        They are written in any order. Raises Conflict if another process replaces one meanwhile.
        """
        ...

    def folds_case(self) -> bool:
        """Return whether keys that differ only in case are the same here, as on some disks."""
        ...

    def tag(self, key: str) -> str | None:
        """Return a tag that changes whenever the object changes, or None if it does not exist."""
        ...

    def size(self, key: str) -> int | None:
        """Return the object's size in bytes, or None if it does not exist; nothing is listed."""
        ...

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        """Replace the object if its tag is still `tag` (None: if absent); return the new tag.

        Raises Conflict if another process replaced it meanwhile.
        """
        ...

    def remove(self, *keys: str) -> None:
        """Remove the objects; a missing one is not an error."""
        ...

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys that begin with `prefix`, in byte order."""
        ...

    def entries(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the listing of each object whose key begins with `prefix`, in byte order."""
        ...

    def folders(self, prefix: str) -> list[str]:
        """Return the direct children of a folder: objects, and folders with `/` at the end."""
        ...
