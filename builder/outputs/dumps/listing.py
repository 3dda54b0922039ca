"""Objects that the index of dumps names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from functions.snapshot import dumps
from functions.snapshot.dumps import DumpIndex, DumpPart, FormatDumps, StoredDump
from functions.snapshot.store import Reader


@dataclass(frozen=True, slots=True)
class DumpState:
    """The index of a store's dumps, with the list of each format."""

    index: DumpIndex
    formats: Mapping[str, FormatDumps]

    @staticmethod
    def read(store: Reader) -> "DumpState":
        """Read the index and the lists. Raises MissingObject and DamagedStore."""
        index = DumpIndex.from_json(store.read(dumps.INDEX))
        formats = {
            name: FormatDumps.from_json(store.read(dumps.FOLDER + entry.list))
            for name, entry in index.formats.items()
        }
        return DumpState(index, formats)

    def keys(self, store: Reader) -> Iterator[str]:
        """Yield the keys of all objects but the index. Raises MissingObject and DamagedStore."""
        for entry in self.index.formats.values():
            yield dumps.FOLDER + entry.list
        for stored in self.formats.values():
            yield from format_keys(store, stored)


def format_keys(store: Reader, stored: FormatDumps) -> Iterator[str]:
    """Yield the keys of the objects of a format's dumps. Raises MissingObject and DamagedStore."""
    for dump in stored.all:
        if dump.has_manifest:
            yield dumps.FOLDER + dump.name
        for part in list_parts(store, dump):
            yield dumps.FOLDER + part.name
            yield dumps.FOLDER + part.name + dumps.KEYS


def list_parts(store: Reader, dump: StoredDump) -> tuple[DumpPart, ...]:
    """Return the parts of a dump. Raises MissingObject and DamagedStore."""
    if dump.has_manifest:
        return dumps.parts_from_json(store.read(dumps.FOLDER + dump.name))
    if not dump.name:
        return ()
    return (
        DumpPart(dump.name, dump.records, dump.deleted, dump.bytes, dump.sha256, dump.positions),
    )
