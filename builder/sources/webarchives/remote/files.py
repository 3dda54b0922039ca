"""Archive files that are not on this machine, by the scheme of their address.

The configuration has the keys of buckets and of `http`; credentials are in the environment. The
clients are imported when they are needed: each takes 0.1 s or more.
"""

import io
from collections.abc import Mapping
from pathlib import Path

from builder.sources.webarchives.ingest.splits import ArchiveFile, Split
from functions.config.configuration import Configuration
from functions.snapshot.layout import S3_SCHEME
from functions.store.connection import BucketConnection

_WEB = ("http://", "https://")


def is_remote(source: str) -> bool:
    """Return whether a source is an address, and not a path."""
    return _scheme(source) in (S3_SCHEME, *_WEB)


def name_source(source: str) -> str:
    """Return an address without the secrets of a URL, so that a new signature is no new source."""
    if "://" not in source:
        return source
    from builder.http.secrets import strip_secrets

    return strip_secrets(source)


def find(source: str, settings: Configuration, environment: Mapping[str, str]) -> list[ArchiveFile]:
    """Return the files at an address.

    Raises UsageError if there are none or the address is invalid, and StoreError.
    """
    if _scheme(source) in _WEB:
        from builder.sources.webarchives.remote import web_files

        return web_files.find(source, settings, environment)
    from builder.sources.webarchives.remote import bucket_files

    return bucket_files.find(source, settings, environment)


def open_file(
    split: Split, settings: Configuration, environment: Mapping[str, str], spool: Path
) -> io.BufferedReader:
    """Open the file of a split as a seekable stream; temporary files go to the folder `spool`.

    Raises OSError if it is missing or unavailable, as does the stream if it is replaced while it is
    read. Raises StoreError if a bucket is unavailable or `spool` cannot be written.
    """
    file = split.file
    if _scheme(file.address) in _WEB:
        from builder.sources.webarchives.remote import web_files

        return web_files.open_file(file, settings, environment, split.end, spool)
    from builder.sources.webarchives.remote import bucket_files

    whole, connection = split.kind != "range", BucketConnection.of(settings)
    return bucket_files.open_range(file, split.end, connection, environment, whole=whole)


def _scheme(address: str) -> str:
    scheme, separator, _ = address.partition("://")
    return (scheme + separator).lower()
