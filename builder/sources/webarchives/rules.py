"""Rules of publication: which documents are published, and which sets they are in."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from builder.sources.webarchives import identity
from functions.archive.message import HttpHead
from functions.archive.record import RecordHeader, skip_reason_by_type
from functions.config.configuration import Configuration
from functions.snapshot import oai_name

_HEAD = re.compile("[A-Za-z][A-Za-z0-9+-]*://[^/?#]*")  # scheme and host, the same in any case


@dataclass(frozen=True, slots=True)
class SetRule:
    """A set and its conditions: a capture must fit one value of each condition that has values."""

    set: str
    hosts: tuple[str, ...] = ()
    url_prefixes: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()

    @staticmethod
    def from_table(table: Mapping[str, Any]) -> "SetRule":
        """Parse a table of `sets.rules` (see functions.config.check)."""

        def lower(name: str) -> tuple[str, ...]:
            return tuple(value.lower() for value in table.get(name, ()))

        return SetRule(
            table["set"],
            lower("hosts"),
            tuple(_lower_origin(identity.text(p.encode())) for p in table.get("url_prefixes", ())),
            lower("types"),
            lower("languages"),
            tuple(
                oai_name.join_set("collection", *c.split(":")) for c in table.get("collections", ())
            ),
        )

    def fits(
        self,
        where: identity.CaptureAddress,
        media_type: str | None,
        languages: str | None,
        collections: Sequence[str],
    ) -> bool:
        """Tell whether a capture is in the set.

        `languages` are comma separated; `collections` are the most specific sets of collections.
        """
        kind = media_type or ""
        return (
            (
                not self.hosts
                or f".{where.host.name if where.host else ''}".endswith(
                    tuple(f".{own}" for own in self.hosts)
                )
            )
            and (not self.url_prefixes or _lower_origin(where.url).startswith(self.url_prefixes))
            and (
                not self.types or kind in self.types or f"{kind.partition('/')[0]}/*" in self.types
            )
            and (
                not self.languages
                or any(
                    f"{tag.strip()}-".startswith(f"{own}-")
                    for tag in (languages or "").lower().split(",")
                    for own in self.languages
                )
            )
            and (
                not self.collections
                or any(
                    oai_name.is_within_set(c, spec)
                    for c in collections
                    for spec in self.collections
                )
            )
        )


@dataclass(frozen=True, slots=True)
class DocumentRules:
    """Rules for publishing records and their sets, and limits for reading one record.

    `collections` are the sets of the collections that the whole archive belongs to.
    """

    redirects: bool = False
    errors: bool = False
    titles: bool = True
    """Whether pages are read for their title, language and encoding, which takes the most time."""
    domain_sets: bool = True
    mime_sets: bool = True
    set_rules: tuple[SetRule, ...] = ()
    collections: tuple[str, ...] = ()
    head_bytes: int = 1 << 18
    """Bytes of a payload, before and after decoding, that are read for type and title."""

    def sets(
        self, where: identity.CaptureAddress, media_type: str | None, languages: str | None
    ) -> tuple[str, ...]:
        """Return the sets of a capture by its domain, its media type and the operator's rules."""
        specs: list[str] = []  # a domain sorts before a media type
        if self.domain_sets and where.host:
            specs.append(where.host.set_spec)
        if self.mime_sets and media_type:
            specs.append(_mime_set(media_type))
        if not self.set_rules:
            return tuple(specs)
        fitting = (
            r for r in self.set_rules if r.fits(where, media_type, languages, self.collections)
        )
        # Only sets by rules may include one another.
        return oai_name.most_specific_sets([*specs, *(rule.set for rule in fitting)])

    @staticmethod
    def of(settings: Configuration, collections: tuple[str, ...]) -> "DocumentRules":
        """Return the rules of a configuration for an archive in these sets of collections."""
        return DocumentRules(
            redirects="redirects" in settings["documents.include"],
            errors="errors" in settings["documents.include"],
            titles=settings["documents.titles"],
            domain_sets="domain" in settings["sets.by"],
            mime_sets="mime" in settings["sets.by"],
            set_rules=tuple(map(SetRule.from_table, settings["sets.rules"])),
            collections=collections,
        )


REDIRECTS = frozenset({300, 301, 302, 303, 305, 307, 308})
"""HTTP statuses of redirects."""

SETTINGS = {"redirect": "redirects", "error": "errors"}
"""The value of `documents.include` that publishes an excluded document, by its reason."""


def refusal_reason(record: RecordHeader, status: int | None, rules: DocumentRules) -> str | None:
    """Return why a document is excluded by its HTTP status, None if it is published.

    A document without status that is no revisit is excluded if its media type is not a document's.
    """
    if status is None:
        return None if record.type == "revisit" else skip_reason_by_type(record.mime)
    if 200 <= status < 300 or (status == 304 and record.type == "revisit"):
        return None
    if status in REDIRECTS:
        return None if rules.redirects else "redirect"
    return None if rules.errors else "error"


def http_status(record: RecordHeader, message: HttpHead | None) -> int | None:
    """Return a document's HTTP status: of its message, or else of its ARC version 2 header."""
    return message.status if message and message.status is not None else record.status


@lru_cache(maxsize=1 << 12)
def _mime_set(media_type: str) -> str:
    return oai_name.join_set("mime", *media_type.split("/", 1))


def _lower_origin(url: str) -> str:
    match = _HEAD.match(url)
    end = match.end() if match else 0
    return url[:end].lower() + url[end:]
