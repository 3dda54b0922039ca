"""The index of a site: where the record of an identifier lies, by the SHA-1 of the identifier.

    index/HH.json      {16 digits of the SHA-1: [kind, position]} of identifiers that begin so
    index/recent.json  the same of items that changed since, which is read first

So a publish of few items writes one file. A router finds the page of a list by the position.
Under another name of an item, in lower case, the entry has its identifier as well.
"""

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import IO

from builder.outputs.site.site_files import SiteFiles
from functions.snapshot.seal import refuse_damage
from functions.snapshot.site_names import digest_name

Entry = tuple[int, int] | tuple[int, int, str]
"""The number of an item's kind, the position of its listed version, and its identifier if the entry
is that of another name."""

FOLDER = "index/"
RECENT = "index/recent.json"
_FULL, _OVERFULL = 512, 2048
"""Items of a bucket when an index is made, and those from which it is made anew."""
_RECENT = 4096
"""The most items of `recent.json`."""
_PARTS = "0123456789abcdef"


def count_digits(items: int) -> int:
    """Return how many digits of the SHA-1 name a bucket, given the number of items."""
    digits = 1
    while items > _FULL * 16**digits:
        digits += 1
    return digits


@dataclass(frozen=True, slots=True)
class ItemIndex:
    """The index in the files of a site, with `digits` in the names of its buckets."""

    files: SiteFiles
    digits: int

    def is_overfull(self, items: int) -> bool:
        """Return whether the buckets are too large, so that the index must be made anew."""
        buckets: int = 16**self.digits
        return items > _OVERFULL * buckets

    def find(self, identifiers: Iterable[str]) -> Mapping[str, Entry]:
        """Return the entries of those identifiers that have one. Raises StoreError."""
        recent, buckets = self._read(RECENT), dict[str, Mapping[str, Entry]]()
        entries: dict[str, Entry] = {}
        for identifier in identifiers:
            digest = digest_name(identifier)
            entry = recent.get(digest[:16])
            if entry is None:
                name = self._name(digest)
                if name not in buckets:
                    buckets[name] = self._read(name)
                entry = buckets[name].get(digest[:16])
            if entry is not None:
                entries[identifier] = entry
        return entries

    def revise(self, changed: Iterable[tuple[str, Entry]]) -> None:
        """Set the entries of identifiers and other names. Raises StoreError."""
        entries = {digest_name(name)[:16]: entry for name, entry in changed}
        recent = {**self._read(RECENT), **entries}
        if len(recent) > _RECENT:
            buckets = defaultdict[str, dict[str, Entry]](dict)
            for digest, entry in recent.items():
                buckets[self._name(digest)][digest] = entry
            for name, part in buckets.items():
                self.files.write(name, _encode({**self._read(name), **part}))
            recent = {}
        self.files.write(RECENT, _encode(recent))

    def write(self, items: Iterable[tuple[str, Entry]]) -> int:
        """Write all buckets; return the number of items. Raises StoreError and OSError.

        The items are sorted in parts, on disk, because there may be many.
        """
        count = 0
        with ExitStack() as stack:
            parts = {p: stack.enter_context(tempfile.TemporaryFile("w+")) for p in _PARTS}
            for name, entry in items:
                digest = digest_name(name)[:16]
                parts[digest[0]].write(f"{digest} {' '.join(map(str, entry))}\n")
                count += len(entry) == 2
            self.files.write_all(self._list_buckets(parts.values()))
        self.files.write(RECENT, _encode({}))
        return count

    def names(self) -> Iterator[str]:
        """Yield the names of all files of the index."""
        yield RECENT
        for number in range(16**self.digits):
            yield self._name(f"{number:0{self.digits}x}")

    def _list_buckets(self, parts: Iterable[IO[str]]) -> Iterator[tuple[str, bytes]]:
        names = (name for name in self.names() if name != RECENT)
        for part in parts:
            part.seek(0)
            buckets = defaultdict[str, dict[str, Entry]](dict)
            for line in part:
                digest, kind, position, *own = line.split()
                place = int(kind), int(position)
                buckets[self._name(digest)][digest] = (*place, own[0]) if own else place
            for name in islice(names, 16 ** (self.digits - 1)):
                yield name, _encode(buckets[name])

    def _name(self, digest: str) -> str:
        return f"{FOLDER}{digest[: self.digits]}.json"

    def _read(self, name: str) -> Mapping[str, Entry]:
        with refuse_damage(name):
            entries: Mapping[str, Entry] = json.loads(self.files.find(name) or b"{}")
            return entries


def _encode(entries: Mapping[str, Entry]) -> bytes:
    return json.dumps(dict(sorted(entries.items())), separators=(",", ":")).encode()
