"""Many captures: the benches' generator, and a publish whatever memory and threads it has."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.generate import captures, fill
from builder.intake import intake
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.snapshot.manifest import Manifest
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.conftest import resize

COUNT = 9000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make several files of several row groups out of few rows."""
    resize(monkeypatch, GROUP_ROWS=256, FILE_GROUPS=8)


def generated(root: Path) -> FolderStore:
    store, folder = FolderStore(root / "store"), root / "parts"
    folder.mkdir(parents=True)
    fill(store, COUNT, folder, seed=3)
    return store


def made(store: FolderStore, threads: int, memory: int) -> Manifest:
    """Publish what is in the store's intake."""
    text = f'[repository]\nnamespace = "a.example.org"\n[publish]\nmemory = {memory}\n'
    runtime = Runtime(
        lambda: datetime.now(UTC), lambda seconds: None, lambda text: None, {}, threads
    )
    manifest = publish(store, configuration.parse(text, {}), runtime).manifest
    assert manifest is not None
    return manifest


def published(root: Path, threads: int, memory: int) -> list[str]:
    """Return the keys of the data files, which are named by their bytes."""
    store = generated(root)
    manifest = made(store, threads, memory)
    catalogue = Catalogue(store)
    leaves = [leaf for table in manifest.tables.values() for leaf in table]
    return [file.key for leaf in leaves for file in catalogue.leaf(leaf).files]


@pytest.mark.thorough
def test_captures_are_generated_alike_one_by_one_and_in_bulk(tmp_path: Path) -> None:
    store = generated(tmp_path)
    found = list(intake.runs(store))
    files = intake.files(store, found, intake.keys_of(store, found), "captures")
    rows = engine.connect().execute(f"SELECT * FROM {engine.table('$files')}", {"files": files})
    names = [column.name for column in intake.CAPTURES[2:]]
    for row, one in zip(rows.fetchall(), captures(COUNT, seed=3), strict=True):
        values = [getattr(one, name) for name in names]
        values = [v.replace(tzinfo=None) if isinstance(v, datetime) else v for v in values]
        assert list(row) == [one.identity, list(one.sets), *values]


def test_memory_and_threads_change_no_byte(tmp_path: Path) -> None:
    keys = published(tmp_path / "little", 1, 256)
    assert keys == published(tmp_path / "much", 3, 2048)
    assert any("/copies/" in key for key in keys)


def test_what_does_not_repeat_has_no_dictionary(tmp_path: Path) -> None:
    tables = ("records", "copies", "lookup")
    keys = [key for key in published(tmp_path, 2, 512) if key.split("/")[1] in tables]
    assert {key.split("/")[1] for key in keys} == set(tables)
    rows = engine.connect().execute(
        "SELECT file_name, path_in_schema FROM parquet_metadata($files) "
        "WHERE encodings LIKE '%DICTIONARY%' AND path_in_schema IN "
        "('identifier', 'url', 'url_surtkey', 'content_digest', 'position', 'key')",
        {"files": [str(tmp_path / "store" / key) for key in keys]},
    )
    assert rows.fetchall() == []
