"""Content: the bytes of a version, checked against the digest in the log of its run."""

import hashlib
import io
from collections.abc import Iterator
from contextlib import closing
from typing import Any, BinaryIO, cast

from builder.obi.row import Version
from builder.store.reading import chunks
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Reader


def read(store: Reader, version: Version) -> bytes:
    """Return the bytes of a version. Raises MissingObject, and DamagedStore if they differ."""
    data = store.read(version.key)
    if hashlib.sha256(data).hexdigest() != version.sha256:
        raise _damage(version.key)
    return data


def open(store: Reader, version: Version) -> BinaryIO:
    """Return the bytes of a version as a stream that is read forwards; the caller closes it.

    Raises MissingObject. The stream raises DamagedStore at its end if the bytes differ.
    """
    raw = _Checked(store.open(version.key), version)
    return cast(BinaryIO, io.BufferedReader(raw, 1 << 16))


def digest(store: Reader, key: str) -> tuple[str, int]:
    """Return SHA-256 and size of the object at `key`, read in parts. Raises MissingObject."""
    found, size = hashlib.sha256(), 0
    for chunk in parts(store, key):
        found.update(chunk)
        size += len(chunk)
    return found.hexdigest(), size


def parts(store: Reader, key: str, sha256: str | None = None) -> Iterator[bytes]:
    """Yield the object at `key` in parts.

    Raises MissingObject, and DamagedStore at the end if its SHA-256 is not `sha256`.
    """
    found = hashlib.sha256()
    with closing(store.open(key)) as source:
        for chunk in chunks(source, key):
            if sha256 is not None:
                found.update(chunk)
            yield chunk
    if sha256 not in (None, found.hexdigest()):
        raise _damage(key)


class _Checked(io.RawIOBase):
    def __init__(self, source: BinaryIO, version: Version) -> None:
        self._source = source
        self._version = version
        self._digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read(len(buffer))
        if not data and self._digest.hexdigest() != self._version.sha256:
            raise _damage(self._version.key)
        self._digest.update(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._source.close()
        super().close()


def _damage(key: str) -> DamagedStore:
    return DamagedStore(f"{key} is damaged: its bytes differ from those stored")
