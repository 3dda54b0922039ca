"""Runs of filesets: what was added comes into the intake whole, or not at all."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builder.intake import intake
from builder.intake.lines import line_table
from builder.sources.datasets.results import Results
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreError
from functions.store import engine
from tests.builder.sources.datasets.outcomes import failed, item, outcome

NOW = datetime(2026, 11, 22, 10, tzinfo=UTC)


def rows(store: FolderStore) -> list[tuple[str, str, str | None]]:
    """Return deed, status and kind of each row of the intake."""
    found = list(intake.runs(store))
    files = intake.files(store, found, intake.keys_of(store, found), "filesets")
    connection = engine.connect(threads=1)
    sql = f"SELECT deed, status, kind FROM {line_table(files, intake.FILESETS)} ORDER BY ALL"
    return connection.execute(sql, {"files": files}).fetchall() if files else []


def test_results_are_a_run(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    results = Results(store, tmp_path / "scratch", lambda: NOW)
    assert results.commit() is None
    results.add(outcome(item("a.csv")))
    results.add(failed("platform-gone"))
    run = results.commit()
    assert run is not None
    assert run.name.startswith("20261122T100000Z-")
    assert [one.name for one in intake.runs(store)] == [run.name]
    assert run.results == 2
    assert rows(store) == [
        ("delete", "platform-gone", None),
        ("list", "success-file", "file"),
    ]
    assert results.commit() is None
    results.add(failed("stalled"))
    assert results.commit() != run
    assert len([*intake.runs(store)]) == 2
    assert not any((tmp_path / "scratch").iterdir())


def test_many_threads_may_add(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    results = Results(store, tmp_path / "scratch", lambda: NOW)

    def add() -> None:
        for _ in range(50):
            results.add(outcome(item("a.csv", "b.csv")))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.commit()
    assert rows(store) == [("list", "success", "fileset")] * 200


def test_what_could_not_be_committed_is_committed_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path / "store")
    results = Results(store, tmp_path / "scratch", lambda: NOW)
    results.add(outcome(item("a.csv")))
    with monkeypatch.context() as broken:

        def create(key: str, data: bytes) -> str:
            raise StoreError("the store does not answer")

        broken.setattr(store, "create", create)
        with pytest.raises(StoreError, match="does not answer"):
            results.commit()
    assert rows(store) == []
    assert not list(store.keys("intake/"))
    results.add(failed("stalled"))
    results.commit()
    assert rows(store) == [("leave", "stalled", None), ("list", "success-file", "file")]
