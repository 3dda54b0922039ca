"""Writable store in an S3 bucket, and the opening of any store by its address.

S3 needs no lock: an object appears complete, and a conditional write (If-Match, If-None-Match) is
atomic. If a server ignored conditions, two publishers could overwrite each other unnoticed. So the
server is tested before the first such write.
"""

import io
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from builder.store.client import DeadUploadError, S3Client
from builder.store.folder import FolderStore
from builder.store.multipart import Multipart
from builder.store.web_store import WebStore, open_web_store
from builder.threads import map_in_order
from functions.config.configuration import Configuration
from functions.snapshot.errors import Conflict, StoreError
from functions.snapshot.layout import SITE, StoreAddress, WebAddress, is_key
from functions.snapshot.store import ListedObject, Sink
from functions.store.connection import BucketConnection
from functions.store.mirror import SMALL
from functions.store.s3_request import UnsupportedRequest
from functions.store.store_reader import BucketReader, remote_of

_LONGEST = 1024  # bytes of an S3 key; some compatible servers do not check it
_THREADS = 16
_CHUNK = 1 << 20  # bytes
_AHEAD = 64  # small objects in memory at a time
_UPLOADS = 3  # begun for an object at most
_EXACT = 1 << 15  # bytes: a publish reads many row groups in parallel, so bytes count

_MEDIA_TYPES = {
    "atom": "application/atom+xml",
    "css": "text/css",
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/vnd.microsoft.icon",
    "js": "text/javascript",
    "json": "application/json",
    "jsonld": "application/ld+json",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "xml": "text/xml; charset=utf-8",
    "xsd": "application/xml",
}

PROOF = ".conditional"
"""Key of the object that tests whether the server honours conditions; never listed."""


