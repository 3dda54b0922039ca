"""`publish.dumps`: complete dumps and differences in the store, after whatever was published."""

import hashlib
import json
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from builder.outputs import follow as derived
from builder.outputs.dumps import policy, stored
from builder.outputs.dumps.parts import PartLimits
from builder.store.folder import FolderStore
from functions.snapshot import dumps
from functions.snapshot.errors import ConfigurationError, MissingObject
from tests.builder.conftest import World, capture
from tests.builder.outputs.dumps.history import (
    Operation,
    apply,
    brief,
    die_at,
    expand,
    headers,
    histories,
    identify,
    lines,
    live,
    merge,
    shown,
)
from tests.e2e.conftest import sheaf
from tests.extent import ALL, examples
from tests.static import on_the_web

pytestmark = pytest.mark.shared(2)

BOTH = {"SHEAF_PUBLISH_DUMPS": '["jsonl", "oai_dc"]'}
LINES = {"SHEAF_PUBLISH_DUMPS": '["jsonl"]'}
State = dict[str, Any]


class Reader:
    """Keeps up with the dumps in one format, by what the documentation says of them."""

    def __init__(self, root: Path, name: str = "jsonl", url: str = "") -> None:
        self.root, self.name, self.url = root, name, url
        self.snapshot: int | None = None
        self.state: State = {}
        self.requests = self.bytes = 0

    def copy(self) -> "Reader":
        other = Reader(self.root, self.name)
        other.snapshot, other.state = self.snapshot, dict(self.state)
        return other

    def catch_up(self) -> State:
        self.requests = self.bytes = 0
        index = json.loads(self._read("index.json"))
        one = index["formats"][self.name]
        at = -1 if self.snapshot is None else self.snapshot
        newest = one.get("newest", one["complete"])
        if newest.get("since", index["snapshot"]) <= at:
            if at < newest["snapshot"]:
                self._apply(newest)
        elif at < index["snapshot"]:
            self._catch_up_by(json.loads(self._read(one["list"])), at)
        self.snapshot = index["snapshot"]
        return self.state

    def _catch_up_by(self, listed: dict[str, Any], at: int) -> None:
        ahead = [dump for dump in listed["differences"] if dump["snapshot"] > at]
        complete = listed["complete"]["snapshot"]
        if at < (ahead[0]["since"] if ahead else complete):
            self.state = {}
            self._apply(listed["complete"])
            ahead = [dump for dump in ahead if dump["snapshot"] > complete]
        for dump in ahead:
            self._apply(dump)

    def _apply(self, dump: dict[str, Any]) -> None:
        parts = []
        if dump.get("name", "").endswith(".json"):
            data = self._read(dump["name"], {"sha256": dump["sha256"]})
            parts = json.loads(data)["parts"]
        elif dump["records"]:
            parts = [dump]
        for count in ("records", "deleted", "bytes"):
            assert dump[count] == sum(part[count] for part in parts)
        data_ = [expand(self._read(part["name"], part), part["name"]) for part in parts]
        self.state = merge(self.state, lines(data_) if self.name == "jsonl" else headers(data_))

    def _read(self, name: str, told: dict[str, Any] | None = None) -> bytes:
        if self.url:
            with urllib.request.urlopen(f"{self.url}/dumps/{name}") as answer:
                data = bytes(answer.read())
        else:
            data = (self.root / "dumps" / name).read_bytes()
        self.requests += 1
        self.bytes += len(data)
        if told:
            assert hashlib.sha256(data).hexdigest() == told["sha256"]
            assert len(data) == told.get("bytes", len(data))
        return data


