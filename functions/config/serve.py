"""The configuration keys for serving."""

from functions.config import value
from functions.config.key import ConfigKey

KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "serve.pointer_seconds",
        2,
        value.between(0, 30),  # the pointer remembers a snapshot for a minute
        "seconds from 0 to 30",
        "how long a reader uses the pointer before it reads it again",
    ),
    ConfigKey(
        "serve.clock_allowance",
        5,
        value.between(1, 20),  # an expiry's lease has half a minute for skewed clocks
        "seconds from 1 to 20",
        "how far responseDate is set back: more than twice the tolerated clock skew",
    ),
    ConfigKey(
        "serve.cache_seconds",
        86_400,
        value.between(0, 31_536_000),
        "seconds from 0 to 31536000",
        "how long caches may keep pages that do not change; 0: always revalidate",
    ),
    ConfigKey(
        "serve.concurrent",
        32,
        value.between(1, 1000),
        "a number from 1 to 1000",
        "requests answered at once; further requests get a 503",
    ),
    ConfigKey(
        "serve.workers",
        0,
        value.between(0, 256),
        "a number from 0 to 256",
        "worker processes of `sheaf serve`; 0: one per core",
    ),
    ConfigKey(
        "serve.retry_seconds",
        30,
        value.between(1, 3600),
        "seconds from 1 to 3600",
        "Retry-After of a 503: seconds until a harvester should retry",
    ),
    ConfigKey(
        "serve.access_log",
        "-",
        lambda v: v == "" or value.is_text(v),
        "a file, - or empty",
        "access log of `sheaf serve`; -: standard error; empty: no log",
    ),
)
