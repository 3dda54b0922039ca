"""Read access to a store in a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from functions.snapshot.errors import MissingObject, StoreError


class FolderReader:
    """Reads the objects of a store in a folder; implements functions.snapshot.store.Reader."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def address(self) -> str:
        """The folder's path."""
        return str(self.root)

    def read(self, key: str) -> bytes:
        """Return the whole object. Raises MissingObject or StoreError."""
        try:
            return self.path(key).read_bytes()
        except FileNotFoundError as error:
            raise MissingObject(f"{self.root} has no {key}") from error
        except OSError as error:
            raise StoreError(f"{self.path(key)} cannot be read: {error.strerror}") from error

    def open(self, key: str) -> BinaryIO:
        """Return the object's own file, open for reading."""
        try:
            return self.path(key).open("rb")
        except FileNotFoundError as error:
            raise MissingObject(f"{self.root} has no {key}") from error
        except OSError as error:
            raise StoreError(f"{self.path(key)} cannot be read: {error.strerror}") from error

    def parts(self, key: str, size: int, spans: Sequence[tuple[int, int]]) -> Sequence[Path]:
        """Return the object's own file."""
        return [self.local(key, spans)]

    def local(self, key: str, spans: Sequence[tuple[int, int]] | None = None) -> Path:
        """Return the object's own file, which is complete."""
        path = self.path(key)
        try:
            there = path.is_file()
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error
        if not there:
            raise MissingObject(f"{self.root} has no {key}")
        return path

    def size(self, key: str) -> int | None:
        """Return the size of the object in bytes, or None if it does not exist."""
        path = self.path(key)
        try:
            return path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error

    def close(self) -> None:
        """Do nothing: no local copies are kept."""

    def path(self, key: str) -> Path:
        """Return the path of the object.

        Raises ValueError for a key that leads out of the store.
        """
        parts = key.split("/")
        if not all(parts) or {".", ".."} & set(parts) or "\0" in key:
            raise ValueError(f"{key!r} is not a key of a store")
        return self.root.joinpath(*parts)
