"""The demo's dataset is fetched by what fetches any: over HTTP, verified, into the intake."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from builder.demo import dataset
from builder.demo.fetching import archived
from builder.intake import intake
from builder.store.folder import FolderStore
from functions.config import configuration

NOW = datetime(2026, 11, 22, 10, tzinfo=UTC)
SETTINGS = 'fileset.strategy = "s3"\nhttp.host_seconds = 0\n'


def test_the_dataset_is_archived_and_found_again(tmp_path: Path) -> None:
    store, settings = FolderStore(tmp_path / "store"), configuration.parse(SETTINGS, {})
    first = archived(store, settings, lambda: NOW, tmp_path / "own")
    assert (first.status, first.detail) == ("success", "")
    assert first.archived is not None
    kept = {file.path: store.read(file.key or "") for file in first.archived.manifest}
    wanted = {
        path.split("/")[-2]: body
        for path, (_, body) in dataset.answers("http://a.example").items()
        if path.endswith("/content")
    }
    assert kept == wanted
    assert {file.status for file in first.archived.manifest} == {"verified"}
    assert [run.results for run in intake.runs(store)] == [1]
    again = archived(store, settings, lambda: NOW, tmp_path / "own")
    assert again.status == "success-existing"
    digests = {file.sha256 for file in again.archived.manifest} if again.archived else set()
    assert digests == {hashlib.sha256(body).hexdigest() for body in wanted.values()}