def objects(world: World) -> dict[str, bytes]:
    """Return all objects of the dumps as they are read, decompressed."""
    found = {}
    for path in sorted((world.root / "dumps").rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            packed = path.suffix == ".zst"
            found[str(path.relative_to(world.root))] = expand(data, path.name) if packed else data
    return found


def codes(world: World) -> list[str]:
    return [finding.code for finding in world.verify().findings]


@pytest.fixture
def small() -> Iterator[None]:
    """Make parts and lists of differences short, so that few records are enough for many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "LIMITS", PartLimits(3))
        patch.setattr(policy, "LISTED", 2)
        yield


@settings(max_examples=examples(6), deadline=None)
@given(histories)
def test_readers_keep_up_whatever_is_published(history: list[Operation]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "LIMITS", PartLimits(3))
        patch.setattr(policy, "LISTED", 1)
        world = World(Path(folder) / "store")
        readers: list[Reader] = []
        apply(world, ("ingest", list(range(8)), 0, "a"), **BOTH)
        for step, operation in enumerate(history):
            apply(world, operation, **BOTH)
            place = Path(folder) / f"all-{step}"
            assert sheaf("export", "jsonl", place, "--store", world.root).code == 0
            whole = merge(
                {}, lines(expand(p.read_bytes(), p.name) for p in sorted(place.glob("*.zst")))
            )
            assert shown(whole) == live(world)
            fresh = [Reader(world.root), Reader(world.root, "oai_dc")]
            for reader in (*readers, *fresh):
                state = reader.copy().catch_up()
                assert state == (whole if reader.name == "jsonl" else brief(whole))
            for reader in fresh:
                reader.catch_up()
            readers += fresh
            readers[0].catch_up()
        assert codes(world) == []
        world.close()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("many", "settings_"),
    [(10, LINES), (40, BOTH), (12, BOTH)],  # fewer weigh less than the index
)
def test_catching_up_after_the_last_of_many_publishes_takes_one_small_file(
    world: World, many: int, settings_: dict[str, str]
) -> None:
    world.add([capture(n) for n in range(2_000)], **settings_)
    reader, idle = Reader(world.root), Reader(world.root)
    idle.catch_up()
    last = 49 if ALL else 14
    for number in range(last + 1):
        world.ingest(
            [
                capture(n, title=hashlib.sha256(b"%d" % n).hexdigest())
                for n in range(number * many, number * many + many)
            ]
        )
        if number == last:
            reader.catch_up()
        world.publish(**settings_)
    with on_the_web(world.root) as site:
        reader.url = site.url
        state = reader.catch_up()
        assert len(site.asked) == reader.requests <= 3
    index = json.loads((world.root / "dumps" / "index.json").read_bytes())["formats"]["jsonl"]
    change = index["newest"]
    assert change["records"] == many
    assert reader.bytes <= 2 * change["bytes"]
    assert state == Reader(world.root).catch_up() == idle.catch_up()
    listed = json.loads((world.root / "dumps" / index["list"]).read_bytes())
    assert sum(dump["bytes"] for dump in listed["differences"]) < listed["complete"]["bytes"]


def test_a_withdrawn_item_is_in_no_object_of_the_dumps(world: World, small: None) -> None:
    secret = "a secret title"
    world.add([capture(n, title=secret if n == 5 else "plain") for n in range(60)], **BOTH)
    for title in ("x", secret, "y", "z"):  # older versions are in differences as well
        world.add([capture(5, title=title), capture(7, title=title + "7")], **BOTH)
    assert any(secret.encode() in data for data in objects(world).values())
    before = Reader(world.root)
    before.catch_up()
    kept = {name for name in objects(world) if name.startswith("dumps/oai_dc/1-")}
    world.withdraw(identify(5), **BOTH)
    url = capture(5).url.encode() + b'"'
    assert not any(url in data or b'secret title"' in data for data in objects(world).values())
    assert kept & objects(world).keys()  # parts without the item stay as they are
    assert identify(5) not in shown(before.catch_up())
    assert before.state == Reader(world.root).catch_up()
    assert codes(world) == []


class Killed(BaseException):
    """What no part of the program catches."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", ["publish", "withdraw"])
def test_a_killed_update_is_never_seen_and_the_next_one_completes_it(
    tmp_path: Path, small: None, what: str
) -> None:
    for number in range(0, 100, 1 if ALL else 5):
        (tmp_path / str(number)).mkdir()
        world = World(tmp_path / str(number) / "store")
        world.add([capture(n, title="secret" if n == 5 else "plain") for n in range(9)], **BOTH)
        before = Reader(world.root).catch_up()
        world.ingest([capture(3, title="new")])
        with pytest.MonkeyPatch.context() as patch:
            changes = ("put", "create_file", "replace", "remove")
            done = die_at(patch, dumps.FOLDER, number, Killed(), *changes)
            try:
                if what == "publish":
                    world.publish(**BOTH)
                else:
                    world.withdraw(identify(5), **BOTH)
                world.close()
                break
            except Killed:
                pass
        index = json.loads((world.root / dumps.INDEX).read_bytes())
        # A publish notes the superseded lists before it replaces the index.
        assert index["snapshot"] == 1 + (done.count("replace") > (what == "publish"))
        assert index["snapshot"] == 2 or Reader(world.root).catch_up() == before
        world.publish(**BOTH)
        state = Reader(world.root).catch_up()
        assert brief(state) == Reader(world.root, "oai_dc").catch_up()
        assert state[identify(3)]["title"] == "new"
        left = [name for name, data in objects(world).items() if b"secret" in data]
        assert bool(left) == (what == "publish")
        world.clock.now += timedelta(days=20_000)
        derived.expire(world.store, world.runtime())
        assert codes(world) == []
        world.close()
    assert number > 5