class S3Store(BucketReader):
    """Store in a bucket below a prefix; implements functions.snapshot.store.Writer.

    Local copies of the objects read and written are kept until the store is closed or the process
    ends, because a publish reads them more than once.
    """

    def __init__(
        self, address: StoreAddress, connection: BucketConnection, environment: Mapping[str, str]
    ) -> None:
        self._client = S3Client(address, connection, environment)
        super().__init__(address, self._client, None, small=_EXACT)
        self._prefix = address.prefix
        self._proof = threading.Lock()
        self._proved = False

    def put(self, key: str, source: BinaryIO) -> None:
        """Write an object that is named by its content; an existing one is kept.

        An object larger than a part is sent in parts, a few of which are in memory at a time. A
        small one takes one request. A local file is kept as well, because a publish reads again
        what it wrote.
        """
        name = self._name(key)
        start = source.tell()
        rest = _find_rest(source)
        if rest is not None and rest <= SMALL:
            with suppress(Conflict):
                self.create(key, source.read())
        elif not self._client.has(name):
            self._send(name, source)
        path = getattr(source, "name", None)
        if start == 0 and isinstance(path, str | Path):
            self.cache.adopt(name, Path(path))

    def _send(self, name: str, source: BinaryIO) -> None:
        width, start = self._client.connection.concurrency, source.tell()
        for left in reversed(range(_UPLOADS)):
            try:
                with Multipart(self._client, name, width, most=_find_rest(source)) as sink:
                    while chunk := source.read(_CHUNK):
                        sink.write(chunk)
                    sink.end()
                return
            except DeadUploadError:
                if not left or not source.seekable():
                    raise
                source.seek(start)

    def create(self, key: str, data: bytes) -> None:
        """Write a new object. Raises Conflict if it exists."""
        name = self._name(key)
        self.prove()
        self._client.put_if(name, data, None)

    def create_file(self, key: str, path: Path) -> None:
        """Write a new object from a file. Raises Conflict if it exists.

        It takes one request for any size, and only a little of the object is in memory.
        """
        name = self._name(key)
        self.prove()
        self._client.put_file_if_absent(name, path)

    @contextmanager
    def creating(self, key: str, most: int | None = None) -> Iterator[Sink]:
        """Context that writes a new object as its bytes arrive. Raises Conflict if it exists.

        Raises DeadUploadError if all has to be written again.
        """
        name = self._name(key)
        self.prove()
        with Multipart(self._client, name, probe=self._address.key(PROOF), most=most) as sink:
            yield sink
            sink.end()

    def create_all(self, objects: Iterable[tuple[str, bytes]]) -> Iterator[bool]:
        """Write new objects, 16 in parallel; yield for each whether it was written."""
        return map_in_order(self._try_create, objects, _THREADS, _AHEAD)

    def _try_create(self, named: tuple[str, bytes]) -> bool:
        try:
            self.create(*named)
        except Conflict:
            return False
        return True

    def replace_all(self, objects: Iterable[tuple[str, bytes]]) -> None:
        """Write objects, 16 in parallel; existing ones are replaced. Raises Conflict."""
        for _ in map_in_order(self._put, objects, _THREADS, _AHEAD):
            pass

    def _put(self, named: tuple[str, bytes]) -> None:
        try:
            self.replace(*named, None)
        except Conflict:
            self.replace(*named, self.tag(named[0]))

    def folds_case(self) -> bool:
        """Return False: the keys of any bucket are case-sensitive."""
        return False

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        """Replace the object if its tag is still `tag`; return the new one. Raises Conflict."""
        name = self._name(key)
        self.prove()
        return self._client.put_if(name, data, tag, _describe(key))

    def remove(self, *keys: str) -> None:
        """Remove the objects, many with one request; a missing object is not an error."""
        names = [self._address.key(key) for key in keys]
        if names:
            self.cache.forget(*names)
            self._client.remove(names)

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys that begin with `prefix`, in byte order."""
        yield from (entry.key for entry in self.entries(prefix))

    def entries(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the entry of each object whose key begins with `prefix`, in byte order of the keys.

        Raises StoreError for an object whose key is not valid in a store.
        """
        root = self._root()
        listing = [
            replace(listed, key=listed.key.removeprefix(root))
            for listed in self._client.list(root + prefix[: prefix.rfind("/") + 1])[0]
            if not _marks_a_folder(listed)
        ]
        # Not every server lists in byte order, and only AWS documents it.
        for entry in sorted(listing, key=lambda entry: entry.key.encode()):
            if not is_key(entry.key):
                raise StoreError(
                    f"{self.address} has {root + entry.key!r}, which is not a key of Sheaf; "
                    "remove that object with the server's tools"
                )
            if entry.key.startswith(prefix) and not entry.key.startswith("."):
                yield entry

    def folders(self, prefix: str) -> list[str]:
        """Return the objects directly below a folder, and the folders with `/` at the end."""
        root = self._root()
        objects, folders = self._client.list(root + prefix, "/")
        names = [*folders, *(listed.key for listed in objects if not _marks_a_folder(listed))]
        return sorted(name.removeprefix(root) for name in names)

    def abort_uploads(self, prefix: str, before: datetime) -> int:
        """Abort the uploads in parts below `prefix` that began before then; return their number.

        A killed process leaves them, and they are charged for. Raises StoreError.
        """
        return self._client.abort_uploads(self._root() + prefix, before)

    def _root(self) -> str:
        return f"{self._prefix}/" if self._prefix else ""

    def _name(self, key: str) -> str:
        """Return the bucket's key for an object to be written.

        Raises StoreError if it is too long.
        """
        name = self._address.key(key)
        if len(name.encode()) > _LONGEST:
            raise StoreError(
                f"{self.address}: the key {key} would be longer than the {_LONGEST:,} bytes that "
                "S3 allows; use a shorter prefix"
            )
        return name

    def prove(self) -> None:
        """Test, once, that this bucket may be written, and that a condition not met is rejected.

        Raises StoreError.
        """
        with self._proof:
            if self._proved:
                return
            name = self._address.key(PROOF)
            if self._try_write(name, None) and self._try_write(name, None):
                self._refuse("If-None-Match")
            if self._try_write(name, '"no-such-tag"'):
                self._refuse("If-Match")
            self._proved = True

    def _try_write(self, name: str, tag: str | None) -> bool:
        # Each write is unique, so that it is not taken for an earlier one whose response was lost.
        data = (
            "Sheaf uses this object to check that the server honours conditions: "
            f"{secrets.token_hex(8)}\n"
        )
        try:
            self._client.put_once(name, data.encode(), tag)
        except Conflict:
            return False
        except UnsupportedRequest:
            self._refuse("If-None-Match" if tag is None else "If-Match")
        return True

    def _refuse(self, header: str) -> None:
        raise StoreError(
            f"{self.address}: this server does not honour {header}, so two publishers "
            "could overwrite each other: see docs/operations/places.md for servers that do"
        )


def _find_rest(source: BinaryIO) -> int | None:
    """Return the number of bytes that follow in a stream; None if it cannot tell."""
    if not source.seekable():
        return None
    start = source.tell()
    size = source.seek(0, io.SEEK_END) - start
    source.seek(start)
    return size


def _marks_a_folder(listed: ListedObject) -> bool:
    """Return whether it is an empty object by which S3's console shows a folder."""
    return listed.bytes == 0 and listed.key.endswith("/")


Store = FolderStore | S3Store | WebStore


def open_store(
    uri: str, base: Path, settings: Configuration, environment: Mapping[str, str]
) -> Store:
    """Return the store at `uri`: a bucket, a web address, or a folder's path relative to `base`.

    Raises StoreError for any other address, and for a file.
    """
    at = remote_of(uri)
    if isinstance(at, WebAddress):
        return open_web_store(at, BucketConnection.of(settings))
    if at is not None:
        return S3Store(at, BucketConnection.of(settings), environment)
    root = (base / uri).resolve()
    if root.exists() and not root.is_dir():
        raise StoreError(f"{root} is a file, and a store is a folder")
    return FolderStore(root)


def _describe(key: str) -> Mapping[str, str]:
    """Return how a host must send an object that answers without a server, by its name."""
    name = key.removesuffix(".gz")
    media_type = _MEDIA_TYPES.get(name.rpartition(".")[2])
    if media_type is None or not key.startswith(SITE):
        return {}
    return {"ContentType": media_type, **({"ContentEncoding": "gzip"} if name != key else {})}
