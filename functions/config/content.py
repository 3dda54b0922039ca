"""The configuration keys for content: the archived bytes behind the records."""

from functions.config import value
from functions.config.key import ConfigKey


def are_places(given: object) -> bool:
    """Return whether the value is a list of folders and s3:// addresses."""
    return isinstance(given, list) and all(value.is_store(text) for text in given)


KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "content.serve",
        False,
        value.is_flag,
        "true or false",
        "serve archived bytes at `/content`, and captures at `/cdx`, `/timemap` and `/timegate`",
    ),
    ConfigKey(
        "content.archives",
        [],
        are_places,
        "a list of folders and s3://bucket/prefix",
        "places to look for archive files by name, in this order; empty: where they were "
        "ingested. Folders are relative to sheaf.toml",
    ),
    ConfigKey(
        "content.redirect_bytes",
        4_000_000,
        value.between(0, 1 << 50),
        "bytes from 0",
        "larger objects that are stored unpacked in a bucket are redirected to a signed URL",
    ),
    ConfigKey(
        "content.redirect_seconds",
        900,
        value.between(1, 604_800),
        "seconds from 1 to 604800",
        "how long a signed URL is valid",
    ),
    ConfigKey(
        "content.lines",
        10_000,
        value.between(1, 100_000),
        "a number from 1 to 100000",
        "lines in one response of `/cdx` and `/timemap`",
    ),
)
