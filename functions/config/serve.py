"""The configuration keys for serving, and for the archived bytes behind the records."""

from functions.config import check
from functions.config.key import ConfigKey

SERVE_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "serve.pointer_seconds",
        2,
        check.between(0, 30),  # the pointer remembers a snapshot for a minute
        "seconds from 0 to 30",
        "how long a reader uses the pointer before it reads it again",
    ),
    ConfigKey(
        "serve.clock_allowance",
        5,
        check.between(1, 20),  # an expiry's lease has half a minute for skewed clocks
        "seconds from 1 to 20",
        "how far responseDate is set back: more than twice the tolerated clock skew",
    ),
    ConfigKey(
        "serve.cache_seconds",
        86_400,
        check.between(0, 31_536_000),
        "seconds from 0 to 31536000",
        "how long caches may keep pages that do not change; 0: always revalidate",
    ),
    ConfigKey(
        "serve.concurrent",
        32,
        check.between(1, 1000),
        "a number from 1 to 1000",
        "requests answered at once; further requests get a 503",
    ),
    ConfigKey(
        "serve.workers",
        0,
        check.between(0, 256),
        "a number from 0 to 256",
        "worker processes of `sheaf serve`; 0: one per core",
    ),
    ConfigKey(
        "serve.retry_seconds",
        30,
        check.between(1, 3600),
        "seconds from 1 to 3600",
        "Retry-After of a 503: seconds until a harvester should retry",
    ),
    ConfigKey(
        "serve.access_log",
        "-",
        lambda v: v == "" or check.is_text(v),
        "a file, - or empty",
        "access log of `sheaf serve`; -: standard error; empty: no log",
    ),
)


def are_places(given: object) -> bool:
    """Return whether the value is a list of folders and s3:// addresses."""
    return isinstance(given, list) and all(check.is_store(text) for text in given)


CONTENT_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "content.serve",
        False,
        check.is_flag,
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
        check.between(0, 1 << 50),
        "bytes from 0",
        "larger objects that are stored unpacked in a bucket are redirected to a signed URL",
    ),
    ConfigKey(
        "content.redirect_seconds",
        900,
        check.between(1, 604_800),
        "seconds from 1 to 604800",
        "how long a signed URL is valid",
    ),
    ConfigKey(
        "content.lines",
        10_000,
        check.between(1, 100_000),
        "a number from 1 to 100000",
        "lines in one response of `/cdx` and `/timemap`",
    ),
)
