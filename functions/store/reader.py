"""What reads a store by its address, be it a folder or a bucket."""

from collections.abc import Mapping
from pathlib import Path

from functions.config.configuration import Configuration
from functions.snapshot import address
from functions.snapshot.address import Address
from functions.snapshot.errors import StoreError
from functions.snapshot.store import Reader
from functions.store import bucket
from functions.store.bucket import ObjectCache
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
    """Return what serves from the store at `uri`: s3://bucket/prefix, or a path seen from `base`.

    `kept` is for how many seconds a file of a bucket's parts stays that was handed out; `cache`
    keeps such files already. Raises StoreError for what is neither.
    """
    at = bucket_of(uri)
    if at is not None:
        return bucket.open_reader(at, settings, environment, kept, cache)
    return FolderReader((base / uri).resolve())


def bucket_of(uri: str) -> Address | None:
    """Return the bucket that `uri` names, None for a folder. Raises StoreError for neither."""
    if not uri:
        raise StoreError("the store has an empty address, expected a folder or s3://bucket/prefix")
    if "://" not in uri:
        return None
    try:
        return address.parse(uri)
    except ValueError as error:
        raise StoreError(f"the store's address cannot be used: {error}") from None
