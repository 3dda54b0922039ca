"""Manifest of a restored folder: a JSON line for each URL, which describes its file.

During a restore it is a journal. A file's line is added just before the file is moved to its
place; of lines with one path the last counts. So an interrupted restore can continue, and knows
which files are its own. The report of a restore counts these entries.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from builder.exports.restore.folder import open_database
from builder.exports.restore.plan import Planned
from builder.store import documents

_TABLES = """
CREATE TABLE entry (path TEXT PRIMARY KEY, sha256 TEXT, line BLOB) WITHOUT ROWID;
CREATE INDEX digests ON entry (sha256) WHERE sha256 IS NOT NULL;
"""
_PUT = "INSERT OR REPLACE INTO entry VALUES (?, ?, ?)"
_MEMORY = 8192  # KiB of cache
_HIGHEST = 1 << 53
_LONGEST = 1 << 20
"""Maximum bytes of a line; longer URLs are not supported."""
_SHOWN, _LONGEST_TEXT = 10, 120
"""Maximum number of files that are named, and of characters of each text; the manifest has all."""


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A line: a file, a redirect (with the path of its target), or a missing file.

    `timestamp` has 14 digits; `renamed` is the reason why the path is not the natural one. `size`,
    `mtime` (in seconds since 1970) and `sha256` describe the file. `converted` identifies the plan
    by which links were rewritten, if they were. `missing` is the code of the reason why there is no
    file; `detail` gives details.
    """

    url: str
    identifier: str
    timestamp: str
    path: str | None
    status: int | None = None
    media_type: str | None = None
    digest: str | None = None
    renamed: str | None = None
    size: int | None = None
    mtime: int | None = None
    sha256: str | None = None
    converted: str | None = None
    redirect: str | None = None
    missing: str | None = None
    detail: str | None = None

    def line(self) -> bytes:
        """Return the entry as a line, without unknown fields."""
        document = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def of_file(file: Planned) -> ManifestEntry:
    """Return the entry of a file with only the fields of the plan."""
    return ManifestEntry(
        url=file.url,
        identifier=file.identifier,
        timestamp=file.stamp,
        path=file.path,
        status=file.status,
        media_type=file.media_type or None,
        digest=file.digest or None,
        renamed=file.why or None,
    )


def parse_entry(line: bytes) -> ManifestEntry | None:
    """Return the entry of a line, or None if it is invalid: the last line may be cut off."""
    try:
        entry = documents.build(ManifestEntry, json.loads(line))
        # The file may have been edited: a lone surrogate cannot be encoded.
        "".join(text for text in asdict(entry).values() if isinstance(text, str)).encode()
    except (ValueError, RecursionError):
        return None
    numbers = (entry.status or 0, entry.size or 0, entry.mtime or 0)
    is_sound = max(map(abs, numbers)) < _HIGHEST and "\0" not in (entry.path or "")
    return entry if is_sound else None


class ManifestEntries:
    """The entries of a folder's files by path, on disk. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._database = open_database(folder / "entries.sqlite", _TABLES, _MEMORY)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def load(self, stream: BinaryIO) -> None:
        """Read a manifest or a journal."""

        def rows() -> Iterator[tuple[Any, ...]]:
            while line := stream.readline(_LONGEST):
                entry = parse_entry(line)
                if entry and entry.path and entry.redirect is None:
                    yield entry.path, entry.sha256, line

        self._database.executemany(_PUT, rows())

    def add(self, entry: ManifestEntry) -> None:
        """Add an entry, in place of an earlier one with its path."""
        self._database.fetch(_PUT, entry.path, entry.sha256, entry.line())

    def of(self, path: str) -> ManifestEntry | None:
        """Return the entry of a path."""
        return self._one("SELECT line FROM entry WHERE path = ?", path)

    def alike(self, sha256: str, path: str) -> ManifestEntry | None:
        """Return an entry with the same bytes at another path."""
        return self._one(
            "SELECT line FROM entry WHERE sha256 = ? AND path <> ? ORDER BY path LIMIT 1",
            sha256,
            path,
        )

    def paths(self) -> Iterator[str]:
        """Yield the paths in order; entries may be removed while iterating."""
        statement = "SELECT path FROM entry WHERE path > ? ORDER BY path LIMIT 1"
        path = ""
        while row := self._database.fetch(statement, path):
            (path,) = row
            yield path

    def remove(self, path: str) -> None:
        """Remove the entry of a path."""
        self._database.fetch("DELETE FROM entry WHERE path = ?", path)

    def _one(self, sql: str, *values: str) -> ManifestEntry | None:
        row = self._database.fetch(sql, *values)
        return parse_entry(row[0]) if row else None


@dataclass(slots=True)
class RestoreReport:
    """Counts of files: those written, and those that existed before (`kept`).

    `linked` counts written files that are links to existing ones. `renamed` counts files by the
    reason why their path is not the natural one, `missing` by code. `removed` counts files of an
    earlier restore that were deleted.
    """

    restored: int = 0
    kept: int = 0
    linked: int = 0
    converted: int = 0
    removed: int = 0
    redirects: int = 0
    bytes: int = 0
    renamed: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """The first of `renamed` and `missing`: the URL, and the details."""

    def add(self, entry: ManifestEntry, *, is_there: bool = False) -> None:
        """Count a file that exists or is missing."""
        if entry.missing:
            self.missing[entry.missing] += 1
            self._tell("missing", entry.url, f"{entry.missing}: {entry.detail}")
            return
        self.kept += is_there
        self.restored += not is_there
        self.converted += bool(entry.converted)
        self.bytes += entry.size or 0
        if entry.renamed:
            self.renamed[entry.renamed] += 1
            self._tell("renamed", entry.url, f"{entry.renamed}: {entry.path}")

    def _tell(self, what: str, url: str, text: str) -> None:
        examples = self.examples.setdefault(what, [])
        if len(examples) < _SHOWN:
            examples.append((_short(url), _short(text)))

    def document(self) -> dict[str, Any]:
        """Return the report as a JSON document."""
        document = asdict(self)
        del document["examples"]
        document["renamed"] = dict(sorted(self.renamed.items()))
        return document | {"missing": dict(sorted(self.missing.items()))}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 30]}...{text[-27:]}"
