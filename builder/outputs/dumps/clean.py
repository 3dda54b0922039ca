"""Removal of objects below dumps/ that the index does not name."""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime

from builder.outputs.dumps.listing import DumpState, format_keys
from builder.snapshot.orphans import ORPHAN_AGE
from functions.snapshot import dumps, instant
from functions.snapshot.dumps import FormatDumps
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Writer

SUPERSEDED = f"{dumps.FOLDER}superseded.json"
"""Lists that the index named less than a day ago: readers may still use them and their dumps."""


def list_strays(store: Writer, state: DumpState, now: datetime | None) -> list[str]:
    """Return the keys below dumps/ that the index does not name.

    With `now`, only those written and superseded ORPHAN_AGE before it: readers may still use the
    others, and an update in progress may have written them. Without, those of newer snapshots are
    left out: an update writes them, and they have no item that was withdrawn until this snapshot.
    Raises StoreError.
    """
    named = {*state.keys(store)}
    if now is not None:
        for name in read_superseded(store, now):
            named.add(dumps.FOLDER + name)
            with suppress(MissingObject, DamagedStore):
                stored = FormatDumps.from_json(store.read(dumps.FOLDER + name))
                named.update(format_keys(store, stored))
    return [
        entry.key
        for entry in store.entries(dumps.FOLDER)
        if entry.key not in (dumps.INDEX, SUPERSEDED)
        and entry.key not in named
        and (
            entry.modified <= now - ORPHAN_AGE
            if now is not None
            else _find_snapshot(entry.key) <= state.index.snapshot
        )
    ]


def read_superseded(store: Writer, now: datetime) -> Mapping[str, datetime]:
    """Return the lists that were superseded less than ORPHAN_AGE ago, with the instants."""
    with suppress(MissingObject, ValueError, AttributeError):
        lists = json.loads(store.read(SUPERSEDED))
        instants = {str(name): instant.from_text(at) for name, at in lists.items()}
        return {name: at for name, at in instants.items() if at > now - ORPHAN_AGE}
    return {}


def note_superseded(store: Writer, lists: Collection[str], now: datetime) -> None:
    """Note lists that the next index does not name. Raises Conflict and StoreError."""
    tag = store.tag(SUPERSEDED)
    superseded = {**read_superseded(store, now), **dict.fromkeys(lists, now)}
    texts = {name: instant.to_text(at) for name, at in sorted(superseded.items())}
    store.replace(SUPERSEDED, json.dumps(texts).encode(), tag)


def _find_snapshot(key: str) -> int:
    """Return the snapshot that an object was read from, 0 if the key is not of a dump."""
    number = key.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 0
