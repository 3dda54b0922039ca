"""The configuration keys for HTTP: of the server, and of the commands that send requests.

A key of the section `http` has one value for all commands; `http.commands` has values for single
commands. If neither is set, the command's own default applies: `DEFAULTS`.
"""

import ipaddress
from collections.abc import Mapping
from typing import Any

from functions.config import check
from functions.config.key import Field, Fields, between, flag, list_of, number, row, seconds

AUTO = "auto"
"""The value of a key that selects each command's default."""
PORTS = [80, 443, 8080, 8443]

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    # command: its keys without `http.`, and their defaults; it does not use other keys
    "gather": {
        "robots": True,
        "concurrent": 16,
        "host_concurrent": 1,
        "host_seconds": 1,
        "backoff_seconds": 30,
        "ports": PORTS,
        "allow_networks": [],
        "connect_seconds": 20,
        "first_byte_seconds": 60,
        "total_seconds": 600,
        "least_rate": 1000,
        "max_bytes": 200_000_000,
    },
    "fileset": {
        "robots": True,
        "concurrent": 4,
        "host_concurrent": 2,
        "host_seconds": 0.5,
        "backoff_seconds": 10,
        "tries": 4,
        "ports": PORTS,
        "allow_networks": [],
        "connect_seconds": 10,
        "first_byte_seconds": 60,
        "total_seconds": 21_600,
        "least_rate": 500,
    },
    "harvest": {
        "host_concurrent": 1,
        "host_seconds": 0,
        "backoff_seconds": 1,
        "wait_seconds": 600,
        "tries": 6,
        "connect_seconds": 30,
        "first_byte_seconds": 300,
        "total_seconds": 7200,
        "least_rate": 100,
        "max_bytes": 256_000_000,
    },
    "check": {
        "host_seconds": 0.2,
        "connect_seconds": 20,
        "first_byte_seconds": 60,
        "total_seconds": 90,
        "least_rate": 100,
        "max_bytes": 64_000_000,
    },
    "ingest": {
        "host_concurrent": 8,
        "host_seconds": 0,
        "backoff_seconds": 1,
        "wait_seconds": 120,
        "tries": 6,
        "ports": PORTS,
        "allow_networks": [],
        "connect_seconds": 10,
        "first_byte_seconds": 60,
        "total_seconds": 86_400,
        "least_rate": 500,
    },
    "restore": {
        "backoff_seconds": 0.5,
        "wait_seconds": 300,
        "tries": 6,
        "connect_seconds": 30,
        "first_byte_seconds": 120,
        "total_seconds": 86_400,
        "least_rate": 64,
    },
}
SERVE_KEYS: tuple[Field, ...] = (
    row(
        "serve.page_cache",
        Field(1024, lambda v: v == 0 or between(16, 1_048_576)(v), "megabytes from 16, or 0"),
        "size of the folder in TMPDIR that keeps pages of lists for `sheaf serve`; 0: none is kept",
    ),
    row(
        "serve.pointer_seconds",
        number(2, 0, 30, "seconds"),  # the pointer remembers a snapshot for a minute
        "how long a reader uses the pointer before it reads it again",
    ),
    row(
        "serve.clock_allowance",
        number(5, 1, 20, "seconds"),  # an expiry's lease has half a minute for skewed clocks
        "how far responseDate is set back: more than twice the tolerated clock skew",
    ),
    row(
        "serve.cache_seconds",
        number(86_400, 0, 31_536_000, "seconds"),
        "how long caches may keep pages that do not change; 0: always revalidate",
    ),
    row(
        "serve.concurrent",
        number(32, 1, 1000),
        "requests answered at once; four times as many wait, further requests get a 503",
    ),
    row("serve.workers", number(0, 0, 256), "worker processes of `sheaf serve`; 0: one per core"),
    row(
        "serve.retry_seconds",
        number(30, 1, 3600, "seconds"),
        "Retry-After of a 503: seconds until a harvester should retry",
    ),
    row(
        "serve.access_log",
        Field("-", lambda v: v == "" or check.is_text(v), "a file, - or empty"),
        "access log of `sheaf serve`; -: standard error; empty: no log",
    ),
    row("serve.metrics", flag(False), "whether `sheaf serve` answers Prometheus at /metrics"),
)


def _is_network(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(ipaddress.ip_network(value))
    except ValueError:
        return False


_ROWS: Mapping[str, tuple[Field, str]] = {
    "robots": (
        flag(True),
        "obey robots.txt; false: you have the hosts' or the law's permission to ignore it",
    ),
    "concurrent": (
        number(AUTO, 1, 256),
        "files (`sheaf gather`) or datasets (`sheaf fileset`) fetched at once",
    ),
    "host_concurrent": (number(AUTO, 1, 256), "requests to one host at once"),
    "host_seconds": (
        seconds(AUTO, 0, 3600),
        "pause between two requests to one host; a longer Crawl-delay in robots.txt takes "
        "precedence",
    ),
    "backoff_seconds": (
        seconds(AUTO, 0, 3600),
        "first pause after a failure, longer each time; a Retry-After takes precedence",
    ),
    "wait_seconds": (seconds(AUTO, 0, 86_400), "longest pause that a Retry-After may request"),
    "tries": (number(AUTO, 1, 1000), "attempts before a request fails"),
    "ports": (
        list_of(between(1, 65_535), "ports from 1 to 65535", PORTS, 1),
        "allowed ports",
    ),
    "allow_networks": (
        list_of(_is_network, "networks such as 10.1.0.0/16 or fd00::/8"),
        "allowed networks that are not part of the public internet",
    ),
    "connect_seconds": (seconds(AUTO, 0.1, 600), "time limit for connecting to a host"),
    "first_byte_seconds": (
        seconds(AUTO, 0.1, 3600),
        "time limit for a response to begin, and for a pause in it",
    ),
    "total_seconds": (seconds(AUTO, 1, 604_800), "time limit for one file or response"),
    "least_rate": (
        number(AUTO, 0, 1 << 30, "bytes a second"),
        "slowest accepted rate of a response, measured every http.first_byte_seconds",
    ),
    "max_bytes": (number(AUTO, 1, 1 << 50, "bytes"), "size limit of a file or response, unpacked"),
}

_COMMANDS = Fields(
    {
        command: Fields({name: _ROWS[name][0] for name in defaults}).part("a table of keys")
        for command, defaults in DEFAULTS.items()
    },
    "commands",
)


def _key(name: str, field: Field, meaning: str) -> Field:
    if field.default != AUTO:
        return row(f"http.{name}", field, meaning)
    expected = f"{field.expected}, or auto"
    return row(f"http.{name}", Field(AUTO, lambda v: v == AUTO or field.test(v), expected), meaning)


CLIENT_KEYS: tuple[Field, ...] = (
    *(_key(name, field, meaning) for name, (field, meaning) in _ROWS.items()),
    row(
        "http.commands",
        _COMMANDS.part(
            f"a table from {', '.join(list(DEFAULTS)[:-1])} or {list(DEFAULTS)[-1]} to tables of "
            "these keys"
        ),
        "values for one command only, such as { fileset = { concurrent = 8 } }",
    ),
)
