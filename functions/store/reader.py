"""Opens a store for reading by its address: a folder or a bucket."""

from collections.abc import Mapping
from pathlib import Path

from functions.config.configuration import Configuration
from functions.snapshot.store import Reader
from functions.store.bucket import BucketReader, ObjectCache, bucket_of
from functions.store.client import Client
from functions.store.connection import BucketConnection
from functions.store.folder import FolderReader
from functions.store.mirror import KEPT


def open_reader(
    uri: str,
    base: Path,
    settings: Configuration,
    environment: Mapping[str, str],
    kept: float = KEPT,
    cache: ObjectCache | None = None,
) -> Reader:
    """Return a reader of the store at `uri`: s3://bucket/prefix, or a path relative to `base`.

    A bucket's local files take up to `store.cache` MiB; a returned file stays for `kept` seconds.
    If `cache` is given, it keeps the files instead. Raises StoreError if the address is invalid.
    """
    at = bucket_of(uri)
    if at is not None:
        client = Client(at, BucketConnection.serving(settings), environment)
        return BucketReader(at, client, settings["store.cache"] << 20, kept, cache)
    return FolderReader((base / uri).resolve())
