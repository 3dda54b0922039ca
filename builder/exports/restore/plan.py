"""Plan of a restore: the capture chosen for each URL, and the path of its file.

The plan is stored in SQLite on disk, so that a large site needs little memory. The paths depend
only on the chosen captures, not on the order in which they were added.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from builder.exports.restore import names
from builder.exports.restore.captures import ListedCapture
from builder.exports.restore.folder import open_database
from functions.snapshot import surt

MOST = 10
"""Maximum length of a chain of redirects."""
_BATCH = 1000
_MEMORY = 16_384  # KiB of cache
_TABLES = """
CREATE TABLE chosen (
    key TEXT PRIMARY KEY, url TEXT, surt TEXT, stamp TEXT, identifier TEXT, status INTEGER,
    digest TEXT, media_type TEXT, length INTEGER, goal TEXT, followed INTEGER
) WITHOUT ROWID;
CREATE TABLE asked (key TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE file (key TEXT PRIMARY KEY, path TEXT, fold TEXT, why TEXT) WITHOUT ROWID;
CREATE TABLE folder (fold TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE moved (key TEXT PRIMARY KEY, path TEXT, fold TEXT, why TEXT) WITHOUT ROWID;
CREATE INDEX goals ON chosen (goal) WHERE goal IS NOT NULL;
"""
_ADD = """
INSERT INTO chosen (key, url, surt, stamp, identifier, status, digest, media_type, length, goal,
    followed)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET url = excluded.url, surt = excluded.surt, stamp = excluded.stamp,
    identifier = excluded.identifier, status = excluded.status, digest = excluded.digest,
    media_type = excluded.media_type, length = excluded.length, goal = excluded.goal
WHERE (excluded.stamp, excluded.identifier) > (stamp, identifier)
"""
_VALUES = attrgetter(
    "url", "surt", "stamp", "identifier", "status", "digest", "media_type", "length"
)
_UNASKED = """
SELECT goal, min(followed) FROM chosen WHERE goal IS NOT NULL AND followed < ?
    AND goal NOT IN (SELECT key FROM chosen) AND goal NOT IN (SELECT key FROM asked)
GROUP BY goal ORDER BY goal LIMIT ?
"""
_TWINS = """
SELECT file.key, url, path, fold, why FROM file JOIN chosen ON chosen.key = file.key
WHERE fold IN (SELECT fold FROM folder)
    OR fold IN (SELECT fold FROM file GROUP BY fold HAVING count(*) > 1)
ORDER BY fold, why = 'folder', stamp DESC, file.key
"""
_FILES = """
SELECT chosen.key, url, stamp, identifier, status, digest, media_type, length, path, why
FROM file JOIN chosen ON chosen.key = file.key ORDER BY file.key
"""
_MOVE = """
UPDATE file SET path = moved.path, fold = moved.fold, why = moved.why
FROM moved WHERE file.key = moved.key
"""


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned file: its capture and its path. `why` is why the path is not the natural one."""

    key: str
    url: str
    stamp: str
    identifier: str
    status: int | None
    digest: str
    media_type: str
    length: int | None
    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Led:
    """A redirect: its target URL, and the path of the target (None if it is not restored)."""

    url: str
    stamp: str
    identifier: str
    status: int
    goal: str
    path: str | None


class Plan:
    """The chosen captures. Reading is thread-safe after `settle`."""

    def __init__(self, folder: Path, accepts: Callable[[ListedCapture], bool]) -> None:
        """Create the plan in a folder; the latest capture for which `accepts` is true is chosen."""
        self._accepts = accepts
        self.path = lru_cache(1 << 14)(self._find)  # the pages of a site link to the same few URLs
        self._database = open_database(folder / "plan.sqlite", _TABLES, _MEMORY)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def add(self, captures: Iterable[ListedCapture], followed: int = 0) -> int:
        """Add captures and keep the latest of each URL. Return how many were examined.

        A redirect that changes only the scheme is ignored, since both URLs share one file.
        `followed` is the number of redirects that led to the captures.
        """
        seen = 0

        def rows() -> Iterator[tuple[Any, ...]]:
            nonlocal seen
            for capture in captures:
                seen += 1
                key, goal = names.identity(capture.url), _goal(capture)
                if goal != key and self._accepts(capture):
                    yield key, *_VALUES(capture), goal, followed

        self._database.executemany(_ADD, rows())
        return seen

    def follow(self, captures: Callable[[str], Iterable[ListedCapture]]) -> None:
        """Add the targets of redirects that the choice itself does not include."""
        while goals := self._database.execute(_UNASKED, (MOST, _BATCH)).fetchall():
            for goal, followed in goals:
                self._database.execute("INSERT INTO asked VALUES (?)", (goal,))
                exact = (
                    capture
                    for capture in captures(_show(goal))
                    if names.identity(capture.url) == goal
                )
                self.add(exact, followed + 1)

    def settle(self, *, extended: bool, sought: bool = False) -> None:
        """Assign a path to each file; with `extended` it has the extension of the media type.

        With `sought`, `path` also finds URLs by their SURT.
        """
        files = self._database.execute(
            "SELECT key, url, media_type FROM chosen WHERE goal IS NULL ORDER BY key"
        )
        named = ((key, names.natural(url, kind if extended else "")) for key, url, kind in files)
        self._put("file", ((key, name.path, name.why) for key, name in named))
        self._database.execute("CREATE INDEX folds ON file (fold)")
        self._database.executemany(
            "INSERT OR IGNORE INTO folder VALUES (?)", ((fold,) for fold in self._folders())
        )
        rows = self._database.execute(
            "SELECT key, path FROM file WHERE fold IN (SELECT fold FROM folder)"
        )
        self._move((key, names.within(path), "folder") for key, path in rows)
        self._move(self._mark_conflicts())
        if sought:
            self._database.execute("CREATE INDEX surts ON chosen (surt)")

    def _folders(self) -> Iterator[str]:
        before = ""
        for (path,) in self._database.execute("SELECT path FROM file ORDER BY key"):
            inner = path.rpartition("/")[0]
            if inner != before:  # files of one folder are consecutive
                yield from map(names.fold, names.above(path))
            before = inner

    def _mark_conflicts(self) -> Iterator[tuple[str, str, str]]:
        """Yield marked paths of files whose path is a folder's or an earlier file's."""
        before = ""
        for key, url, path, fold, why in self._database.execute(_TWINS):
            folder = self._database.fetch("SELECT 1 FROM folder WHERE fold = ?", fold)
            if fold == before or folder:
                yield key, names.mark(path, url), why if why == "folder" else "twin"
            before = fold

    def _move(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """Give files other paths, after all of the rows were read."""
        self._put("moved", rows)
        self._database.execute(_MOVE)
        self._database.execute("DELETE FROM moved")

    def _put(self, table: str, rows: Iterable[tuple[str, str, str]]) -> None:
        self._database.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?, ?)",
            ((key, path, names.fold(path), why) for key, path, why in rows),
        )

    def count(self) -> tuple[int, int]:
        """Return the number of planned files, and the sum of the declared lengths in bytes."""
        files, size = self._database.fetch(
            "SELECT count(*), coalesce(sum(max(length, 0)), 0) FROM chosen WHERE goal IS NULL"
        )
        return int(files), int(size)

    def files(self) -> Iterator[Planned]:
        """Yield the files, in the order of their URLs without scheme."""
        return (Planned(*row) for row in self._database.execute(_FILES))

    def redirects(self) -> Iterator[Led]:
        """Yield the redirects, in the same order."""
        for url, stamp, identifier, status, goal in self._database.execute(
            "SELECT url, stamp, identifier, status, goal FROM chosen WHERE goal IS NOT NULL "
            "ORDER BY key"
        ):
            yield Led(url, stamp, identifier, status, _show(goal), self._at(goal))

    def fingerprint(self) -> str:
        """Return a fingerprint, which differs between plans with different files."""
        digest = hashlib.sha256()
        for file in self.files():
            digest.update(f"{file.key}\n{file.identifier}\n{file.path}\n".encode())
        return digest.hexdigest()[:16]

    def _find(self, url: str) -> str | None:
        """Return the path of a URL, of its redirect's target, or of a URL with the same SURT."""
        if (path := self._at(names.identity(url))) is not None:
            return path
        key = surt.of(url.encode("utf-8", "surrogatepass"))
        row = self._database.fetch(
            "SELECT key FROM chosen WHERE surt = ? ORDER BY stamp DESC, key LIMIT 1", key
        )
        return self._at(row[0]) if row else None

    def holds(self, path: str) -> bool:
        """Return whether a file with exactly that path is planned."""
        statement = "SELECT 1 FROM file WHERE fold = ? AND path = ?"
        return self._database.fetch(statement, names.fold(path), path) is not None

    def _at(self, key: str) -> str | None:
        for _ in range(MOST + 1):
            row = self._database.fetch(
                "SELECT path, goal FROM chosen LEFT JOIN file ON file.key = chosen.key "
                "WHERE chosen.key = ?",
                key,
            )
            if row is None:
                return None
            if row[1] is None:
                return str(row[0])
            key = row[1]
        return None


def _show(key: str) -> str:
    """Return a URL with that identity; its scheme does not matter."""
    return f"http:{key}" if key.startswith("//") else key


def _goal(capture: ListedCapture) -> str | None:
    """Return the identity of a redirect's target (which may be itself); None for a file."""
    if not capture.leads:
        return None
    with suppress(ValueError):
        return names.identity(urljoin(capture.url, (capture.redirect or "").strip()))
    return names.identity(capture.url)
