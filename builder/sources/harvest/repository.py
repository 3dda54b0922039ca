"""Repositories that are harvested: each is one, whatever address it has.

`repositories` in the configuration gives a repository a name, its present address, and those that
it had before. Identifiers and sets of its items follow from the first address that it ever had, so
a move changes none of them. A repository that is not named is its address.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import urlsplit

from builder.http.secrets import strip_secrets


@dataclass(frozen=True, slots=True)
class HarvestedRepository:
    """A repository: its name, "" without one, and its addresses, the present one first."""

    name: str
    addresses: tuple[str, ...]

    @property
    def host(self) -> str:
        """The host of the first address that it had, with the port if one is given."""
        return _host(self.addresses[-1])

    @property
    def place(self) -> str:
        """The first address that it had, as `place_of` writes it; it stands for the repository."""
        return place_of(self.addresses[-1])

    @property
    def places(self) -> list[str]:
        """All addresses that it had, as `place_of` writes them."""
        return [place_of(address) for address in self.addresses]


@lru_cache
def place_of(address: str) -> str:
    """Return a base URL without its scheme, which distinguishes repositories of one host."""
    parts = urlsplit(address)
    path = parts.path.rstrip("/")
    return f"{_host(address)}{path}{'?' if parts.query else ''}{parts.query}"


class _Values(Protocol):
    def __getitem__(self, name: str) -> Any: ...


def list_addresses(configuration: _Values) -> Mapping[str, Sequence[str]]:
    """Return the addresses of each named repository, the present one first."""
    return {rule["name"]: [rule["url"], *rule["former"]] for rule in configuration["repositories"]}


def find_repository(named: Mapping[str, Sequence[str]], address: str) -> HarvestedRepository:
    """Return the repository of that address; `named` is what list_addresses returns.

    If the configuration does not name it, it has this address alone.
    """
    place = place_of(strip_secrets(address))
    for name, addresses in named.items():
        cleaned = tuple(map(strip_secrets, addresses))
        if place in map(place_of, cleaned):
            return HarvestedRepository(name, cleaned)
    return HarvestedRepository("", (address,))


@lru_cache
def _host(address: str) -> str:
    return urlsplit(address).netloc.rpartition("@")[2].lower()
