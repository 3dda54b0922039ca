"""WARC/1.1 files of the files at URLs as a run found them, for web archive tools.

A version that a run logged becomes a resource record: its block is the file's bytes. The header of
the response is not kept, except for the log, and therefore not invented. An unchanged file becomes
a revisit record, which refers to the record with its bytes.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from warcio.warcwriter import WARCWriter

from builder.errors import UsageError
from builder.export import staging
from builder.export.obi_source import LoggedObject
from builder.obi import content
from builder.obi.content import Version
from builder.runtime import Advance
from builder.store.durable import sync_file
from functions import distribution
from functions.snapshot import instant
from functions.snapshot.store import Reader

_CONFORMS = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_UNKNOWN = "application/octet-stream"
_HTTP = "application/http"  # says that the block begins with a header, whatever a server sent


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A run that found files: its tist, and the files as obi_objects.sightings yields them."""

    tist: int
    files: Callable[[], Iterable[LoggedObject]]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Result: number of WARC files, resource and revisit records; `there` counts existing files."""

    files: int
    resources: int
    revisits: int
    there: int


def is_file(target: Path) -> bool:
    """Return whether the target is named like a WARC file, rather than a folder of them."""
    return target.name.endswith((".warc", ".warc.gz"))


def export(store: Reader, runs: Sequence[FetchedFile], target: Path, advance: Advance) -> Recorded:
    """Write one WARC file of all `runs` or, into a folder, one for each run that has none yet.

    A file gets its name only when it is complete and synced. `advance` is called with the number of
    runs. Raises UsageError, DamagedStore, MissingObject and StoreError.
    """
    whole = is_file(target)
    if whole and target.exists():
        raise UsageError(f"{target} already exists: choose another file, or a folder to add to")
    files = resources = revisits = 0
    with staging.beside(target) as scratch:
        if not whole:
            target.mkdir(exist_ok=True)
        groups = [runs] if whole else [[run] for run in runs]
        for group in groups:
            path = target if whole else target / f"run-{group[0].tist}.warc.gz"
            if path.exists():
                continue
            with (scratch / path.name).open("xb") as out:
                records = _Records(store, out, path.name, group[-1].tist)
                for run in group:
                    records.add(run)
                    advance(1)
                sync_file(out)
            (scratch / path.name).rename(path)
            files, resources = files + 1, resources + records.resources
            revisits += records.revisits
        staging.sync()
    return Recorded(files, resources, revisits, len(groups) - files)


class _Records:
    """Writer of the records of a named file, after its warcinfo record."""

    def __init__(self, store: Reader, out: BinaryIO, name: str, last: int) -> None:
        self._store = store
        self._writer = WARCWriter(out, gzip=name.endswith(".gz"), warc_version="1.1")
        self.resources = self.revisits = 0
        about = {
            "software": f"Sheaf {distribution.version()}",
            "format": "WARC File Format 1.1",
            "conformsTo": _CONFORMS,
            "description": "files behind the URLs of ReDIF templates",
        }
        record = self._writer.create_warcinfo_record(name, about)
        record.rec_headers.replace_header("WARC-Record-ID", _name(last, name))
        record.rec_headers.replace_header("WARC-Date", _date(last))
        self._writer.write_record(record)

    def add(self, run: FetchedFile) -> None:
        """Write a record for each file that the run found."""
        for noted in run.files():
            if noted.tist == run.tist:
                self._resource(noted)
                self.resources += 1
            else:
                self._revisit(run.tist, noted)
                self.revisits += 1

    def _resource(self, noted: LoggedObject) -> None:
        version = noted.version
        digest = _digest(version)
        headers = {
            "WARC-Record-ID": _name(noted.tist, version.id),
            "WARC-Date": _date(noted.tist),
            "WARC-Block-Digest": digest,
            "WARC-Payload-Digest": digest,
        }
        with content.open_version(self._store, version) as payload:
            record = self._writer.create_warc_record(
                version.id,
                "resource",
                payload=payload,
                length=version.bytes,
                warc_content_type=_media_type(version),
                warc_headers_dict=headers,
            )
            self._writer.write_record(record)

    def _revisit(self, tist: int, noted: LoggedObject) -> None:
        identifier = noted.version.id
        headers = {
            "WARC-Record-ID": _name(tist, identifier),
            "WARC-Date": _date(tist),
            "WARC-Refers-To": _name(noted.tist, identifier),
        }
        record = self._writer.create_revisit_record(
            identifier,
            _digest(noted.version),
            identifier,
            _date(noted.tist),
            warc_headers_dict=headers,
        )
        self._writer.write_record(record)


def _name(tist: int, identifier: str) -> str:
    """Return the id of a record, which is the same on every export."""
    return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{tist} {identifier}')}>"


def _date(tist: int) -> str:
    return instant.to_text(datetime.fromtimestamp(tist, UTC))


def _digest(version: Version) -> str:
    return f"sha256:{version.sha256}"


def _media_type(version: Version) -> str:
    said = " ".join((version.media_type or "").split())
    return said if said and not said.lower().startswith(_HTTP) else _UNKNOWN
