"""`sheaf export jsonl` and `oai`: complete dumps, and differences that lead to the next one."""

import gzip
import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard
from lxml import etree

from builder.snapshot.transaction import NothingSelectedError
from builder.withdraw.reinstate import reinstate
from builder.withdraw.selection import Selection
from builder.withdraw.withdraw import withdraw
from functions.snapshot import oai_name
from tests.builder.conftest import NAMESPACE, World, capture
from tests.e2e.conftest import Result, sheaf
from tests.functions.oai.validity import valid


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    yield world
    world.close()


class Dumps:
    """Exports a store's snapshots, each into a folder of its own."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.folder = folder
        self.count = 0

    def run(self, form: str, *more: object) -> tuple[Result, Path]:
        self.count += 1
        target = self.folder / f"dump-{self.count}"
        config = self.folder / "sheaf.toml"
        config.write_text(f'[repository]\nnamespace = "{NAMESPACE}"\n')
        self.world.clock.sleep(10)
        line = ("export", form, target, "--store", self.world.root, "--config", config, *more)
        return sheaf(*line, surround=later(self.world)), target

    def __call__(self, form: str, *more: object) -> Path:
        done, target = self.run(form, *more)
        assert done.code == 0, done.err
        return target


def later(world: World) -> Any:
    """Return what gives a command the clock of a test."""
    from builder.context import Context, from_environment

    def surround(given: Any) -> Context:
        environment = from_environment(given).environment
        return Context(given, environment, world.clock, world.clock.sleep)

    return surround


def contents(folder: Path) -> list[bytes]:
    """Return the parts of a dump, held against its manifest."""
    told = json.loads((folder / "manifest.json").read_text("utf-8"))
    found = []
    for part in told["parts"]:
        data = (folder / part["name"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (part["bytes"], part["sha256"])
        if part["name"].endswith(".gz"):
            found.append(gzip.decompress(data))
        else:
            found.append(zstandard.ZstdDecompressor().stream_reader(data).read())
    assert {p.name for p in folder.iterdir()} == {p["name"] for p in told["parts"]} | {
        "manifest.json"
    }
    return found


def lines(folder: Path) -> dict[str, Any]:
    """Return the records of JSON lines by identifier, each of which comes once."""
    found: dict[str, Any] = {}
    for part in contents(folder):
        for line in part.splitlines():
            record = json.loads(line)
            assert record["identifier"] not in found
            found[record["identifier"]] = record
    return found


def documents(folder: Path) -> dict[str, tuple[str, bool]]:
    """Return datestamps and deletions by identifier, out of valid answers of OAI-PMH."""
    found: dict[str, tuple[str, bool]] = {}
    for part in contents(folder):
        page: etree._Element = valid(part)
        for header in page.iter("{*}header"):
            name = header.findtext("{*}identifier", "")
            assert name not in found
            stamp = header.findtext("{*}datestamp", "")
            found[name] = (stamp, header.get("status") == "deleted")
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_complete_dump_and_all_differences_are_the_next_complete_dump(
    world: World, tmp_path: Path, seed: int
) -> None:
    draw, dumps = random.Random(seed), Dumps(world, tmp_path)
    of_set = draw.choice((None, "mime:text", "domain:cz:example:h3"))
    chosen = ("--set", of_set) if of_set else ()
    world.ingest([capture(n) for n in range(60)])
    world.publish()
    held = lines(dumps("jsonl", *chosen))
    pages = documents(dumps("oai", *chosen))
    first, snapshot = dict(held), 1
    for step in range(6):
        what = draw.choice(("publish", "publish", "sets", "withdraw", "reinstate", "expire"))
        selection = Selection(set=f"domain:cz:example:h{draw.choice((3, 5))}")
        settings, runtime = world.configuration(), world.runtime()
        if what in ("publish", "sets"):
            more = {"sets": ("mime:a:b",)} if what == "sets" else {"title": str(step)}
            some = {draw.randrange(90): None for _ in range(7)}
            world.ingest([capture(n, **more) for n in some])
            world.publish()
        elif what in ("withdraw", "reinstate"):
            with suppress(NothingSelectedError):  # it was done before, or not yet
                if what == "withdraw":
                    withdraw(world.store, settings, runtime, selection, "asked")
                else:
                    reinstate(world.store, settings, runtime, selection)
        else:
            world.clock.sleep(100)
            world.expire(keep=1, older=timedelta(0))
        world.clock.sleep(10)
        changed = dumps("jsonl", "--since", snapshot, "--part", draw.randint(1, 30), *chosen)
        held |= lines(changed)
        pages |= documents(dumps("oai", "--since", snapshot, "--part", 7, *chosen))
        complete = dumps("jsonl", *chosen)
        assert held == lines(complete), (seed, step, what)
        assert pages == documents(dumps("oai", *chosen))
        snapshot = json.loads((complete / "manifest.json").read_text())["snapshot"]
        first |= lines(dumps("jsonl", "--since", 1, *chosen))  # it may be retired by now
        assert first == held


def test_the_same_snapshot_gives_the_same_bytes_in_bounded_parts(
    world: World, tmp_path: Path
) -> None:
    dumps = Dumps(world, tmp_path)
    world.ingest([capture(n) for n in range(50)])
    world.publish()
    for form in ("jsonl", "oai"):
        for coding in ("zstd", "gzip"):
            options = ("--part", 20, "--compression", coding)
            one, two = dumps(form, *options), dumps(form, *options)
            told = json.loads((one / "manifest.json").read_text("utf-8"))
            assert [part["records"] for part in told["parts"]] == [20, 20, 10]
            for path in one.iterdir():
                assert path.read_bytes() == (two / path.name).read_bytes()


def test_a_record_has_the_fields_of_its_kind(world: World, tmp_path: Path) -> None:
    dumps = Dumps(world, tmp_path)
    world.ingest([capture(1, title="Žluť", url_bytes=b"\xff")], ("collection:c",))
    world.publish()
    found = lines(dumps("jsonl"))
    (one,) = [record for record in found.values() if record["kind"] == "capture"]
    assert one["title"] == "Žluť"
    assert (one["fetch_time"], one["url_bytes"]) == ("2007-11-05T00:00:00Z", "/w==")
    assert "refers_to" not in one
    assert one["identifier"] == oai_name.to_oai(NAMESPACE, one["identifier"].split(":")[2])
    (other,) = [record for record in found.values() if record["kind"] == "collection"]
    assert other["set_spec"] == "collection:c"


def test_since_a_date_has_what_was_published_from_then_on(world: World, tmp_path: Path) -> None:
    dumps = Dumps(world, tmp_path)
    stamps = []
    for number in range(3):
        world.ingest([capture(number)])
        built = world.publish()
        assert built.manifest is not None
        stamps.append(built.manifest.effective.strftime("%Y-%m-%dT%H:%M:%SZ"))
        world.clock.sleep(100)
    assert len(lines(dumps("jsonl", "--since", stamps[1]))) == 2
    assert len(lines(dumps("jsonl", "--since", stamps[0][:10]))) == 3
    assert lines(dumps("jsonl", "--since", 3)) == documents(dumps("oai", "--since", 3)) == {}


@pytest.mark.parametrize(
    ("form", "options", "told"),
    [
        ("jsonl", ("--since", "9"), "there was no such snapshot; the newest is 1"),
        ("jsonl", ("--since", "0"), "there was no such snapshot"),
        ("jsonl", ("--since", "May"), "expected a snapshot's number, or a date"),
        ("jsonl", ("--set", "none"), "there is no set none"),
        ("jsonl", ("--part", "0"), "expected a number from 1"),
        ("oai", ("--format", "none"), "there is no metadata format none; there are oai_dc"),
    ],
)
def test_faults_of_the_user_are_one_line(
    world: World, tmp_path: Path, form: str, options: tuple[str, ...], told: str
) -> None:
    world.ingest([capture(1)])
    world.publish()
    done, target = Dumps(world, tmp_path).run(form, *options)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert told in done.err
    assert not target.exists()
