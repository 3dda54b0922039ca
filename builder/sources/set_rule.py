"""Rules of an operator's own sets: which captures are in them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.sources import address
from functions.snapshot import setspec

_HEAD = re.compile("[A-Za-z][A-Za-z0-9+-]*://[^/?#]*")  # scheme and host, the same in any case


@dataclass(frozen=True, slots=True)
class SetRule:
    """A set, and what a capture in it is: of each condition that has values, one of them fits."""

    set: str
    hosts: tuple[str, ...] = ()
    url_prefixes: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()

    @staticmethod
    def from_table(table: Mapping[str, Any]) -> "SetRule":
        """Return the rule of a table of `sets.rules` (see functions.config.set_rules)."""

        def lower(name: str) -> tuple[str, ...]:
            return tuple(value.lower() for value in table.get(name, ()))

        return SetRule(
            table["set"],
            lower("hosts"),
            tuple(_lower_origin(address.text(p.encode())) for p in table.get("url_prefixes", ())),
            lower("types"),
            lower("languages"),
            tuple(setspec.join("collection", *c.split(":")) for c in table.get("collections", ())),
        )

    def fits(
        self,
        where: address.CaptureAddress,
        media_type: str | None,
        languages: str | None,
        collections: Sequence[str],
    ) -> bool:
        """Tell whether a capture is in the set.

        `languages` are comma separated; `collections` are the most specific sets of collections.
        """
        return (
            (not self.hosts or self._at_host(where))
            and (not self.url_prefixes or _lower_origin(where.url).startswith(self.url_prefixes))
            and (not self.types or self._has_type(media_type or ""))
            and (not self.languages or self._in_language((languages or "").lower()))
            and (
                not self.collections
                or any(setspec.is_within(c, spec) for c in collections for spec in self.collections)
            )
        )

    def _at_host(self, where: address.CaptureAddress) -> bool:
        name = where.host.name if where.host else ""
        return name in self.hosts or name.endswith(tuple(f".{host}" for host in self.hosts))

    def _has_type(self, media_type: str) -> bool:
        return media_type in self.types or f"{media_type.partition('/')[0]}/*" in self.types

    def _in_language(self, languages: str) -> bool:
        found = [language.strip() for language in languages.split(",")]
        return any(f == own or f.startswith(f"{own}-") for f in found for own in self.languages)


def _lower_origin(url: str) -> str:
    match = _HEAD.match(url)
    end = match.end() if match else 0
    return url[:end].lower() + url[end:]
