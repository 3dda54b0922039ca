"""Spool of items that come in several records, one a format: joins them, in bounded memory."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from builder.sources.records.recipe import OwnItem

_SCHEMA = "CREATE TABLE IF NOT EXISTS items (identifier TEXT, place TEXT, item TEXT)"


class ItemSpool:
    """Items of a file that is being read, in a file at `path`."""

    def __init__(self, path: Path) -> None:
        self._base = sqlite3.connect(path, isolation_level=None)
        self._base.executescript(f"PRAGMA journal_mode = OFF; {_SCHEMA}; BEGIN")

    def add(self, item: OwnItem, place: str) -> None:
        """Add an item in one of its formats, and where its record is."""
        values = (item.identifier, place, json.dumps(asdict(item)))
        self._base.execute("INSERT INTO items VALUES (?, ?, ?)", values)

    def join(self) -> Iterator[tuple[OwnItem, str, list[str]]]:
        """Yield each item with all its formats, its first place, and the places of repetitions."""
        sql = "SELECT * FROM items ORDER BY identifier, rowid"
        with closing(self._base):
            rows = self._base.execute(sql)
            for _, group in groupby(rows, itemgetter(0)):
                (_, place, text), *others = group
                item = OwnItem(**json.loads(text))
                repeated = [
                    at for _, at, more in others if not item.join(OwnItem(**json.loads(more)))
                ]
                yield item, place, repeated
