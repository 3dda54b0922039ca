"""The configuration keys for filesets: datasets hosted by platforms."""

from typing import Any

from functions.config import value
from functions.config.fields import Field, Fields
from functions.config.key import ConfigKey

BACKENDS = ("web", "s3", "archiveorg")


def is_url_list(given: object) -> bool:
    """Return whether the value is a list of URL prefixes."""
    return isinstance(given, list) and all(
        isinstance(text, str) and text.startswith(("http://", "https://")) for text in given
    )


def are_tokens(given: object) -> bool:
    """Return whether the value is a table from hosts to tokens."""
    return isinstance(given, dict) and all(
        value.is_text(host) and value.is_text(text) and text.isascii()
        for host, text in given.items()
    )


STRATEGY = Fields(
    {
        "backend": Field("auto", lambda v: v in ("auto", *BACKENDS), "auto, web, s3 or archiveorg"),
        "large": Field("s3", lambda v: v in ("s3", "archiveorg"), "s3 or archiveorg"),
        "files": Field(20, value.between(1, 10_000), "a number from 1 to 10000"),
        "bytes": Field(1_000_000_000, value.between(1, 1 << 50), "bytes from 1"),
        "file_bytes": Field(128_000_000, value.between(1, 1 << 50), "bytes from 1"),
        "bundle": Field(
            "never", lambda v: v in ("never", "many", "always"), "never, many or always"
        ),
        "platform_bundle": Field(False, value.is_flag, "true or false"),
    }
)
"""Storage of files. With `backend` auto, `files`, `bytes` and `file_bytes` limit small datasets."""

LIMITS = Fields(
    {
        "files": Field(200, value.between(1, 100_000), "a number from 1 to 100000"),
        "bytes": Field(64_000_000_000, value.between(1, 1 << 50), "bytes from 1"),
        "file_bytes": Field(64_000_000_000, value.between(1, 1 << 50), "bytes from 1"),
    }
)


def is_strategy(given: object) -> bool:
    """Return whether the value is auto, the name of a backend, or a table of STRATEGY."""
    return given in ("auto", *BACKENDS) or STRATEGY.is_valid(given)


def strategy(given: Any) -> dict[str, Any]:
    """Return the complete table for a value of `fileset.strategy`."""
    return STRATEGY.complete({"backend": given} if isinstance(given, str) else given)


KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "fileset.strategy",
        "auto",
        is_strategy,
        f"auto, web, s3, archiveorg, or {STRATEGY.expectation}",
        "where files are kept, and how; auto: web (a WARC of the store) for few small files, else "
        "s3 (objects of the store)",
        STRATEGY.problem,
        strategy,
    ),
    ConfigKey(
        "fileset.limits",
        LIMITS.defaults(),
        LIMITS.is_valid,
        LIMITS.expectation,
        "the largest dataset that is taken: files, bytes of all files, bytes of one file",
        LIMITS.problem,
        LIMITS.complete,
    ),
    ConfigKey(
        "fileset.partial",
        True,
        value.is_flag,
        "true or false",
        "keep the other files of a dataset of which the platform withholds some",
    ),
    ConfigKey(
        "fileset.check",
        "digest",
        lambda v: v in ("digest", "size"),
        "digest or size",
        "by what it is told whether files that were kept before are as they were: by their bytes, "
        "which are read, or by their size alone",
    ),
    ConfigKey(
        "fileset.request_seconds",
        86_400,
        value.between(1, 604_800),
        "seconds from 1 to 604800",
        "how long one dataset may take",
    ),
    ConfigKey(
        "fileset.block",
        [],
        is_url_list,
        "a list of beginnings of URLs",
        "datasets that are not asked for",
    ),
    ConfigKey(
        "fileset.tokens",
        {},
        are_tokens,
        "a table from host names to tokens",
        "a token that its host alone is shown, such as one of datadryad.org",
    ),
)
