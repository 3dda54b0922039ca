"""Opens a store for writing by its address: a folder or a bucket."""

from collections.abc import Mapping
from pathlib import Path

from builder.store.folder import FolderStore
from builder.store.s3 import S3Store
from functions.config.configuration import Configuration
from functions.store.bucket import bucket_of
from functions.store.connection import BucketConnection


def open_store(
    uri: str, base: Path, settings: Configuration, environment: Mapping[str, str]
) -> FolderStore | S3Store:
    """Return the store at `uri`: s3://bucket/prefix, or a folder's path relative to `base`.

    Raises StoreError for any other address.
    """
    at = bucket_of(uri)
    if at is not None:
        return S3Store(at, BucketConnection.of(settings), environment)
    return FolderStore((base / uri).resolve())
