"""Store on a web server or in a public bucket: it is read by plain GET, and never written.

A web server has no listing. Snapshots and data files are listed from the kept manifests. Other
objects (the intake, the obi store, files of datasets) cannot be listed.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, NoReturn

from builder.errors import UsageError
from builder.threads import map_in_order
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject, StoreError
from functions.snapshot.layout import WebAddress
from functions.snapshot.store import ListedObject
from functions.store.catalog import Catalogue
from functions.store.connection import BucketConnection, ObjectClient
from functions.store.store_reader import BucketReader

_CLIENT = "functions.store.client"
_THREADS = 8
_AHEAD = 64
_UNKNOWN = datetime.fromtimestamp(0, UTC)


class UnlistedError(StoreError):
    """The store has no listing of these objects."""


class WebStore(BucketReader):
    """Store below a URL; implements functions.snapshot.store.Writer, but refuses to write.

    Local copies of read objects are kept until it is closed or the process ends.
    """

    def __init__(self, address: WebAddress, client: ObjectClient) -> None:
        self._client = client
        super().__init__(address, client, None)

    def read(self, key: str) -> bytes:
        """Return the whole object. Raises StoreError, also without a pointer: it is no store."""
        try:
            return super().read(key)
        except MissingObject as error:
            if key == layout.POINTER:
                raise StoreError(f"{error}: it is no store, or not open to readers") from error
            raise

    def folds_case(self) -> bool:
        """Return False: nothing is written here."""
        return False

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the existing keys that kept snapshots name. Raises UnlistedError for others."""
        yield from (entry.key for entry in self.entries(prefix))

    def entries(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the existing objects that kept snapshots name; each takes a request.

        Raises UnlistedError for the places of other objects.
        """
        named = sorted(key for key in self._names(prefix) if key.startswith(prefix))
        sizes = map_in_order(self.size, named, _THREADS, _AHEAD)
        for key, size in zip(named, sizes, strict=True):
            if size is not None:
                yield ListedObject(key, size, _UNKNOWN)

    def folders(self, prefix: str) -> list[str]:
        """Return the folders of the kept snapshots. Raises UnlistedError for other places."""
        if prefix != layout.SNAPSHOTS:
            self.refuse_list(prefix)
        return [f"{layout.SNAPSHOTS}{number}/" for number in self._numbers()]

    def _names(self, prefix: str) -> set[str]:
        if not prefix.startswith((layout.RECORDS, layout.SNAPSHOTS)):
            self.refuse_list(prefix)
        catalogue, names = Catalogue(self), {layout.WITNESS}
        files = prefix.startswith(layout.RECORDS)
        for number in self._numbers():
            names.update(layout.snapshot_keys(number))
            with suppress(MissingObject, DamagedStore):
                manifest = catalogue.manifest(number)
                for table, references in manifest.tables.items():
                    names.update(reference.key for reference in references)
                    if files:
                        names.update(file.key for file in catalogue.files(manifest, table))
        return names

    def _numbers(self) -> list[int]:
        """Return the numbers of the kept snapshots, ascending."""
        catalogue = Catalogue(self)
        pointer = catalogue.pointer()
        newest = pointer.newest()
        if newest is None:
            return []
        skipped: Collection[int] = ()
        with suppress(MissingObject, DamagedStore):
            skipped = catalogue.manifest(newest.snapshot).skipped
        every = range(1, newest.snapshot + 1)
        return [n for n in every if n not in skipped and not pointer.is_retired(n)]

    def refuse_write(self, *arguments: Any, **named: Any) -> NoReturn:
        """Raise UsageError: every method that writes is this one."""
        raise UsageError(f"{self.address}: a store at a web address can only be read")

    put = create = create_file = creating = create_all = refuse_write
    replace = replace_all = remove = refuse_write

    def refuse_list(self, prefix: str) -> NoReturn:
        """Raise UnlistedError."""
        raise UnlistedError(
            f"{self.address}: a web address has no listing, so {prefix or 'all objects'} cannot be "
            "listed: use the folder or the bucket itself"
        )


def open_web_store(address: WebAddress, connection: BucketConnection) -> WebStore:
    """Return the store at a URL."""
    # Functions that publish never read one, and are packed without the library of this client.
    return WebStore(address, import_module(_CLIENT).WebClient(address.url, connection))
