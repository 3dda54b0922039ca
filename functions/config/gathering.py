"""The keys of the configuration for gathering: the files behind the URLs of templates."""

import ipaddress
from typing import Any

from functions.config import value
from functions.config.key import Key


def are_ports(given: Any) -> bool:
    """Tell whether it is a list of one or more ports."""
    return isinstance(given, list) and given != [] and all(map(value.between(1, 65_535), given))


def are_networks(given: Any) -> bool:
    """Tell whether it is a list of networks, such as 10.1.0.0/16."""
    if not isinstance(given, list):
        return False
    try:
        return all(isinstance(text, str) and ipaddress.ip_network(text) for text in given)
    except ValueError:
        return False


KEYS: tuple[Key, ...] = (
    Key(
        "gather.robots",
        True,
        value.is_flag,
        "true or false",
        "do as each host's robots.txt says; false: you have the hosts' leave, or the law's",
    ),
    Key(
        "gather.concurrent",
        16,
        value.between(1, 256),
        "a number from 1 to 256",
        "files that `sheaf gather` fetches at once",
    ),
    Key(
        "gather.host_concurrent",
        1,
        value.between(1, 16),
        "a number from 1 to 16",
        "requests that one host is asked at once",
    ),
    Key(
        "gather.host_seconds",
        1,
        value.between(0, 3600),
        "seconds from 0 to 3600",
        "time between two requests to one host; a longer Crawl-delay of its robots.txt counts",
    ),
    Key(
        "gather.backoff_seconds",
        30,
        value.between(0, 3600),
        "seconds from 0 to 3600",
        "how long a host that failed is left alone, longer each time; its Retry-After counts",
    ),
    Key(
        "gather.ports",
        [80, 443, 8080, 8443],
        are_ports,
        "a list of ports from 1 to 65535",
        "the ports that are asked",
    ),
    Key(
        "gather.allow_networks",
        [],
        are_networks,
        "a list of networks such as 10.1.0.0/16 or fd00::/8",
        "networks that are asked although they are none of the public internet",
    ),
    Key(
        "gather.max_bytes",
        200_000_000,
        value.between(1, 1 << 40),
        "bytes from 1",
        "the largest file that is taken",
    ),
    Key(
        "gather.connect_seconds",
        20,
        value.between(1, 600),
        "seconds from 1 to 600",
        "how long a host may take to be connected to",
    ),
    Key(
        "gather.first_byte_seconds",
        60,
        value.between(1, 3600),
        "seconds from 1 to 3600",
        "how long it may take to begin its answer, and to go on with it",
    ),
    Key(
        "gather.total_seconds",
        600,
        value.between(1, 86_400),
        "seconds from 1 to 86400",
        "how long one file may take",
    ),
    Key(
        "gather.least_rate",
        1000,
        value.between(0, 1 << 30),
        "bytes a second from 0",
        "the slowest that a file may come, looked at every gather.first_byte_seconds",
    ),
    Key(
        "gather.batch_minutes",
        5,
        value.between(1, 1440),
        "minutes from 1 to 1440",
        "how long a batch begins new requests; then it is committed, and the next one begins",
    ),
    Key(
        "gather.batch_files",
        5000,
        value.between(1, 100_000),
        "a number from 1 to 100000",
        "files of a batch at most",
    ),
    Key(
        "gather.interval_days",
        30,
        value.between(0, 3650),
        "days from 0 to 3650",
        "when a file is fetched again",
    ),
    Key(
        "gather.retry_days",
        1,
        value.between(0, 3650),
        "days from 0 to 3650",
        "when it is tried again after a failure that may pass; twice as long each time, up to "
        "gather.interval_days",
    ),
    Key(
        "gather.pdf_text",
        False,
        value.is_flag,
        "true or false",
        "note a digest of each PDF's text as well; needs `pip install sheaf-archive[pdf]`",
    ),
)
