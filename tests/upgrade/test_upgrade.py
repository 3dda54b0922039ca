"""Stores of earlier releases are refused, upgraded and served, and nothing of them is lost."""

import argparse
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.context import Context, from_environment
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from builder.upgrade.store_move import OccupiedTarget, move
from builder.upgrade.upgrade import upgrade
from functions.config import configuration
from functions.oai.application import Application
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.snapshot import instant, layout
from functions.snapshot.errors import VERSION
from tests.bucket import Bucket
from tests.builder.conftest import Clock
from tests.e2e.conftest import Result, sheaf
from tests.functions.oai.client import content, event, respond
from tests.upgrade import answers
from tests.upgrade.answers import Ask

STORES = {p.name.removesuffix(".tar.xz"): p for p in Path(__file__).parent.glob("stores/*.xz")}
"""The archives of the stores, by release."""
RENDERED: dict[str, set[str]] = {"0.1.0": set(), "0.2.0": set()}
"""By release, the formats in which these records have other XML now; their items are equal."""
CONVERTED = {"0.1.0": (4, 2, 5), "0.2.0": (0, 0, 0)}
"""By release, how many snapshots, runs of the intake and runs of the obi store are converted."""
OLDER = [release for release, counts in CONVERTED.items() if any(counts)]
"""Releases whose stores have an earlier schema."""
KINDS = ("record", "set", "token")


@dataclass(frozen=True)
class Kept:
    """A store of an earlier release, unpacked, and what that release answered."""

    folder: Path
    release: str
    expected: dict[str, list[Any]]

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def __call__(self, command: str, *arguments: object) -> Result:
        return sheaf(
            command,
            "--config",
            self.folder / "sheaf.toml",
            "--store",
            self.store,
            *arguments,
            surround=surround,
        )


BEHIND = datetime(2100, 1, 1, tzinfo=UTC)
"""An instant at which all stores are in effect, whatever the clock of this machine is."""


def surround(arguments: argparse.Namespace) -> Context:
    clock = Clock(BEHIND)
    return Context(arguments, from_environment(arguments).environment, clock, clock.sleep)


def copied(kept: Kept, folder: Path) -> Kept:
    shutil.copytree(kept.folder, folder)
    return replace(kept, folder=folder)


def unpack(release: str, folder: Path) -> Kept:
    with tarfile.open(STORES[release]) as archive:
        archive.extractall(folder, filter="data")
    rows = answers.read((folder / "answers.jsonl").read_bytes())
    expected = {kind: [row[1:] for row in rows if row[0] == kind] for kind in KINDS}
    return Kept(folder, release, expected)