def test_formats_come_and_go_as_configured(world: World) -> None:
    world.add([capture(n) for n in range(9)])
    assert not (world.root / "dumps").exists()
    with pytest.raises(ConfigurationError, match="marc is not a format of dumps; known: jsonl"):
        world.publish(SHEAF_PUBLISH_DUMPS='["marc"]')
    world.publish(**LINES)
    assert len(Reader(world.root).catch_up()) == 9
    world.publish(**BOTH)
    assert len(Reader(world.root, "oai_dc").catch_up()) == 9
    world.publish()
    assert objects(world) == {}


def test_verify_finds_what_is_wrong_and_expire_removes_what_is_not_listed(
    world: World, small: None
) -> None:
    world.add([capture(n) for n in range(9)], **LINES)
    stray = world.root / "dumps" / "jsonl" / "0-0.jsonl.zst"
    stray.write_bytes(b"")
    world.clock.now += timedelta(days=20_000)
    assert codes(world) == ["orphan"]
    assert derived.expire(world.store, world.runtime()).objects == 1
    assert not stray.exists()
    first, second, *_ = sorted((world.root / "dumps" / "jsonl").glob("*.zst"))
    first.write_bytes(first.read_bytes()[::-1])
    assert codes(world) == ["dump-altered"]
    second.unlink()
    assert sorted(codes(world)) == ["dump-altered", "dump-missing"]
    shutil.rmtree(world.root / "dumps")
    world.publish(**LINES)
    assert codes(world) == []
    assert len(Reader(world.root).catch_up()) == 9


def test_what_is_superseded_stays_for_a_day(world: World, small: None) -> None:
    """However long ago it was written: readers have the index that names it."""

    def change(number: int) -> tuple[set[str], set[str]]:
        old = (world.clock.now - timedelta(days=9)).timestamp()
        for path in (world.root / "dumps").rglob("*"):
            os.utime(path, (old, old))
        before = objects(world)
        world.add([capture(number % 9, title=f"b{number}")], ("collection:a",), **LINES)
        return {*before}, {*objects(world)}

    world.add([capture(n) for n in range(9)], **LINES)
    for number in range(9):
        before, after = change(number)
        assert before <= after
    world.clock.now += timedelta(days=2)
    assert "orphan" in codes(world)
    derived.expire(world.store, world.runtime())
    assert codes(world) == []
    assert shown(Reader(world.root).catch_up()) == live(world)


@pytest.mark.parametrize("ending", [".json", ".zst", ".keys"])
def test_dumps_may_be_removed_while_they_are_checked(
    world: World, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """That is damage, unless the index was replaced meanwhile."""
    world.add([capture(n) for n in range(9)], **LINES)
    whole, replaced = FolderStore.read, list[str]()

    def check(is_replaced: bool) -> list[str]:
        replaced.clear()

        def vanish(store: FolderStore, key: str) -> bytes:
            if key == dumps.INDEX:
                return whole(store, key) + b" " * (is_replaced and bool(replaced))
            if key.startswith("dumps/jsonl/") and key.endswith(ending):
                replaced.append(key)
                raise MissingObject(key)
            return whole(store, key)

        with monkeypatch.context() as patch:
            patch.setattr(FolderStore, "read", vanish)
            patch.setattr(FolderStore, "open", lambda store, key: BytesIO(vanish(store, key)))
            return codes(world)

    assert {*check(is_replaced=False)} == {"dump-missing"}
    assert replaced
    assert check(is_replaced=True) == []


@pytest.mark.parametrize("listed", [0, 8])
def test_few_differences_are_listed_and_each_is_rewritten_seldom(listed: int) -> None:
    sizes: list[int] = []
    written = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "LISTED", listed)
        for _ in range(1_000):
            sizes.append(1)
            if count := policy.count_merged(sizes):
                start = len(sizes) - 1 - count
                sizes[start:-1] = [sum(sizes[start:-1])]
                written += sizes[start]
            assert sizes[-1] == 1
            assert len(sizes) <= listed + 11
    assert written <= 10 * 1_000
