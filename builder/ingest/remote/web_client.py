"""Clients of one process for files on web servers and Hadoop clusters that the operator names."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from urllib.parse import urlsplit

from builder.http.addresses import AnyAddresses, NamedAddresses, PublicAddresses, networks
from builder.http.client import HttpClient, agent_of, user_agent
from builder.http.errors import Deferred, FetchError, ReplacedError
from builder.http.politeness import HostPolicy, HostQueue
from builder.http.ranges import RangeClient
from builder.http.settings import HttpSettings, http_settings, proxies
from builder.ingest.remote.access import SourceAccess
from builder.ingest.splits import REPLACED
from functions.config.configuration import Configuration, default

_FORGIVES = 60.0  # seconds for which an unreachable host is not requested
_LOCK = threading.Lock()
_CONTACT = "repository.admin_emails"


def connect(
    url: str, access: SourceAccess, environment: Mapping[str, str], trusted: bool = False
) -> RangeClient:
    """Return the client for a URL, whose host may have any address.

    Its redirects lead to public addresses, and those of a `trusted` host to any: the nodes of a
    cluster are private.
    """
    settings, behind = http_settings(access.settings, "ingest"), proxies(environment)
    kept = tuple(sorted(environment.items()))
    with _LOCK:
        web, named = _client(settings, _agent(access.settings), kept, trusted)
        proxy = behind.of_url(url)
        named |= {urlsplit(url).hostname or "", proxy.host if proxy else ""}
    return web


@contextmanager
def wrap_failures() -> Iterator[None]:
    """Raise failures as OSError, as those of one unreadable file."""
    try:
        yield
    except ReplacedError as error:
        raise OSError(REPLACED) from error
    except FetchError as error:
        raise OSError(f"{error.code}: {error.detail}".removesuffix(": ")) from error
    except Deferred as error:
        raise OSError(f"{error}: it asked for a pause over http.wait_seconds") from error


@lru_cache(maxsize=8)
def _client(
    settings: HttpSettings, agent: str, environment: tuple[tuple[str, str], ...], trusted: bool
) -> tuple[RangeClient, set[str]]:
    stop = threading.Event()
    others = PublicAddresses(frozenset(settings.ports), networks(settings.allow_networks))
    policy = HostPolicy(settings.host_seconds, settings.host_concurrent, forgives=_FORGIVES)
    named = NamedAddresses(AnyAddresses() if trusted else others)
    client = HttpClient(
        agent=agent,
        addresses=named,
        hosts=HostQueue(policy, stop),
        stop=stop,
        keep_alive=True,
        proxies=proxies(dict(environment)),
    )
    return RangeClient(client, settings.limits(), settings.retry_policy()), named.named


def _agent(settings: Configuration) -> str:
    """Return the User-Agent, which names the operator if the configuration does."""
    if settings[_CONTACT] == default(_CONTACT):
        return agent_of("(sheaf ingest)")
    return user_agent(settings)
