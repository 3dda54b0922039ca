"""Listings: the ReDIF files of the folders of a tree, each with its size and time.

An ingest compares them with those of the last one, a folder at a time. A file with the same size
and time has the same bytes, if its time was older than the begin of the ingest that read it: a
later change would have given it another time.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

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
        self._out: BinaryIO = new.open("wb")
        self._old = None if old is None else old.open("rb")
        self._places: dict[str, tuple[int, int]] = {}
        self._digest = hashlib.sha256()
        self.skipped = 0
        """Number of files that are known."""
        if self._old is not None:
            while line := self._old.readline():
                size, folder = json.loads(line)
                self._places[folder] = self._old.tell(), size
                self._old.seek(size, 1)

    def compare(
        self, folder: str, files: Sequence[FoundFile], others: Sequence[str]
    ) -> tuple[Collection[str], Collection[str]]:
        """Return the names of known files, and of those that the folder had otherwise.

        `others` are names of files that will not be known. Raises OSError.
        """
        lines = sorted([f"{name}/{size} {modified}" for name, size, modified in files])
        text = self._write(folder, lines, files, others)
        old = self._take(folder)
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
        for folder in list(self._places):
            text = self._take(folder)
            yield folder, {_name(line) for line in text.split(_BETWEEN)} if text else ()

    def digest(self) -> str:
        """Return a digest of the known files."""
        return self._digest.hexdigest()

    def close(self) -> None:
        """Close the files. Raises OSError."""
        self._out.close()
        if self._old is not None:
            self._old.close()

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
        data = listing.encode("utf-8", "surrogateescape")
        self._out.write(json.dumps([len(data), folder]).encode() + b"\n")
        self._out.write(data)
        return text

    def _take(self, folder: str) -> str | None:
        place = self._places.pop(folder, None)
        if place is None or self._old is None:
            return None
        self._old.seek(place[0])
        return self._old.read(place[1]).decode("utf-8", "surrogateescape")

    def _note(self, folder: str, listing: str) -> None:
        self._digest.update(f"{folder}{_BETWEEN}{listing}\n".encode("utf-8", "surrogateescape"))
        self.skipped += listing.count(_BETWEEN) + 1 if listing else 0


def _name(line: str) -> str:
    return line.partition("/")[0]
