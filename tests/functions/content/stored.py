"""Archive files, and the contents that are given of the captures in them, as if listed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from builder.intake.captures import Capture
from functions.content.archives import PlacedArchives
from functions.content.contents import ArchivedContents
from functions.content.protocols import Content
from functions.reading.repository import PublishedRecord
from functions.store.slice import FolderSlices, Slices
from tests.builder.sources.webarchives.containers import captures

NONE = cast(Any, None)
"""A manifest, where nobody looks into it."""


@dataclass
class Stored:
    """A place of archive files, and the records of what they have; the repository of these."""

    folder: Path
    place: Slices
    records: list[PublishedRecord] = field(default_factory=list)

    @classmethod
    def within(cls, folder: Path) -> "Stored":
        """Return a folder of archive files."""
        folder.mkdir()
        return cls(folder, FolderSlices(folder))

    def put(self, name: str, data: bytes) -> None:
        """Write an archive file, and list what it has."""
        (self.folder / name).write_bytes(data)
        self.list(captures(data, name=name))

    def list(self, found: Sequence[Capture]) -> None:
        """List captures."""
        for one in found:
            fields = {name: getattr(one, name) for name in one.__slots__} | {"refers_to": None}
            self.records.append(
                PublishedRecord(
                    position=len(self.records) + 1,
                    identifier=f"oai:a.cz:{one.identity}",
                    kind="capture",
                    datestamp=datetime(2026, 1, 1, tzinfo=UTC),
                    deleted=False,
                    sets=(),
                    fields=fields,
                )
            )

    def refer(self, revisit: PublishedRecord, original: PublishedRecord) -> PublishedRecord:
        """Have a revisit know its original, and return it."""
        fields = {**revisit.fields, "refers_to": original.identifier}
        self.records.remove(revisit)
        self.records.append(replace(revisit, fields=fields))
        return self.records[-1]

    def withdraw(self, record: PublishedRecord) -> PublishedRecord:
        """Take a record down, and return what is listed in its place."""
        self.records.remove(record)
        self.records.append(replace(record, deleted=True, fields={}))
        return self.records[-1]

    def record(self, manifest: object, identifier: str, **_: object) -> PublishedRecord | None:
        """Return the record of an identifier, as a repository does."""
        return next((r for r in self.records if r.identifier == identifier), None)

    def one(self, **fields: object) -> PublishedRecord:
        """Return the one record that has these values."""
        (found,) = (r for r in self.records if all(r.fields.get(n) == v for n, v in fields.items()))
        return found

    def contents(self) -> ArchivedContents:
        """Return the contents of the records."""
        store = FolderSlices(self.folder / "store")
        return ArchivedContents(cast(Any, self), NONE, PlacedArchives([self.place], store))

    def found(self, **fields: object) -> Content:
        """Return what is known of the bytes of the one record that has these values."""
        return self.contents().find(NONE, self.one(**fields))

    def read(self, *, coded: bool = False, **fields: object) -> bytes:
        """Return the bytes of the one record that has these values."""
        contents = self.contents()
        with contents.open_content(contents.find(NONE, self.one(**fields)), coded=coded) as stream:
            return stream.read()
