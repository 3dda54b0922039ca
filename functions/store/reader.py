"""Opens a store for serving, by its address: a folder or a bucket."""

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
    """Return a reader of the store at `uri`: s3://bucket/prefix, or a path seen from `base`.

    A bucket's local files are as large as `store.cache` says; one that was handed out stays for
    `kept` seconds. With a `cache`, that keeps such files. Raises StoreError for an address that is
    neither.
    """
    at = bucket_of(uri)
    if at is not None:
        client = Client(at, BucketConnection.serving(settings), environment)
        return BucketReader(at, client, settings["store.cache"] << 20, kept, cache)
    return FolderReader((base / uri).resolve())
