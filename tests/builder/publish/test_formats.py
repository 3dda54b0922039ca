"""What `sheaf publish` writes down of the formats: since when they are made as they are."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from builder.publish.publish import publish
from builder.snapshot import consistency
from builder.snapshot.transaction import ChangeResult
from functions.oai.render import check
from functions.oai.render.render import Renderer
from functions.snapshot.errors import ConfigurationError
from functions.snapshot.manifest import Making
from tests.builder.conftest import World, capture
from tests.functions.oai.client import configured
from tests.interleaving.killer import Killed
from tests.interleaving.test_late import Slow

pytestmark = pytest.mark.shared(2)


def published(world: World, *numbers: int, **digests: str) -> ChangeResult:
    """Publish these captures, if there are any, a minute later."""
    if numbers:
        world.ingest([*map(capture, numbers)])
    world.clock.sleep(60)
    return publish(world.store, world.configuration(), world.runtime(), digests)


def test_a_format_that_is_made_otherwise_makes_a_snapshot(world: World) -> None:
    assert published(world, 1, a="1", b="1").manifest is not None
    assert world.newest().formats == {"a": Making("1"), "b": Making("1")}
    assert published(world, a="1", b="1").manifest is None
    built = published(world, a="2", b="1")
    assert (built.new, built.changed, built.records) == (0, 0, 1)
    manifest = world.newest()
    assert built.manifest == manifest
    assert manifest.snapshot == 2
    assert manifest.formats == {"a": Making("2", manifest.effective, 2), "b": Making("1")}
    assert manifest.sequences[0].effective < manifest.effective
    assert published(world, a="2", b="1").manifest is None
    # It takes effect with new records, and other changes leave it as it is.
    published(world, 2, a="3", b="1")
    manifest = world.newest()
    assert manifest.formats["a"] == Making("3", manifest.effective, 3)
    assert manifest.sequences[1].effective == manifest.effective
    for digests in ({"a": "3"}, {}):
        published(world, 3 + len(digests), **digests)
        assert world.newest().formats == manifest.formats
    # A new one is written down, and old ones are not forgotten.
    published(world, c="1")
    assert world.newest().formats == {**manifest.formats, "c": Making("1")}


def test_one_that_came_too_late_for_its_instant_gets_a_later_one(world: World) -> None:
    published(world, 1, a="1")

    def die(writes: int) -> None:
        world.clock.sleep(100)
        raise Killed

    with pytest.raises(Killed):
        publish(Slow(world.root, die), world.configuration(), world.runtime(), {"a": "2"})
    late = world.newest()
    assert late.formats == {"a": Making("2", late.effective, 2)}
    assert published(world, a="2").manifest is not None
    manifest = world.newest()
    assert manifest.effective > late.effective + timedelta(seconds=100)
    assert manifest.formats == {"a": Making("2", manifest.effective, 3)}
    assert manifest.sequences[0].effective == late.sequences[0].effective


def publish_named(
    world: World, *, redate: bool = False, address: str = "", name: str = "A", **digests: str
) -> ChangeResult:
    """Publish under a name, which is in the XML of one of two formats."""
    world.clock.sleep(60)
    settings = {"SHEAF_REPOSITORY_NAME": name}
    if address:
        settings["SHEAF_CONTENT_ADDRESS"] = json.dumps([address])
    configuration = world.configuration(**settings)
    formats = {"mods": name + address, "oai_dc": "1", **digests}
    return publish(world.store, configuration, world.runtime(), formats, redate=redate)


def test_another_name_in_records_is_refused_until_it_is_wanted(world: World) -> None:
    world.ingest([capture(1)])
    publish_named(world)
    world.ingest([capture(2)])
    before = world.newest()
    with pytest.raises(ConfigurationError) as refusal:
        publish_named(world, name="B")
    assert str(refusal.value) == (
        'repository.name is "B", but the store was published with "A", which records show: restore '
        "that value, or run `sheaf publish --redate` to give them new datestamps"
    )
    assert world.newest() == before
    assert publish_named(world).new == 1
    assert publish_named(world, name="B", redate=True).manifest is not None
    manifest = world.newest()
    assert manifest.settings["repository.name"] == "B"
    assert manifest.formats["mods"].since == manifest.effective
    assert manifest.formats["oai_dc"].since is None
    assert publish_named(world, name="B").manifest is None
    with pytest.raises(ConfigurationError, match=r'name is "A", but .* with "B"'):
        publish_named(world)
    with pytest.raises(ConfigurationError, match=r'content.address is "http://a\.cz/{url}", but'):
        publish_named(world, name="B", address="http://a.cz/{url}")


def test_a_name_that_no_record_shows_may_change(world: World) -> None:
    world.ingest([capture(1)])
    publish_named(world)
    assert publish_named(world, name="B", mods="A").manifest is not None
    assert world.newest().settings["repository.name"] == "B"
    assert world.newest().formats["mods"] == Making("A")


def test_a_store_without_the_settings_takes_them_up_at_its_dates(world: World) -> None:
    """Stores of 0.2.0 have none."""
    world.ingest([capture(1)])
    publish_named(world)
    manifest = world.newest()
    plain = json.loads(manifest.to_json())
    del plain["settings"]
    (world.root / manifest.key).write_bytes(json.dumps(plain).encode())
    assert world.newest().settings == {}
    assert publish_named(world).manifest is not None
    assert world.newest().settings == manifest.settings
    assert world.newest().formats == manifest.formats
    assert world.newest().sequences == manifest.sequences
    with pytest.raises(ConfigurationError, match='name is "B"'):
        publish_named(world, name="B")


def test_a_format_that_takes_effect_after_its_manifest_is_damage(world: World) -> None:
    published(world, 1, a="1")
    manifest = world.newest()
    for making in (
        Making("1", manifest.effective + timedelta(seconds=1), 1),
        Making("1", manifest.effective, 2),
    ):
        wrong = replace(manifest, formats={"a": making})
        (finding,) = consistency.of_manifest(1, wrong, ())
        assert finding.code == "manifest-wrong"
        assert finding.problem == "its format a takes effect after it"
    right = replace(manifest, formats={"a": Making("1", manifest.effective, 1)})
    assert not [*consistency.of_manifest(1, right, ())]


def test_a_digest_is_of_what_makes_the_xml(tmp_path) -> None:
    own = tmp_path
    (own / "crosswalks").mkdir()
    (own / "tables").mkdir()
    (own / "tables" / "t.toml").write_text('"a/b" = "c"\n')
    part = own / "crosswalks" / "part.xml"
    whole = own / "crosswalks" / "capture-mods.xml"

    def digests(**settings: str) -> dict[str, str]:
        formats, _ = check.open_formats(configured())
        renderer = Renderer(own=own, repository_name=settings.get("name", "A"))
        return {row.prefix: renderer.digest(row) for row in formats.rows}

    head = '<mods xmlns="http://www.loc.gov/mods/v3">\n{{ title | lookup("t") }}\n'
    part.write_text("<note>{{ url }}</note>\n")
    whole.write_text(f'{head}{{% include "crosswalks/part.xml" %}}\n</mods>\n')
    first = digests()
    other = digests(name="B")
    assert digests() == first == other | {"mets": first["mets"]}
    assert len({*first.values()}) == len(first)
    for change in (
        lambda: part.write_text("<note>{{ title }}</note>\n"),
        lambda: (own / "tables" / "t.toml").write_text('"a/b" = "d"\n'),
        lambda: whole.write_text(f"{head}{{{{ repository_name }}}}</mods>\n"),
    ):
        change()
        found = digests()
        assert found["mods"] != first["mods"]
        assert found["oai_dc"] == first["oai_dc"]
        first = found
    assert digests(name="B")["mods"] != first["mods"]
