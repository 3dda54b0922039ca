"""Restore of a dataset: its archived files, under their paths on the platform and verified.

A file that is there with the same bytes stays; another file in its place is left alone and
reported. So a repeated restore continues, and restores what is missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.errors import UsageError, explaining
from builder.exports.restore.captures import MissingError, RebuildError
from builder.exports.restore.dataset_paths import name_files
from builder.exports.restore.folder import RestoreFolder
from builder.progress import PartsProgress
from builder.snapshot import query, recovery
from builder.sources.datasets.platforms.json_document import handle_of
from builder.store.context import Context
from builder.store.durable import digest_file
from functions.content import stored
from functions.content.protocols import ContentError
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import PublishedRecord, Repository
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.slice import Slices, open_reader, open_slices

_NAMED = """
SELECT identifier, dataset FROM (
    SELECT identifier, concat_ws(' ', platform, host, id) AS dataset, document,
        CASE WHEN identifier = $name THEN 1 WHEN lower(doi) = $doi THEN 2
            WHEN $doi <> '' AND len(list_filter(from_json(document -> '$.related',
                    '[{"relation": "VARCHAR", "identifier": "VARCHAR"}]'),
                lambda one: one.relation = 'IsVersionOf' AND lower(one.identifier) = $doi)) > 0
            THEN 3
            WHEN $doi <> '' AND identifier IN (SELECT identifier FROM ingest_fileset_platform
                WHERE regexp_replace(lower(base_url),
                    '^(https?://)?(dx\\.)?(doi\\.org/|doi:\\s*)', '') = $doi)
            THEN 4 END AS rank
    FROM filesets)
WHERE rank IS NOT NULL QUALIFY rank = min(rank) OVER ()
ORDER BY dataset, document ->> '$.version_order' DESC NULLS LAST, identifier
"""
"""The datasets that a name is of, the newest version first; a DOI of all versions counts last.

Some platforms do not say which DOI that is; then it names what was archived by it.
"""
_VERSION = """
SELECT identifier FROM filesets WHERE concat_ws(' ', platform, host, id) = $dataset
    AND $version IN (version, document ->> '$.edition', identifier)
ORDER BY version = $version DESC, document ->> '$.version_order' DESC NULLS LAST, identifier
"""
_VERSIONS = """
SELECT coalesce(version, identifier) FROM filesets
WHERE concat_ws(' ', platform, host, id) = $dataset
ORDER BY document ->> '$.version_order' NULLS FIRST, identifier
"""
_SHOWN = 5


@dataclass(slots=True)
class RestoredDataset:
    """Result of a restore: numbers of files and bytes, and files that are missing, with reasons."""

    identifier: str
    restored: int = 0
    kept: int = 0
    bytes: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    withheld: int = 0


def find_dataset(store: Writer, name: str, version: str | None = None) -> str:
    """Return the identifier of the listed dataset that has this DOI or identifier.

    Of several versions it is the newest, or that with the number or label `version`. Raises
    RebuildError, also if several datasets have the DOI, and StoreError.
    """
    with engine.connect_reader() as connection:
        dataset, versions = _find_named(connection, store, name)
        if version is None:
            return versions[0]
        with engine.reading("the datasets"):
            values = {"dataset": dataset}
            row = connection.execute(_VERSION, {**values, "version": version}).fetchone()
            listed = connection.execute(_VERSIONS, values).fetchmany(_SHOWN)
    if row is None:
        shown = ", ".join(str(label) for (label,) in listed)
        raise RebuildError(f"{name} has no version {version} here; listed are {shown}")
    return str(row[0])


def find_versions(store: Writer, name: str) -> tuple[str, ...]:
    """Return the identifiers of the listed versions that a DOI or an identifier names.

    The DOI of all versions names all. The newest is first. Raises as `find_dataset` does.
    """
    with engine.connect_reader() as connection:
        return _find_named(connection, store, name)[1]


def _find_named(
    connection: engine.Connection, store: Writer, name: str
) -> tuple[str, tuple[str, ...]]:
    """Return the dataset that is named, and those of its versions; leaves the views."""
    values = {"name": name, "doi": (handle_of(name) or "").lower()}
    query.prepare_view(connection, store, "filesets")
    query.prepare_view(connection, store, "ingest_fileset_platform")
    with engine.reading("the datasets"):
        rows = connection.execute(_NAMED, values).fetchall()
    versions = tuple(str(identifier) for identifier, _ in rows)
    datasets = {str(dataset) for _, dataset in rows}
    if not versions:
        raise RebuildError(f"{store.address}: no dataset is listed as {name}")
    if len(datasets) > 1:
        shown = ", ".join(versions[:_SHOWN])
        raise RebuildError(f"{name} names {len(versions)} datasets, choose one of them: {shown}")
    return datasets.pop(), versions


def restore_dataset(
    record: PublishedRecord,
    store: Slices,
    folder: Path,
    bar: PartsProgress,
    *,
    safe: bool = False,
) -> RestoredDataset:
    """Write the files of a record below `folder`, and return the result.

    With `safe`, they have the paths that are valid on every system. `bar` gets the bytes of each
    file. Raises RebuildError if there are no files or the folder cannot be written, and StoreError.
    """
    files: Sequence[Mapping[str, Any]] = record.fields.get("files") or ()
    if not files:
        state = record.fields.get("status")
        raise RebuildError(f"{record.identifier} is {state}: no file of it is archived")
    done = RestoredDataset(record.identifier, withheld=len(record.fields.get("withheld") or ()))
    paths = name_files(files, safe=safe)
    with closing(RestoreFolder(folder)) as target:
        for file in sorted(files, key=lambda row: str(row["path"])):
            path = paths[file["path"]]
            try:
                if _is_same(folder / path, file):
                    done.kept += 1
                    bar(int(file["bytes"]))
                else:
                    holding = stored.hold_file(record, file)
                    with explaining(path, "written", RebuildError), target.write() as (out, name):
                        with stored.open_stored(store, holding, checked=True) as pieces:
                            for piece in pieces:
                                out.write(piece)
                                bar(len(piece))
                        out.flush()
                        target.place(name, path, over=False)
                    done.restored += 1
                    done.bytes += int(file["bytes"])
            except (ContentError, MissingError) as error:
                done.missing[path] = str(error)
            bar.end_part()
    return done


def _is_same(path: Path, file: Mapping[str, Any]) -> bool:
    """Return whether there is a file with the bytes that were archived."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size != file["bytes"]:
            return False
        return digest_file(path) == str(file["sha256"])
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class DatasetReader:
    """Reads the records of datasets in one snapshot; `slices` has the bytes of their files."""

    manifest: Manifest
    repository: Repository
    slices: Slices

    def record(self, identifier: str) -> PublishedRecord:
        """Return the record of a dataset. Raises UsageError if it is not listed, and StoreError."""
        record = self.repository.record(self.manifest, identifier)
        if record is None or record.deleted:
            raise UsageError(f"{self.slices.address}: {identifier} is not listed any more")
        return record


@contextmanager
def open_datasets(context: Context) -> Iterator[DatasetReader]:
    """Open the datasets of the newest snapshot. Raises SheafError."""
    where = context.store_uri()
    reader = open_reader(*where, context.configuration, context.reading_environment)
    slices = open_slices(*where, context.configuration, context.reading_environment)
    with closing(DuckRepository(reader)) as repository:
        entry = recovery.current(context.store)[0].require_newest()
        yield DatasetReader(repository.manifest(entry.snapshot), repository, slices)
