"""Restore of a dataset: its archived files, under their paths and verified.

A file that is there with the same bytes stays; another file in its place is left alone and
reported. So a repeated restore continues, and restores what is missing.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.filesets.platforms.landing import handle_of
from builder.restore.captures import MissingError, RebuildError
from builder.restore.folder import RestoreFolder
from builder.snapshot import query
from functions.content import stored
from functions.content.protocols import ContentError
from functions.database import engine
from functions.oai.repository import PublishedRecord
from functions.snapshot.store import Writer
from functions.store.slice import Slices

_NAMED = """
SELECT identifier, concat_ws(' ', platform, host, id) AS dataset FROM filesets
WHERE identifier = $name OR lower(doi) = lower($doi)
ORDER BY dataset, document ->> '$.version_order' DESC NULLS LAST, identifier
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


def names_dataset(text: str) -> bool:
    """Return whether a text is a DOI, also with a resolver's URL or `doi:`, or an identifier."""
    return handle_of(text) is not None or text.startswith("oai:")


def find_dataset(store: Writer, name: str) -> str:
    """Return the identifier of the listed dataset that has this DOI or identifier.

    Of versions with one DOI it is that of the newest. Raises RebuildError, also if several datasets
    have the DOI, and StoreError.
    """
    values = {"name": name, "doi": handle_of(name) or ""}
    with closing(engine.connect()) as connection:
        query.prepare(connection, store, _NAMED)
        with engine.reading("the datasets"):
            found = connection.execute(_NAMED, values).fetchall()
    if not found:
        raise RebuildError(f"{store.address}: no dataset is listed as {name}")
    if len({dataset for _, dataset in found}) > 1:
        shown = ", ".join(str(identifier) for identifier, _ in found[:_SHOWN])
        raise RebuildError(f"{name} names {len(found)} datasets, choose one of them: {shown}")
    return str(found[0][0])


def restore_dataset(
    record: PublishedRecord, store: Slices, folder: Path, advance: Callable[[int], None]
) -> RestoredDataset:
    """Write the files of a record below `folder`, and return the result.

    `advance` gets 1 for each file. Raises RebuildError if the folder cannot be written, and
    StoreError.
    """
    files: Sequence[Mapping[str, Any]] = record.fields.get("files") or ()
    done = RestoredDataset(record.identifier, withheld=len(record.fields.get("withheld") or ()))
    with closing(RestoreFolder(folder)) as target:
        for file in sorted(files, key=lambda one: str(one["path"])):
            path = str(file["path"])
            try:
                if _is_same(folder / path, file):
                    done.kept += 1
                else:
                    _write(target, store, record, path)
                    done.restored += 1
                    done.bytes += int(file["bytes"])
            except (ContentError, MissingError) as error:
                done.missing[path] = str(error)
            advance(1)
    return done


def _is_same(path: Path, file: Mapping[str, Any]) -> bool:
    """Return whether there is a file with the bytes that were archived."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size != file["bytes"]:
            return False
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == str(file["sha256"])
    except OSError:
        return False


def _write(target: RestoreFolder, store: Slices, record: PublishedRecord, path: str) -> None:
    """Write a file. Raises ContentError, MissingError, RebuildError and StoreError."""
    holding = stored.find_file(record, path)
    try:
        with target.write() as (out, name):
            with stored.open_stored(store, holding, checked=True) as (pieces, _):
                for piece in pieces:
                    out.write(piece)
            out.flush()
            target.place(name, path, over=False)
    except OSError as error:
        raise RebuildError(f"{path} cannot be written: {error.strerror}") from error
