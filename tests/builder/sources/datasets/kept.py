"""Datasets that are kept in a store: their objects, and the record that says so."""

import hashlib
from dataclasses import replace

from builder.sources.datasets.item import FilesetPlatformItem, IngestOutcome
from builder.sources.datasets.strategies import keys as place
from builder.sources.datasets.strategies import record
from builder.sources.datasets.strategies.record import KeptObject
from functions.snapshot.store import Writer
from tests.builder.sources.datasets import outcomes


def body(path: str, size: int) -> bytes:
    """Return the bytes of a file."""
    return (path.encode() * size)[:size]


def keep(store: Writer, of: FilesetPlatformItem) -> IngestOutcome:
    """Write a dataset's files, then their record; return the outcome that tells of it."""
    base = place.place(of)
    keys = place.file_keys(base, [file.path for file in of.files])
    files, objects = [], []
    for file in outcomes.archived(of).manifest:
        if file.status == "withheld":
            files.append(file)
            continue
        key, data = keys[file.path], body(file.path, file.size or 0)
        digest = hashlib.sha256(data).hexdigest()
        with store.creating(key) as sink:
            sink.write(data)
        files.append(replace(file, key=key, sha256=digest))
        objects.append(KeptObject(key, len(data), digest))
    kept = replace(outcomes.archived(of), manifest=tuple(files), location=base)
    stored = record.of_files(of, kept.ingest_strategy, files, objects, location=base)
    record.write(store, base, stored, of)
    return outcomes.outcome(of, archived=kept)
