"""Builds the content application, and the contents of a store, from the configuration.

Slices of a bucket are cached, because a described record is usually read next.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, cast

from functions.config.configuration import Configuration
from functions.content.archived_payload import read_pieces
from functions.content.archives import PlacedArchives
from functions.content.contents import ArchivedContents
from functions.content.handler import ContentApplication
from functions.content.search import CaptureSearch
from functions.content.stored import ObjectReader
from functions.http import aws, http_message
from functions.http.http_message import Call, HttpResponse
from functions.http.lambda_instance import InstanceParts, now
from functions.http.service import Service
from functions.reading.duck_repository import DuckRepository
from functions.snapshot.layout import S3_SCHEME, StoreAddress
from functions.store import slice
from functions.store.catalog import Cache
from functions.store.client import Signer
from functions.store.connection import BucketConnection
from functions.store.files import FILE
from functions.store.slice import Slices
from functions.store.store_reader import remote_of
from functions.store.window_stream import PieceStream

SMALL = 1 << 20
"""Bytes of the first request for a slice: most records are smaller."""

_PATHS = f"SELECT DISTINCT path FROM {FILE} WHERE source = $name ORDER BY path"
Answer = Callable[[Call], HttpResponse]


class KeptSlices:
    """Implements functions.store.slice.Slices over a bucket's slices. Thread-safe.

    One request fetches the first SMALL bytes of a slice, which are cached. The rest is requested
    only when it is read.
    """

    def __init__(self, slices: Slices, capacity: int = 16 << 20) -> None:
        """`capacity` is the size of the cache in bytes."""
        self._slices = slices
        self._cache = Cache(capacity)
        self.size = slices.size
        self.bucket = slices.bucket

    @property
    def address(self) -> str:
        """The address for messages."""
        return self._slices.address

    def open(self, key: str, offset: int, length: int | None) -> BinaryIO:
        """Return bytes of an object (see Slices.open)."""
        first = SMALL if length is None else min(length, SMALL)
        at = (key, offset, first)
        data: bytes | None = self._cache.find(at)
        if data is None:
            with self._slices.open(key, offset, first) as stream:
                data = io.BufferedReader(cast(io.RawIOBase, stream), first or 1).read()
            self._cache.add(at, data, len(data) + 256)
        if len(data) < first or length == first:
            return io.BytesIO(data)
        left = None if length is None else length - first

        def pieces() -> Iterator[bytes]:
            yield data
            with self._slices.open(key, offset + first, left) as stream:
                yield from read_pieces(stream)

        return cast(BinaryIO, PieceStream(pieces()))


def open_archives(
    repository: DuckRepository,
    uri: str,
    base: Path,
    settings: Configuration,
    environment: Mapping[str, str],
) -> PlacedArchives:
    """Return a reader of the archive files of the store at `uri`, relative to `base`.

    `base` is the folder of the configuration; other folders are also relative to it. Raises
    StoreError if the address is invalid.
    """
    reached = Cache()

    def reads(place: str) -> Slices:
        return reached.get(place, lambda: _slices(place, base, settings, environment))

    def reads_recorded(place: str) -> Slices:
        return reached.get((place,), lambda: _recorded_slices(place, base, settings, environment))

    places = [reads(place) for place in settings["content.archives"]]
    beside = None if remote_of(uri) else (base / uri).resolve().parent
    return PlacedArchives(places, reads(uri), _path_finder(repository, beside), reads_recorded)


def open_contents(
    repository: DuckRepository,
    uri: str,
    base: Path,
    settings: Configuration,
    environment: Mapping[str, str],
) -> ArchivedContents:
    """Return the contents of the store at `uri` (see `archives`)."""
    placed = open_archives(repository, uri, base, settings, environment)
    objects = ObjectReader(repository.catalogue, repository.files)
    prefix = settings["redif.identifier_prefix"]
    return ArchivedContents(repository, objects, placed, prefix)


def _path_finder(repository: DuckRepository, beside: Path | None) -> Callable[[str], Sequence[str]]:
    """Return a function of a name: the paths at which files of that name were ingested.

    Relative paths are relative to the configuration's folder. If only the store's address is known,
    they are also tried in the folder `beside` the store.
    """
    latest = 0

    def find(name: str) -> Sequence[str]:
        nonlocal latest
        newest = repository.pointer().newest()
        if newest is None:
            return ()
        # An old pointer that was restored must not lead to an older snapshot.
        latest = max(latest, newest.snapshot)
        manifest = repository.manifest(latest)
        files = repository.catalogue.groups(manifest, "sources", name, name)
        paths = [path for (path,) in repository.files.look_up(_PATHS, files, name=name)]
        relative = [path for path in paths if not Path(path).is_absolute() and "://" not in path]
        return [*paths, *(str(beside / path) for path in relative if beside)]

    return find


def _slices(
    place: str, base: Path, settings: Configuration, environment: Mapping[str, str]
) -> Slices:
    slices = slice.open_slices(place, base, settings, environment)
    return KeptSlices(slices) if slices.bucket("x")[0] else slices


def _recorded_slices(
    place: str, base: Path, settings: Configuration, environment: Mapping[str, str]
) -> Slices:
    """Return the slices below the folder of an ingested file.

    In a bucket it may have a name that no configured address has, as `a?b` or `a#b`.
    """
    if not place.startswith(S3_SCHEME):
        return _slices(place, base, settings, environment)
    bucket, _, prefix = place.removeprefix(S3_SCHEME).partition("/")
    at, connection = StoreAddress(bucket, prefix), BucketConnection.serving(settings)
    return KeptSlices(slice.BucketSlices(at, slice.open_client(at, connection, environment)))


def application(
    repository: DuckRepository,
    uri: str,
    base: Path,
    settings: Configuration,
    environment: Mapping[str, str],
    clock: Callable[[], datetime],
    log: Callable[[str], None] | None = None,
    compress: Callable[[bytes], bytes] = http_message.compress,
    largest: int | None = None,
) -> ContentApplication:
    """Return the application for the content of the store at `uri`, relative to `base`.

    `base` is the folder of the configuration. ContentApplication describes the other parameters.
    Raises StoreError if the address is invalid.
    """
    contents = open_contents(repository, uri, base, settings, environment)
    return ContentApplication(
        repository,
        contents,
        CaptureSearch(repository.catalogue, repository.files),
        settings,
        clock,
        log,
        compress=compress,
        largest=largest,
        sign=Signer(
            BucketConnection.serving(settings), environment, settings["content.redirect_seconds"]
        ).sign,
        store=repository.catalogue.reader,
    )


def beside(content: ContentApplication, metadata: Answer) -> Answer:
    """Return what answers as both do, chosen by the request's path."""
    return lambda call: (content.answer if content.takes(call.path) else metadata)(call)


def of_lambda(opened: InstanceParts) -> Service:
    """Return the content application over the store that a Lambda instance has opened."""
    return application(
        opened.repository,
        opened.settings["store.uri"],
        opened.root,
        opened.settings,
        opened.environment,
        now,
        opened.log,
        largest=aws.LARGEST,
    )
