"""Addresses of the archived copy that belongs to a record.

`content.address` lists their templates. The first template counts whose fields the record has.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from functions.config.configuration import Configuration
from functions.http.http_message import IN_PATH, OAI_PATH
from functions.snapshot import instant
from functions.snapshot.errors import ConfigurationError

_IN_REPLAY = "%/?&" + IN_PATH
"""Characters of a URL at the end of a path, where replay systems expect it as it is."""
_BARE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_FIELD = re.compile(r"\{(\w+)\}")
_FILES = 100
"""Files of a dataset that are linked one by one; their links would exceed the record."""


@dataclass(frozen=True, slots=True)
class CopyAddresses:
    """Templates of addresses, with fields of config.content.ADDRESS_FIELDS."""

    templates: tuple[str, ...] = ()

    @classmethod
    def of(cls, configuration: Configuration) -> "CopyAddresses":
        """Return the configured addresses; paths replace the `/oai` of `repository.base_url`.

        Raises ConfigurationError.
        """
        templates: Sequence[str] = configuration["content.address"]
        base = configuration["repository.base_url"].rstrip("/")
        root = base.removesuffix(OAI_PATH)
        if root == base and any(template.startswith("/") for template in templates):
            raise ConfigurationError(
                f"content.address has a path, but repository.base_url does not end in {OAI_PATH}: "
                "set it, or write the whole address"
            )
        return cls(tuple(root + text if text.startswith("/") else text for text in templates))

    def find(self, identifier: str, url: str | None = None, date: str | None = None) -> str | None:
        """Return the address of an item's copy; a capture has a URL, and mostly a date (W3CDTF)."""
        if not self.templates:
            return None
        stamp = instant.to_stamp(date or "")
        return self._fill({"identifier": identifier, "url": url, "timestamp": stamp})

    def find_files(
        self,
        identifier: str,
        files: Sequence[Mapping[str, Any]] | None,
        bundle: Mapping[str, Any] | None,
    ) -> list[str]:
        """Return the address of a dataset's bundle or only file, else those of its files.

        Files that another service keeps have none.
        """
        if not self.templates:
            return []
        own = [file["path"] for file in files or () if file.get("key")]
        if (bundle or {}).get("key") or (own and len(files or ()) == 1):
            addresses = [self.find(identifier)]
        else:
            addresses = [self.find_file(identifier, path) for path in own[:_FILES]]
        return [address for address in addresses if address]

    def find_file(self, identifier: str, file: str) -> str | None:
        """Return the address of a stored file of an item, by its path or its URL as written."""
        return self._fill({"identifier": identifier, "file": file})

    def find_gathered(
        self, identifier: str, gathered: Mapping[str, str] | None, url: str
    ) -> str | None:
        """Return the address of a full text that a template names by its URL as written.

        `gathered` has the ids of its stored files by URL.
        """
        return self.find_file(identifier, url) if url in (gathered or ()) else None

    def _fill(self, values: Mapping[str, str | None]) -> str | None:
        """Return the first address whose fields have values; `file` must be used if it is given."""
        for parts in map(_split, self.templates):
            fields = parts[1::2]
            if all(map(values.get, fields)) and ("file" in fields) == ("file" in values):
                return "".join(_fill_parts(parts, values))
        return None


NO_COPIES = CopyAddresses()


@lru_cache(maxsize=64)
def _split(template: str) -> tuple[str, ...]:
    """Return the parts of a template: texts and, between them, names of fields."""
    return tuple(_FIELD.split(template))


def _fill_parts(parts: Sequence[str], values: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the pieces of an address, with the values of fields escaped for their places."""
    in_query = False
    for number, part in enumerate(parts):
        if number % 2:
            safe = "" if in_query else _IN_REPLAY if part == "url" else IN_PATH
            text = quote(values[part] or "", safe=safe, errors="replace")
            yield _BARE.sub("%25", text)
        else:
            in_query = in_query or "?" in part
            yield part
