"""Every output: what holds of it after a change, whichever it is."""

from pathlib import Path

import pytest

from builder.outputs import OUTPUTS
from builder.outputs.follow import open_outputs
from builder.outputs.log.output import LogOutput
from builder.outputs.output import Output
from builder.outputs.tables.index import INDEX
from builder.publish.store_copy import export
from builder.store.folder import FolderStore
from functions.snapshot.errors import ConfigurationError, DamagedStore
from tests.builder.conftest import World, capture
from tests.builder.outputs.log.conftest import sign_with

SETTINGS = {
    "SHEAF_PUBLISH_TABLES": "true",
    "SHEAF_PUBLISH_DUMPS": '["jsonl"]',
    "SHEAF_PUBLISH_SITE": "true",
}


@pytest.fixture(params=OUTPUTS, ids=lambda output: type(output).__name__)
def output(request: pytest.FixtureRequest) -> Output:
    member: Output = request.param
    return member


@pytest.fixture
def settings(world: World, tmp_path: Path) -> dict[str, str]:
    """Publish twice with all outputs; return the settings."""
    settings = SETTINGS | sign_with(world, tmp_path / "sheaf.key").settings
    for title in ("a", "b"):
        world.add([capture(number, title=title) for number in range(8)], **settings)
        world.clock.sleep(60)
    return settings


def find(world: World, store: FolderStore) -> list[str]:
    return [f"{finding.code} {finding.object}" for finding in world.verify(store).findings]


def test_an_update_is_whole_and_a_second_writes_nothing(
    output: Output, world: World, settings: dict[str, str]
) -> None:
    update = output.open(world.configuration(**settings))
    assert all(world.store.tag(key) for key in update.objects)
    before = {entry.key: entry.modified for entry in world.store.entries("")}
    update.run(world.store, world.runtime())
    assert {entry.key: entry.modified for entry in world.store.entries("")} == before
    assert find(world, world.store) == []


def test_it_names_what_there_must_be_and_its_loss_is_found(
    output: Output, world: World, settings: dict[str, str]
) -> None:
    for key in output.open(world.configuration(**settings)).objects:
        data = world.store.read(key)
        world.store.remove(key)
        assert any(finding.endswith(f" {key}") for finding in find(world, world.store)), key
        world.store.create(key, data)


def test_it_needs_no_retired_snapshot(
    output: Output, world: World, settings: dict[str, str]
) -> None:
    assert world.expire().retired
    output.retire(world.store, world.runtime(), anew=True)
    assert output.retire(world.store, world.runtime(), anew=True) == 0
    assert find(world, world.store) == []


def test_settings_are_checked_before_a_service_is_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogOutput, "open", pytest.fail)
    with pytest.raises(ConfigurationError, match="odd is not a format of dumps"):
        open_outputs(world.configuration(SHEAF_PUBLISH_DUMPS='["odd"]'))


def test_a_copy_has_the_tables_though_the_log_is_damaged(
    world: World, settings: dict[str, str], tmp_path: Path
) -> None:
    world.store.remove(*world.store.keys("log/tile/"))
    copy = FolderStore(tmp_path / "copy")
    with pytest.raises(DamagedStore, match="log/tile"):
        export(world.store, copy, world.runtime())
    assert copy.tag(INDEX)


def test_a_copy_has_it_or_the_next_publish_there_makes_it(
    output: Output, world: World, settings: dict[str, str], tmp_path: Path
) -> None:
    copy = FolderStore(tmp_path / "copy")
    export(world.store, copy, world.runtime())
    update = output.open(world.configuration(**settings))
    update.run(copy, world.runtime())
    assert all(copy.tag(key) for key in update.objects)
    assert find(world, copy) == []
    export(world.store, copy, world.runtime())
    assert find(world, copy) == []
