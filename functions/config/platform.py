"""The keys of the configuration for filesets: datasets that platforms host."""

from functions.config import value
from functions.config.key import Key

BACKENDS = ("web", "s3", "archiveorg")


def is_url_list(given: object) -> bool:
    """Tell whether it is a list of beginnings of URLs."""
    return isinstance(given, list) and all(
        isinstance(text, str) and text.startswith(("http://", "https://")) for text in given
    )


def are_tokens(given: object) -> bool:
    """Tell whether it is a table from hosts to tokens."""
    return isinstance(given, dict) and all(
        value.is_text(host) and value.is_text(text) and text.isascii()
        for host, text in given.items()
    )


KEYS: tuple[Key, ...] = (
    Key(
        "fileset.backend",
        "auto",
        lambda v: v in ("auto", *BACKENDS),
        "auto, web, s3 or archiveorg",
        "where files are kept; auto: web (a WARC of the store) for few small ones, else "
        "fileset.large_backend",
    ),
    Key(
        "fileset.large_backend",
        "s3",
        lambda v: v in ("s3", "archiveorg"),
        "s3 or archiveorg",
        "where many or large files are kept: below `filesets/` of the store, or at archive.org",
    ),
    Key(
        "fileset.bundle",
        "never",
        lambda v: v in ("never", "many", "always"),
        "never, many or always",
        "keep the files of a fileset as one zip; many: where they are more than fileset.web_files",
    ),
    Key(
        "fileset.platform_bundle",
        False,
        value.is_flag,
        "true or false",
        "with fileset.bundle: take the zip of all files that the platform makes, where it does",
    ),
    Key(
        "fileset.web_files",
        20,
        value.between(1, 10_000),
        "a number from 1 to 10000",
        "files that are few",
    ),
    Key(
        "fileset.web_bytes",
        1_000_000_000,
        value.between(1, 1 << 50),
        "bytes from 1",
        "bytes of all files that are small",
    ),
    Key(
        "fileset.web_file_bytes",
        128_000_000,
        value.between(1, 1 << 50),
        "bytes from 1",
        "bytes of one file that is small",
    ),
    Key(
        "fileset.max_files",
        200,
        value.between(1, 100_000),
        "a number from 1 to 100000",
        "the most files of a dataset that is taken",
    ),
    Key(
        "fileset.max_bytes",
        64_000_000_000,
        value.between(1, 1 << 50),
        "bytes from 1",
        "the most bytes of a dataset that is taken",
    ),
    Key(
        "fileset.max_file_bytes",
        64_000_000_000,
        value.between(1, 1 << 50),
        "bytes from 1",
        "the largest file that is taken",
    ),
    Key(
        "fileset.partial",
        True,
        value.is_flag,
        "true or false",
        "keep the other files of a dataset of which the platform withholds some",
    ),
    Key(
        "fileset.check",
        "digest",
        lambda v: v in ("digest", "size"),
        "digest or size",
        "by what it is told whether files that were kept before are as they were: by their bytes, "
        "which are read, or by their size alone",
    ),
    Key(
        "fileset.concurrent",
        4,
        value.between(1, 64),
        "a number from 1 to 64",
        "datasets that are fetched at once",
    ),
    Key(
        "fileset.host_concurrent",
        2,
        value.between(1, 16),
        "a number from 1 to 16",
        "requests that one host is asked at once",
    ),
    Key(
        "fileset.host_seconds",
        0.5,
        value.seconds(0, 3600),
        "seconds from 0 to 3600",
        "time between two requests to one host",
    ),
    Key(
        "fileset.backoff_seconds",
        10,
        value.between(0, 3600),
        "seconds from 0 to 3600",
        "how long a host that failed is left alone, longer each time; its Retry-After counts",
    ),
    Key(
        "fileset.tries",
        4,
        value.between(1, 20),
        "a number from 1 to 20",
        "how often a request to a platform is tried before it has failed",
    ),
    Key(
        "fileset.file_seconds",
        21_600,
        value.between(1, 604_800),
        "seconds from 1 to 604800",
        "how long one file may take",
    ),
    Key(
        "fileset.request_seconds",
        86_400,
        value.between(1, 604_800),
        "seconds from 1 to 604800",
        "how long one dataset may take",
    ),
    Key(
        "fileset.robots",
        True,
        value.is_flag,
        "true or false",
        "fetch a landing page only if the host's robots.txt allows it; APIs are made for programs",
    ),
    Key(
        "fileset.block",
        [],
        is_url_list,
        "a list of beginnings of URLs",
        "datasets that are not asked for",
    ),
    Key(
        "fileset.tokens",
        {},
        are_tokens,
        "a table from host names to tokens",
        "a token that its host alone is shown, such as one of datadryad.org",
    ),
)
