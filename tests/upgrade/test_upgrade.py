"""Stores of earlier releases are served and published into, and nothing of them is lost."""

import argparse
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.context import Context, from_environment
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import instant, layout
from functions.snapshot.errors import VERSION
from tests.builder.conftest import Clock
from tests.e2e.conftest import Result, sheaf
from tests.functions.oai.client import content, event, respond
from tests.upgrade import answers
from tests.upgrade.answers import Ask

STORES = {p.name.removesuffix(".tar.xz"): p for p in Path(__file__).parent.glob("stores/*.xz")}
"""The archives of the stores, by release."""
RENDERED: dict[str, set[str]] = {"0.2.0": set()}
"""By release, the formats in which these records have other XML now; their items are equal."""
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


@contextmanager
def asking(kept: Kept) -> Iterator[Ask]:
    """Serve the store within this process."""
    settings = configuration.load(kept.folder / "sheaf.toml", {})
    repository = DuckRepository(FolderStore(kept.store))
    application = Application(repository, settings, lambda: BEHIND + timedelta(hours=1))
    try:
        yield lambda query: content(respond(application, event(query)))
    finally:
        repository.close()


def collect(kept: Kept) -> dict[str, list[Any]]:
    with asking(kept) as ask:
        rows = answers.collect(ask)
    return {kind: [row[1:] for row in rows if row[0] == kind] for kind in KINDS}


def test_an_earlier_store_answers_as_before(earlier: Kept) -> None:
    """Items, datestamps, deletions and sets are equal; XML only where the release's was other."""
    found = collect(earlier)
    assert [row[0] for row in found["set"]] == [row[0] for row in earlier.expected["set"]]
    wanted = earlier.expected["record"]
    formats = {row[0] for row in wanted}
    records = [row for row in found["record"] if row[0] in formats]
    assert [row[:5] for row in records] == [row[:5] for row in wanted]
    differing = {a[0] for a, b in zip(records, wanted, strict=True) if a[5] != b[5]}
    assert differing == RENDERED[earlier.release]
    assert any(row[3] for row in wanted)


def test_tokens_of_the_earlier_release_continue_their_lists(earlier: Kept) -> None:
    assert {verb for verb, _, _ in earlier.expected["token"]} == {
        answers.RECORDS,
        answers.IDENTIFIERS,
        answers.SETS,
    }
    with asking(earlier) as ask:
        for verb, token, rest in earlier.expected["token"]:
            assert list(answers.follow(ask, verb, token)) == rest
            bad = ask(f"verb={verb}&resumptionToken={token[:-1]}")
            assert b'code="badResumptionToken"' in bad


def test_an_earlier_store_is_sound(earlier: Kept) -> None:
    done = earlier("verify")
    assert (done.code, "damage: " in done.out) == (0, False), done.out


def test_a_harvester_misses_nothing_and_gets_nothing_twice(earlier: Kept, tmp_path: Path) -> None:
    """It harvested all from the earlier release, and goes on behind the next publish."""
    kept = copied(earlier, tmp_path / "kept")
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
            # An ended list goes on with what was published since.
            assert list(answers.follow(ask, verb, token))[: len(rest)] == rest
    assert kept("expire", "--keep", "100").code == 0  # removes what only the release needed
    assert "no problems found" in kept("verify").out


def after(datestamp: str) -> str:
    """Return the second after a datestamp."""
    return instant.to_text(instant.from_text(datestamp) + timedelta(seconds=1))


def test_a_newer_store_is_refused_with_the_release_that_it_needs(
    earlier: Kept, tmp_path: Path
) -> None:
    kept = copied(earlier, tmp_path / "kept")
    path = kept.store / layout.POINTER
    text = path.read_text().replace(f'"schema": {VERSION}', f'"schema": {VERSION + 1}')
    path.write_text(text.replace('"sheaf": "0.2.0"', '"sheaf": "0.9.0"'))
    for command in ("publish", "status"):
        done = kept(command)
        assert done.code == 2
        assert done.err.count("\n") == 1
        assert "install Sheaf 0.9.0 or later" in done.err
