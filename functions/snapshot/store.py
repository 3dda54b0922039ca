"""The seam between Sheaf and where its objects lie: a folder, or a bucket."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol


@dataclass(frozen=True, slots=True)
class ListedObject:
    """What a store lists of an object: key, size in bytes, and when it was written (UTC)."""

    key: str
    bytes: int
    modified: datetime


class Sink(Protocol):
    """Takes the bytes of an object one after the other."""

    def write(self, data: bytes) -> int:
        """Take some more, and return how many. Raises StoreError."""
        ...

    def flush(self) -> None:
        """Do nothing: what writes into files asks for it."""
        ...


class Reader(Protocol):
    """Reads objects by key; keys are relative, with `/` between their parts.

    Every method raises MissingObject where there is no such object, and StoreError where the
    store itself does not answer.
    """

    @property
    def address(self) -> str:
        """The store's own address, as people write it: a folder's path or a URI."""
        ...

    def read(self, key: str) -> bytes:
        """Return the whole object."""
        ...

    def open(self, key: str) -> BinaryIO:
        """Return the object as a stream that is read forwards; it is to be closed."""
        ...

    def parts(self, key: str, size: int, spans: Sequence[tuple[int, int]]) -> Sequence[Path]:
        """Return files that hold the `spans`, ascending, of an object of `size` bytes.

        A span's bytes lie where they lie in the object. It has a file of its own that ends where
        the span ends, or all of them lie in one that is the whole object.
        """
        ...

    def local(self, key: str, spans: Sequence[tuple[int, int]] | None = None) -> Path:
        """Return a file of the object's size in which at least `spans` (offset, length) are right.

        Without `spans` the whole file is right. The file is the reader's: do not write to it.
        """
        ...

    def close(self) -> None:
        """Let go of what it keeps on this machine; nothing can be read any more."""
        ...


class Writer(Reader, Protocol):
    """Also writes. Whoever reads meanwhile sees an object whole or not at all."""

    def put(self, key: str, source: BinaryIO) -> None:
        """Write an object that is named by its content; one that is there already stays."""
        ...

    def create(self, key: str, data: bytes) -> None:
        """Write a small object that must not be there yet. Raises Conflict if it is."""
        ...

    def create_file(self, key: str, path: Path) -> None:
        """Write an object out of a file of this machine, little of which is in memory at a time.

        It must not be there yet. Raises Conflict if it is, and where its own write was made twice.
        """
        ...

    def creating(self, key: str) -> AbstractContextManager[Sink]:
        """Write an object whose size is not known; little of it is in memory, or on this disk.

        It is there once the block ends, and nothing of it is if that raises. It must not be there
        yet. Raises Conflict if it is: at the block's end, if not before.
        """
        ...

    def create_all(self, objects: Iterable[tuple[str, bytes]]) -> Iterator[bool]:
        """Write small objects, many at once; tell of each, in their order, whether it was written.

        One that is there already stays. What was written is sure to last at the iterator's end.
        """
        ...

    def folds_case(self) -> bool:
        """Tell whether keys that differ by case alone are one here, as on some disks."""
        ...

    def tag(self, key: str) -> str | None:
        """Return a tag that changes whenever the object does, or None where there is none."""
        ...

    def size(self, key: str) -> int | None:
        """Return how many bytes the object has, or None where there is none; nothing is listed."""
        ...

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        """Replace the object if its tag is still `tag` (None: if absent); return the new tag.

        Raises Conflict if somebody else has replaced it meanwhile.
        """
        ...

    def remove(self, *keys: str) -> None:
        """Remove the objects; one that is not there is no error."""
        ...

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys that begin with `prefix`, in the order of their bytes."""
        ...

    def entries(self, prefix: str) -> Iterator[ListedObject]:
        """Yield what is listed of each object whose key begins with `prefix`, in that order."""
        ...

    def folders(self, prefix: str) -> list[str]:
        """Return what lies directly below a folder: objects, and folders with `/` at the end."""
        ...
