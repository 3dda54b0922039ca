"""Formats of dumps: JSON lines, and each metadata format of OAI-PMH.

A part in a metadata format is one OAI-PMH response to ListRecords. Tools that work offline read
such documents: HTTP::OAI parses files of them, and metha keeps its harvests as them. There is no
resumptionToken, which such tools would follow: the manifest lists the parts.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from builder.outputs.dumps import json_lines
from builder.outputs.dumps.parts import DumpFormat
from builder.outputs.dumps.selection import DumpSelection
from functions.config.configuration import Configuration
from functions.kinds import KINDS
from functions.oai.answer import Answer, RecordList
from functions.oai.format import Format, Formats, select_available
from functions.oai.render import check
from functions.oai.render.render import Renderer, lookups
from functions.oai.request import LIST_RECORDS
from functions.reading.repository import PublishedRecord
from functions.snapshot import instant
from functions.snapshot.errors import ConfigurationError
from functions.snapshot.manifest import Manifest

_PLACE = b"\x00records\x00"


@dataclass(slots=True)
class JsonLines:
    """Implements DumpFormat: a line for each record."""

    suffix: str = ".jsonl"
    fields: Collection[str] | None = None
    head: bytes = b""
    tail: bytes = b""

    def encode(self, records: Sequence[PublishedRecord], room: int) -> tuple[int, int, bytes]:
        """Return the lines that fit."""
        lines = json_lines.encode_lines(records)
        ends = list(accumulate(map(len, lines)))
        count = max(1, bisect_right(ends, room))
        return count, count, b"".join(lines[:count])


@dataclass(slots=True)
class OaiDocuments:
    """Implements DumpFormat: a document with a record in a metadata format for each."""

    fields: Collection[str] | None
    head: bytes
    tail: bytes
    renderer: Renderer
    row: Format
    content: RecordList
    base_url: str
    suffix: str = ".xml"

    def encode(self, records: Sequence[PublishedRecord], room: int) -> tuple[int, int, bytes]:
        """Return the XML of the records that fit."""
        sheet = self.renderer.sheet(self.base_url, room)
        taken = sheet.take(replace(self.content, records=records))
        data = b"".join(sheet.finish())
        shown = select_available(records[:taken], self.row)
        return taken, len(shown) - sheet.missed, data


@dataclass(frozen=True, slots=True)
class DumpFormats:
    """The formats that a repository can be dumped in, by name, of a configuration."""

    configuration: Configuration
    formats: Formats
    renderer: Renderer

    @staticmethod
    def of(configuration: Configuration) -> "DumpFormats":
        """Return the formats of a configuration. Raises ConfigurationError."""
        formats, renderer = check.open_formats(configuration)
        return DumpFormats(configuration, formats, renderer)

    def of_snapshot(self, manifest: Manifest) -> "DumpFormats":
        """Return these formats and those in which items of a snapshot came."""
        return replace(self, formats=self.formats.of_snapshot(manifest))

    def check(self, names: Iterable[str]) -> None:
        """Raise ConfigurationError if one of `publish.dumps` is not a format."""
        own = {prefix for table in self.configuration["records"] for prefix in table["formats"]}
        for name in names:
            if name not in own:
                self.kinds(name)

    def kinds(self, name: str) -> tuple[str, ...]:
        """Return the kinds of items that have a format. Raises ConfigurationError."""
        return tuple(KINDS) if name == json_lines.NAME else (*self._find(name).crosswalks,)

    def open(self, name: str, selection: DumpSelection) -> DumpFormat:
        """Return the format for the records of a dump. Raises ConfigurationError."""
        if name == json_lines.NAME:
            return JsonLines()
        row, manifest = self._find(name), selection.manifest
        # The documents name a base URL, but a repository without one answers at any address.
        base_url = self.configuration["repository.base_url"] or f"http://{manifest.namespace}/oai"
        content = RecordList((), row, None, since=manifest.since(name))
        optional = {
            "metadataPrefix": name,
            "set": selection.set,
            "from": selection.start and instant.to_text(selection.start),
        }
        arguments = (("verb", LIST_RECORDS), *((n, text) for n, text in optional.items() if text))
        whole = RecordList((), row, None, body=(_PLACE,))
        answer = Answer(manifest.effective, base_url, arguments, whole)
        head, _, tail = self.renderer.document(answer).partition(_PLACE)
        _, fields = lookups(self.configuration, self.formats, self.renderer)
        return OaiDocuments(
            fields(name, manifest.kinds()), head, tail, self.renderer, row, content, base_url
        )

    def _find(self, name: str) -> Format:
        row = self.formats.get(name)
        if row is None:
            names = ", ".join((json_lines.NAME, *(row.prefix for row in self.formats.rows)))
            raise ConfigurationError(f"{name} is not a format of dumps; known: {names}")
        return row
