"""Losses: verify names each object of a store that is gone, and each part of it that is."""

import random
import re
import shutil
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

import pytest

from builder.outputs.log.verify import log_findings
from builder.snapshot import recovery
from builder.store.findings import DAMAGE
from builder.verify.report import make_report, record
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore
from tests.bucket import administrator, fresh
from tests.builder.beginning import begin
from tests.builder.conftest import capture
from tests.builder.obi.archive import Repec
from tests.builder.outputs.log.conftest import sign_with
from tests.builder.sources.datasets.kept import keep
from tests.builder.sources.datasets.outcomes import item
from tests.builder.sources.datasets.published import ingest
from tests.builder.sources.redif.trees import paper
from tests.e2e.conftest import make_home, sheaf, warc
from tests.e2e.test_commands import PAGES, one_line
from tests.extent import ALL
from tests.proxy import Answer, proxied

SETTINGS = {"SHEAF_PUBLISH_TABLES": "true", "SHEAF_PUBLISH_DUMPS": '["jsonl"]'}


def fill(world: Repec) -> None:
    """Publish captures, templates and datasets twice, with everything that can be derived."""
    settings = SETTINGS | sign_with(world, world.root.parent / "sheaf.key").settings
    world.take(a=paper(1))
    ingest(world, keep(world.store, item("a.csv", "b.csv")))
    world.ingest([capture(number) for number in range(8)])
    world.publish(**settings)
    world.clock.sleep(60)
    world.take(b=paper(2))
    world.ingest([capture(number, title="b") for number in range(2)])
    world.publish(**settings)
    world.clock.sleep(60)
    world.ingest([capture(9)])
    done = world.verify()
    record(world.store, make_report(done, None, world.clock(), world.clock()))


@pytest.fixture
def world(tmp_path: Path) -> Repec:
    (tmp_path / "full").mkdir()
    world = Repec(tmp_path / "full" / "store")
    begin(world, "everything", lambda _: fill(world))
    return world