@pytest.fixture(scope="module", params=sorted(STORES))
def earlier(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A store as the release left it; nobody changes it."""
    return unpack(request.param, tmp_path_factory.mktemp("earlier"))


@pytest.fixture(scope="module", params=["in place", "to another store"])
def upgraded(
    request: pytest.FixtureRequest, earlier: Kept, tmp_path_factory: pytest.TempPathFactory
) -> Kept:
    """The same store after `sheaf upgrade`; nobody changes it."""
    folder = tmp_path_factory.mktemp("upgraded")
    shutil.copy(earlier.folder / "sheaf.toml", folder)
    found = Kept(folder, earlier.release, earlier.expected)
    if request.param == "in place":
        shutil.copytree(earlier.store, found.store)
        done = found("upgrade", "--json")
    else:
        before = objects(earlier.store)
        done = earlier("upgrade", "--to", found.store, "--json")
        assert objects(earlier.store) == before
    assert done.code == 0, done.err
    counts = done.json["snapshots"], done.json["intake"], len(done.json["obi"])
    assert counts == CONVERTED[earlier.release]
    return found


def objects(store: Path) -> dict[str, bytes]:
    return {str(p.relative_to(store)): p.read_bytes() for p in store.rglob("*") if p.is_file()}


@contextmanager
def asking(kept: Kept) -> Iterator[Ask]:
    """Serve the store within this process."""
    settings = configuration.load(kept.folder / "sheaf.toml", {})
    repository = DuckRepository(FolderStore(kept.store))
    application = Application(
        repository, settings, lambda: BEHIND + timedelta(hours=1), guarded=True
    )
    try:
        yield lambda query: content(respond(application, event(query)))
    finally:
        repository.close()


def collect(kept: Kept) -> dict[str, list[Any]]:
    with asking(kept) as ask:
        rows = answers.collect(ask)
    return {kind: [row[1:] for row in rows if row[0] == kind] for kind in KINDS}


@pytest.mark.parametrize("earlier", OLDER, indirect=True)
def test_an_earlier_store_is_refused_in_one_line(earlier: Kept) -> None:
    before = objects(earlier.store)
    for command in ("publish", "verify", "status", "serve"):
        done = earlier(command)
        assert done.code == 2
        assert done.err.count("\n") == 1
        assert f"this Sheaf reads {VERSION}: run `sheaf upgrade`" in done.err
    assert objects(earlier.store) == before


def test_an_upgraded_store_answers_as_before(upgraded: Kept) -> None:
    """Items, datestamps, deletions and sets are equal; XML only where the release's was other."""
    found = collect(upgraded)
    assert [row[0] for row in found["set"]] == [row[0] for row in upgraded.expected["set"]]
    wanted = upgraded.expected["record"]
    formats = {row[0] for row in wanted}
    records = [row for row in found["record"] if row[0] in formats]
    assert [row[:5] for row in records] == [row[:5] for row in wanted]
    differing = {a[0] for a, b in zip(records, wanted, strict=True) if a[5] != b[5]}
    assert differing == RENDERED[upgraded.release]
    assert any(row[3] for row in wanted)


def test_tokens_of_the_earlier_release_continue_their_lists(upgraded: Kept) -> None:
    assert {verb for verb, _, _ in upgraded.expected["token"]} == {
        answers.RECORDS,
        answers.IDENTIFIERS,
        answers.SETS,
    }
    with asking(upgraded) as ask:
        for verb, token, rest in upgraded.expected["token"]:
            assert list(answers.follow(ask, verb, token)) == rest
            bad = ask(f"verb={verb}&resumptionToken={token[:-1]}")
            assert b'code="badResumptionToken"' in bad


def test_an_upgraded_store_is_sound_and_needs_nothing_more(upgraded: Kept) -> None:
    done = upgraded("verify")
    assert (done.code, "damage: " in done.out) == (0, False), done.out
    before = objects(upgraded.store)
    assert "nothing to do" in upgraded("upgrade").out
    assert objects(upgraded.store) == before
    assert not list(upgraded.store.glob("upgrade/*"))


def test_a_harvester_misses_nothing_and_gets_nothing_twice(upgraded: Kept, tmp_path: Path) -> None:
    """It harvested all from the earlier release, and goes on behind the next publish."""
    kept = copied(upgraded, tmp_path / "kept")
    settings = configuration.load(kept.folder / "sheaf.toml", {})
    known: dict[str, dict[str, Any]] = {}
    for prefix, *row, _ in kept.expected["record"]:
        known.setdefault(prefix, {})[row[0]] = row
    clock = Clock(BEHIND)
    runtime = Runtime(clock, clock.sleep, lambda text: None, {})
    # The release's formats stay, so that the new XML gives no new datestamps.
    built = publish(FolderStore(kept.store), settings, runtime)
    assert (built.new, built.changed, built.faults) == (3, 0, 2)
    since = max(row[2] for row in kept.expected["record"])
    with asking(kept) as ask:
        for prefix in sorted(known):  # the last one is redif
            before = known[prefix]
            every = {row[0]: row for row in answers.headers(ask, metadataPrefix=prefix)}
            got = answers.headers(ask, metadataPrefix=prefix, **{"from": after(since)})
            assert [row for row in got if before.get(row[0]) == row] == []
            assert {**before, **{row[0]: row for row in got}} == every
        for verb, token, rest in kept.expected["token"]:
            # The store has an id now; an ended list goes on with what was published since.
            assert list(answers.follow(ask, verb, token))[: len(rest)] == rest
    assert kept("expire", "--keep", "100").code == 0  # removes what only the release needed
    assert "no problems found" in kept("verify").out
    for key in (layout.POINTER, layout.WITNESS):  # as a release of a schema in between left them
        document = json.loads((kept.store / key).read_bytes())
        del document["sha256"]
        (kept.store / key).write_text(json.dumps({**document, "schema": VERSION - 1}))
    assert kept("upgrade", "--json").json["schema"] == VERSION - 1
    with asking(kept) as ask:
        assert {row[0] for row in answers.headers(ask, metadataPrefix="redif")} == {*every}


def after(datestamp: str) -> str:
    """Return the second after a datestamp."""
    return instant.to_text(instant.from_text(datestamp) + timedelta(seconds=1))


@pytest.mark.parametrize("upgraded", ["to another store"], indirect=True)
def test_a_bucket_gets_the_objects_of_a_folder(
    upgraded: Kept, earlier: Kept, make_bucket: Callable[[], Bucket]
) -> None:
    bucket, source, clock = make_bucket(), FolderStore(earlier.store), Clock(BEHIND)
    bucket.create("intake/other", b"of another store")
    with pytest.raises(OccupiedTarget, match="has intake/other: choose an empty place"):
        move(source, bucket, BEHIND, lambda total: nullcontext(lambda count: None))
    bucket.remove("intake/other")
    bucket.create(layout.manifest_key(1), b"{")  # of a copy that was cut off
    for expected in (True, False):
        copied = move(source, bucket, BEHIND, lambda total: nullcontext(lambda count: None))
        assert bool(copied) is expected
    runtime = Runtime(clock, clock.sleep, lambda text: None, {}, 1)
    upgrade(bucket, runtime, 256, lambda what, total: nullcontext(lambda count: None))
    found = {key: bucket.read(key) for key in bucket.keys("")}
    wanted = objects(upgraded.store)
    assert {k: v for k, v in found.items() if k != layout.POINTER} == {
        k: v for k, v in wanted.items() if k not in (layout.POINTER, ".lock")
    }


def test_the_layout_knows_the_present_schema() -> None:
    assert layout.UPGRADES[-1] == VERSION


def test_a_newer_store_is_refused_with_the_release_that_it_needs(
    upgraded: Kept, tmp_path: Path
) -> None:
    kept = copied(upgraded, tmp_path / "kept")
    path = kept.store / layout.POINTER
    text = path.read_text().replace(f'"schema": {VERSION}', f'"schema": {VERSION + 1}')
    path.write_text(text.replace('"sheaf": "0.2.0"', '"sheaf": "0.9.0"'))
    for command in ("publish", "status", "upgrade"):
        done = kept(command)
        assert done.code == 2
        assert done.err.count("\n") == 1
        assert "install Sheaf 0.9.0 or later" in done.err
