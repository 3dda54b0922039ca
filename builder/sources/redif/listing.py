"""Listings: the ReDIF files of the folders of a tree, each with its size and time.

An ingest compares them with those of the last one, a folder at a time. A file with the same size
and time has the same bytes, if its time was older than the begin of the ingest that read it: a
later change would have given it another time.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_BETWEEN = "\0"  # in no name


class FoundFile(NamedTuple):
    """A file of a folder; `modified` is in seconds since 1970."""

    name: str
    bytes: int
    modified: int


class Listings:
    """The listings of the last ingest, if there are any, and those of this one."""

    def __init__(self, old: Path | None, new: Path, settled: int, doubted: Collection[str]) -> None:
        """Write to `new`, and read `old`. Raises OSError.

        Only files with a time before `settled` are known later. Those that are `doubted`, by
        folder and name, are not known now.
        """
        self._settled, self._doubted = settled, doubted
        self._out = new.open("w", encoding="ascii")
        self._old: dict[str, str] = {}
        self._digest = hashlib.sha256()
        self.skipped = 0
        """Number of files that are known."""
        if old is not None:
            with old.open(encoding="ascii") as lines:
                self._old = dict(map(json.loads, lines))

    def compare(
        self, folder: str, files: Sequence[FoundFile], others: Sequence[str]
    ) -> tuple[Collection[str], Collection[str]]:
        """Return the names of known files, and of those that the folder had otherwise.

        `others` are names of files that will not be known. Raises OSError.
        """
        lines = sorted([f"{name}/{size} {modified}" for name, size, modified in files])
        text = self._write(folder, lines, files, others)
        old = self._old.pop(folder, None)
        if old is None:
            return (), ()
        if old == text and not self._doubted:
            self._note(folder, text)
            return {file.name for file in files}, ()
        before = set(old.split(_BETWEEN)) if old else set[str]()
        unchanged = before.intersection(lines)
        if self._doubted:
            unchanged = {
                line for line in unchanged if f"{folder}/{_name(line)}" not in self._doubted
            }
        self._note(folder, _BETWEEN.join(sorted(unchanged)))
        return {_name(line) for line in unchanged}, {_name(line) for line in before - unchanged}

    def list_vanished(self) -> Iterator[tuple[str, Collection[str]]]:
        """Yield the folders that were not compared, with the names of their files."""
        for folder, text in self._old.items():
            yield folder, {_name(line) for line in text.split(_BETWEEN)} if text else ()

    def digest(self) -> str:
        """Return a digest of the known files."""
        return self._digest.hexdigest()

    def close(self) -> None:
        """Close the file. Raises OSError."""
        self._out.close()

    def _write(
        self, folder: str, lines: list[str], files: Sequence[FoundFile], others: Sequence[str]
    ) -> str:
        """Write the listing, and return it as it would be if all files were known."""
        text = listing = _BETWEEN.join(lines)
        fresh = [file for file in files if file.modified >= self._settled or "\\" in file.name]
        if fresh or others:
            unsure = {f"{name}/{size} {modified}" for name, size, modified in fresh}
            sure = [line for line in lines if line not in unsure]
            names = (*(file.name for file in fresh), *others)
            listing = _BETWEEN.join([*sure, *(f"{name}/" for name in names)])
        self._out.write(json.dumps([folder, listing]) + "\n")
        return text

    def _note(self, folder: str, listing: str) -> None:
        self._digest.update(f"{folder}{_BETWEEN}{listing}\n".encode("utf-8", "surrogateescape"))
        self.skipped += listing.count(_BETWEEN) + 1 if listing else 0


def _name(line: str) -> str:
    return line.partition("/")[0]