def objects(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


def check_all(world: Repec) -> set[tuple[str, str]]:
    """Return codes and objects of all findings, those on the log included."""
    done = [*world.verify().findings, *log_findings(world.store, None)]
    return {(finding.code, finding.object) for finding in done}


EXEMPT = re.compile(
    r"\.lock|dumps/superseded\.json|log/tile/(0|entries)/000\.p/[12]|snapshots/1/settled"
)
"""A lock that each writer makes, a list that delays removals, and tiles that larger ones replace.

Neither is `settled` of older snapshots named: a publish that died writes none.
"""


def test_each_object_that_is_lost_is_named(world: Repec) -> None:
    assert check_all(world) == set()
    kinds = defaultdict(list)
    for key in objects(world.root):
        kinds[re.sub(r"[0-9a-f]{4,}|[0-9]+", "#", key)].append(key)
    rng = random.Random(39)
    keys = sorted(rng.choice(some) for some in kinds.values())
    keys = [key for key in keys if not EXEMPT.fullmatch(key)]
    if not ALL:
        keys = [key for key in keys if not key.startswith(("records/", "tables/"))][:12]
    for key in keys:
        path = world.root / key
        data = path.read_bytes()
        path.unlink()
        places = {place for _, place in check_all(world)}
        # A run or a dataset without its last object is named as a whole.
        folders = [key[: end.end()] for end in re.finditer("/", key)][1:]
        assert places.intersection((key, *folders)), (key, places)
        path.write_bytes(data)


ALTERED = {
    "snapshots/1/settled": "settled-wrong",
    "log/tile/0/000.p/1": "log-altered",
    "log/tile/entries/000.p/1": "log-altered",
    "log/checkpoint": "log-forged",
    "tables/records/metadata/v1.metadata.json": "table-altered",
}
"""The code of each object of which a byte is another, without a key on the command line."""


def test_what_is_altered_and_what_cannot_be_read_is_named_and_the_check_goes_on(
    world: Repec,
) -> None:
    for key in ALTERED:
        path = world.root / key
        data = path.read_bytes()
        place = len(data) - 8  # in a signature, the last characters are of the padding
        other = b"A" if data[place : place + 1] != b"A" else b"B"
        path.write_bytes(data[:place] + other + data[place + 1 :])
    for key in UNREADABLE:
        (world.root / key).unlink()
        (world.root / key).mkdir()
    named = check_all(world)
    for key, code in ALTERED.items():
        assert (code, key) in named
    places = {place for _, place in named}
    for key in UNREADABLE:
        assert key in places, (key, named)


UNREADABLE = ("dumps/index.json", "log/newest.json")
"""Objects that are folders: so is not what can be read, even by root."""


def test_what_a_bucket_does_not_give_is_named_and_the_check_goes_on(
    world: Repec, moto_server: str
) -> None:
    keys = objects(world.root)
    refused = [keys[0]]
    with (
        closing(fresh(moto_server)) as direct,
        proxied(moto_server) as proxy,
    ):
        client = administrator(moto_server)
        for key in keys:
            client.upload_file(str(world.root / key), direct.bucket, f"store/{key}")
        proxy.fault = lambda seen: (
            Answer(403, "AccessDenied")
            if seen.method == "GET" and refused[0] in unquote(seen.path)
            else None
        )
        for pattern in REFUSED:
            refused[0] = next(key for key in keys if re.fullmatch(pattern, key))
            with closing(direct.through(proxy.url)) as bucket:  # which has nothing in memory yet
                places = {finding.object for finding in world.verify(bucket).findings}
            assert refused[0] in places, (refused[0], places)


REFUSED = (
    r"current\.json",
    r"store\.json",
    r"snapshots/1/manifest\.json",
    r"snapshots/newest\.json",
    r"snapshots/leaves/.+",
    r"records/records/.+",
    r"records/captures/.+|tables/captures/.+\.avro",
    r"tables/index\.json",
    r"dumps/index\.json",
    r"obi/;packs/.+",
    r"obi/;runs/.+/commit\.json",
    r"obi/;publishes/.+",
    r"filesets/.+/fileset\.json",
)


LOSSES: dict[str, tuple[str, ...]] = {
    "all that is published": ("current.json", "snapshots", "records", "tables"),
    "the pointer and the snapshots": ("current.json", "snapshots"),
    "the pointer": ("current.json",),
    "the witness": ("snapshots/newest.json",),
    "the identity": ("store.json",),
    "pointer, snapshots and identity": ("current.json", "snapshots", "store.json"),
    "the records": ("records",),
    "the tables": ("tables",),
    "the dumps": ("dumps",),
    "the log": ("log",),
    "the datasets": ("filesets",),
    "the obi store": ("obi",),
    "the reports": ("fixity.jsonl",),
}


@pytest.mark.parametrize("names", LOSSES.values(), ids=LOSSES)
def test_each_part_that_is_lost_is_damage(world: Repec, names: tuple[str, ...]) -> None:
    for name in names:
        path = world.root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    damage = {f.object for f in world.verify().findings if f.kind == DAMAGE}
    for name in names:
        # Of what is below the lost snapshots, nothing else tells.
        told = any(place.startswith(name) for place in damage)
        assert told or ("snapshots" in names and "current.json" in damage), (name, damage)
    before = set(objects(world.root))
    if "current.json" in names:
        for change in (recovery.current, lambda _: world.publish()):
            with pytest.raises(DamagedStore, match=r"current\.json"):
                change(world.store)
        assert not recovery.begin_identity(world.store, lambda: "f" * 32)
        assert set(objects(world.root)) == before


def test_a_store_that_was_lost_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    store = home.folder / "store"
    assert (store / layout.IDENTITY).exists()
    home.publish_pages(home.folder / "one.warc.gz", PAGES)
    assert home("verify", "--record").code == 0
    for name in ("current.json", "snapshots", "records"):
        path = store / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = home("verify")
    assert done.code == 1
    assert "damage: current.json: " in done.out
    assert "(snapshots-lost)" in done.out
    for command in ("status", "publish", "serve", "expire", "query"):
        arguments = ("SELECT 1",) if command == "query" else ()
        done = home(command, *arguments)
        assert done.code == 2, (command, done.out)
        assert one_line(done.err)
    (tmp_path / "other").mkdir()
    assert "nothing is published" in one_line(sheaf("verify", "--store", tmp_path / "other").err)
    (tmp_path / "other" / "x").touch()
    done = sheaf("verify", "--store", tmp_path / "other")
    assert done.code == 2
    assert "is not a store" in one_line(done.err)


def test_archive_files_that_content_needs_are_named(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    archive = home.publish_pages(home.folder / "one.warc.gz", PAGES)
    archive.unlink()
    assert home("verify").code == 0  # nobody asks for it
    text = home.config.read_text()
    home.config.write_text(text.replace("[content]\n", "[content]\nserve = true\n"))
    done = home("verify")
    assert done.code == 1
    assert "damage: one.warc.gz: " in done.out
    assert "(archive-missing)" in done.out
    warc(home.folder / "one.warc.gz", PAGES)
    assert home("verify").code == 0
    archive.unlink()
    assert home("withdraw", "--set", "domain:cz", "--reason", "asked for").code == 0
    assert home("verify").code == 0
