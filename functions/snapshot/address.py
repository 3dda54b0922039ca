"""The address of a store in S3: s3://bucket/prefix."""

import re
from dataclasses import dataclass

SCHEME = "s3://"

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A bucket and the prefix of every key in it. The prefix is empty, or parts joined by `/`."""

    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        return SCHEME + "/".join(filter(None, (self.bucket, self.prefix)))

    def key(self, key: str) -> str:
        """Return the bucket's key for a store's key. Raises ValueError if the key is invalid."""
        if not is_key(key):
            raise ValueError(f"{key!r} is not a key of a store")
        return f"{self.prefix}/{key}" if self.prefix else key


def is_key(key: str) -> bool:
    """Return whether both a folder and a bucket can hold `key`."""
    parts = key.split("/")
    return key.isprintable() and all(parts) and not {".", ".."} & set(parts)


def parse(text: str) -> StoreAddress:
    """Parse an address. Raises ValueError with the reason.

    Slashes at the end are ignored. A query string is refused, because S3 addresses have no query.
    Text that may contain a secret is also refused, and the error does not repeat it.
    """
    if not text.startswith(SCHEME):
        scheme, found, _ = text.partition("://")
        other = f", not {scheme}://" if found and scheme.isalnum() else ""
        raise ValueError(f"expected s3://bucket/prefix{other}")
    bucket, _, prefix = text.removeprefix(SCHEME).partition("/")
    if "@" in bucket:
        raise ValueError("expected s3://bucket/prefix, without credentials")
    if "?" in text or "#" in text:
        raise ValueError("expected s3://bucket/prefix, without ? and #")
    if not _BUCKET.fullmatch(bucket):
        raise ValueError(f"{bucket!r} is not a bucket name, expected s3://bucket/prefix")
    prefix = prefix.rstrip("/")
    if prefix and not is_key(prefix):
        raise ValueError(f"{prefix!r} is not a prefix: it has an empty part, . or ..")
    return StoreAddress(bucket, prefix)


def is_valid(text: str) -> bool:
    """Return whether `text` is the address of a store in S3."""
    try:
        parse(text)
    except ValueError:
        return False
    return True
