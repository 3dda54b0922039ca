"""Processes over one store that are killed, and whose clocks are wrong; what is promised holds.

Two writers, an expiry, two harvesters and a server with two workers work side by side. Requests to
S3 fail in between. RACE_SECONDS=180 lets them work for three minutes, and takes SeaweedFS as well;
SOAK_SEED repeats what the actors of a run choose; SOAK_ENDPOINT takes a server of S3 that is there,
by the keys of tests/bucket.py.
"""

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from functions.snapshot import oai_name
from tests import proxy
from tests.bucket import free_ports, fresh, run_moto, run_weed
from tests.e2e.conftest import warc
from tests.e2e.harvester import harvest
from tests.e2e.test_workers import children
from tests.extent import SECONDS

LONG = pytest.mark.skipif("RACE_SECONDS" not in os.environ, reason="RACE_SECONDS is not given")
OWN = pytest.mark.skipif("SOAK_ENDPOINT" not in os.environ, reason="SOAK_ENDPOINT is not given")
NAMESPACE = "soak.example"
DATE = "2007-11-05T12:00:00Z"
SKEW = 1.0
"""Seconds by which a clock may be wrong. Any two then differ by less than half of
`serve.clock_allowance`, which is the bound that docs/operations/operate.md states."""
TRIES = 40
PATIENCE = 900.0
"""Seconds after which a command counts as one that stands still."""
POINTER_SECONDS = 3.0
"""Seconds after which a server has seen the pointer anew: serve.pointer_seconds and one more."""
DONE_BEFORE = ("no item matches", "none of these items is")
"""What a repeated command says if it took effect before it was killed."""
CONFIGURATION = f"""
[repository]
name = "Soak"
namespace = "{NAMESPACE}"
admin_emails = ["soak@example.org"]
[pages]
records = 7
[serve]
retry_seconds = 1
workers = 2
"""


@dataclass
class Site:
    """One store under test, and what the actors share: what they did, and whether they stop."""

    address: str
    environment: Mapping[str, str]
    folder: Path
    seed: int
    stop: threading.Event = field(default_factory=threading.Event)
    counts: Counter[str] = field(default_factory=Counter)
    usual: dict[str, float] = field(default_factory=dict)
    """Seconds that each command took last."""


class Actor:
    """Runs commands as processes with a clock, a cache and a folder of its own."""

    def __init__(self, site: Site, name: str) -> None:
        self.site, self.name = site, name
        self.pick = Random(f"{site.seed}-{name}")
        self.folder = site.folder / name
        (self.folder / "tmp").mkdir(parents=True)
        (self.folder / "sheaf.toml").write_text(CONFIGURATION)
        self.clock = self.folder / "clock"
        self.set_clock(0)

    def set_clock(self, skew: float) -> None:
        draft = self.clock.with_suffix(".draft")
        draft.write_text(str(skew))
        draft.rename(self.clock)

    def start(self, command: str, *arguments: object) -> "subprocess.Popen[str]":
        line = [sys.executable, "-m", "tests.e2e.skewed", self.clock, command]
        line += ["--config", self.folder / "sheaf.toml", "--store", self.site.address]
        own = {"TMPDIR": str(self.folder / "tmp"), "XDG_CACHE_HOME": str(self.folder)}
        return subprocess.Popen(
            [*map(str, line), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "SOAK_REMEMBERED": "6", **self.site.environment, **own},
        )

    def run(self, command: str, *arguments: object, kill: float = 0) -> tuple[int, str, str]:
        """Run a command; `kill` is when it is killed, as a part of the time that it takes."""
        began = time.monotonic()
        process = self.start(command, *arguments)
        try:
            seconds = kill * self.site.usual.get(command, 4.0) or PATIENCE
            out, error = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, error = process.communicate()
            assert kill, f"{command} {arguments} did not end"
            self.site.counts["kill"] += 1
        assert "Traceback" not in error, (command, arguments, error)
        assert process.returncode in (0, 1, 2, -9), (command, arguments, error)
        if process.returncode == 0:
            self.site.usual[command] = time.monotonic() - began
        return process.returncode, out, error

    def finish(self, command: str, *arguments: object) -> str:
        """Run a command until it succeeds; the first attempt may be killed."""
        if not self.site.stop.is_set():
            self.set_clock(self.pick.uniform(-SKEW, SKEW))
        kill = self.pick.uniform(0.05, 1) if self.pick.random() < 0.3 else 0
        for _ in range(TRIES):
            code, out, error = self.run(command, *arguments, kill=kill)
            if code == 0 or any(text in error for text in DONE_BEFORE):
                self.site.counts[command] += 1
                return out
            kill = 0
            time.sleep(code != -9)
        raise AssertionError(f"{command} {arguments} never succeeded: {error}")


@dataclass(frozen=True)
class Item:
    """What harvesters must see of an item."""

    title: str
    collections: frozenset[str] = frozenset()
    deleted: bool = False


class Writer(Actor):
    """Ingests, publishes, withdraws and reinstates captures of its own."""

    def __init__(self, site: Site, name: str) -> None:
        super().__init__(site, name)
        self.expected: dict[str, Item] = {}
        """Items as the commands that succeeded made them, once all is published."""
        self.archives: list[tuple[Path, list[str]]] = []
        self.is_pending = False

    def begin(self) -> None:
        """Do each once, for short tests."""
        for step in (self.add, self.publish, self.withdraw, self.reinstate):
            step()

    def round(self) -> None:
        self.pick.choice((self.add, self.collect, self.withdraw, self.reinstate))()
        if self.is_pending and self.pick.random() < 0.6:
            self.publish()

    def publish(self) -> None:
        self.finish("publish")
        self.is_pending = False

    def ingest(self, path: Path, *arguments: str) -> None:
        self.finish("ingest", *arguments, path, "--jobs", "1")
        self.is_pending = True

    def add(self) -> None:
        """Ingest a web archive, whose pages are items that no other has."""
        host = f"http://{self.name}.example.cz/{len(self.archives)}"
        titles = {f"{host}/{page}": f"Page {page}" for page in range(self.pick.randint(1, 5))}
        pages = {url: f"<title>{title}</title>".encode() for url, title in titles.items()}
        path = warc(self.folder / f"{len(self.archives)}.warc.gz", pages, DATE)
        names = []
        for url, body in pages.items():
            digest = base64.b32encode(hashlib.sha1(body).digest()).decode()
            name = oai_name.capture_identity(url.encode(), DATE, 200, digest)
            names.append(f"oai:{NAMESPACE}:{name}")
            self.expected[names[-1]] = Item(titles[url])
        self.archives.append((path, names))
        self.ingest(path)

    def collect(self) -> None:
        """Ingest an archive again as part of a collection, which changes its items."""
        path, names = self.pick.choice(self.archives)
        if not any(self.expected[name].deleted for name in names):
            spec = f"shelf{self.pick.randint(0, 9)}"
            for name in names:
                item = self.expected[name]
                self.expected[name] = replace(item, collections=item.collections | {spec})
            self.ingest(path, "--again", "--collection", spec)

    def withdraw(self) -> None:
        self.change("withdraw", "--reason", "asked for", deleted=True)

    def reinstate(self) -> None:
        """Bring an item back; of what no kept snapshot has, the archive is ingested again."""
        if name := self.change("reinstate", deleted=False):
            (path,) = (path for path, names in self.archives if name in names)
            self.ingest(path, "--again")

    def change(self, command: str, *arguments: str, deleted: bool) -> str:
        """Withdraw or reinstate one of the items for which this can be done; return its name."""
        names = [name for name, item in self.expected.items() if item.deleted != deleted]
        if not names:
            return ""
        if self.is_pending:
            self.publish()
        name = self.pick.choice(names)
        self.finish(command, "--identifier", name, *arguments)
        self.expected[name] = replace(self.expected[name], deleted=deleted)
        return name


class Expirer(Actor):
    """Retires snapshots as eagerly as it can, and verifies the store in between."""

    def round(self) -> None:
        self.finish("expire", "--keep", self.pick.randint(1, 3), "--older-than", "0s")
        if self.pick.random() < 0.2:
            code, out, _ = self.run("verify", "--newest")
            assert code != 1, f"verify found damage: {out}"
        self.site.stop.wait(self.pick.uniform(1, 10))


class Harvester(Actor):
    """Harvests what is new, and sometimes everything, into a folder."""

    def __init__(self, site: Site, name: str, url: str, *arguments: str) -> None:
        super().__init__(site, name)
        self.command = ("harvest", url, self.folder / "copy", "--format", "jsonl", *arguments)

    def round(self) -> None:
        full = ["--full"] if self.pick.random() < 0.1 else []
        self.finish(*self.command, "--every", "0", *full)
        self.site.stop.wait(self.pick.uniform(0, 3))

    def copies(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return what is held by prefix and identifier; nothing may be stored twice unchanged."""
        copies: dict[str, dict[str, dict[str, Any]]] = {}
        for path in sorted((self.folder / "copy").glob("*/harvest.json")):
            state = json.loads(path.read_text("utf-8"))
            copy = copies.setdefault(state["prefix"], {})
            for part in state["parts"]:
                for line in (path.parent / part["name"]).read_text("utf-8").splitlines():
                    row = json.loads(line)
                    shown = {k: row.get(k) for k in ("datestamp", "deleted", "sets", "record")}
                    title = " ".join(row.get("dc_title") or ())
                    record = {**shown, "title": title}
                    assert copy.get(row["identifier"]) != record, f"{self.name}: twice {row}"
                    copy[row["identifier"]] = record
        return copies


class Server(Actor):
    """Runs `sheaf serve`. It is killed, or a worker is, and its clock changes."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "server")
        self.port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}/oai"
        self.process: subprocess.Popen[str] | None = None

    def round(self) -> None:
        if self.process is None:
            self.begin()
        if self.site.stop.wait(self.pick.uniform(4, 20)):
            return
        assert self.process is not None
        assert self.process.poll() is None, "serve ended by itself"
        happens = self.pick.choice(["clock", "worker", "server"])
        if happens == "clock":
            self.set_clock(self.pick.uniform(-SKEW, SKEW))
        elif happens == "worker":
            with suppress(ProcessLookupError):  # it is being replaced
                os.kill(self.pick.choice(children(self.process.pid)), signal.SIGKILL)
        else:
            self.process.kill()
            self.process.wait()
            self.process = None

    def begin(self) -> None:
        """Start it until it answers; where the store fails it ends again."""
        for _ in range(TRIES):
            process = self.start("serve", "--port", self.port, "--access-log", os.devnull)
            threading.Thread(target=self.drain, args=(process,), daemon=True).start()
            assert process.stdout is not None
            if any("Ctrl-C ends it" in line for line in iter(process.stdout.readline, "")):
                self.process = process
                return
            process.wait()
            time.sleep(1)
        raise AssertionError("serve never answered")

    def drain(self, process: "subprocess.Popen[str]") -> None:
        assert process.stderr is not None
        with (self.folder / "errors").open("a") as out:
            out.writelines(process.stderr)


class FaultyRequests:
    """Chooses the fault of each request to S3, some in a row; `ended` lets all later ones pass."""

    KINDS: Sequence[Callable[[Random], proxy.Fault]] = (
        lambda pick: proxy.Answer(503, "SlowDown", "Please reduce your request rate."),
        lambda pick: proxy.Answer(500, "InternalError", "We had an error."),
        lambda pick: proxy.Lost(),
        lambda pick: proxy.Truncated(),
        lambda pick: proxy.Slow(pick.uniform(0.2, 2.0)),
        lambda pick: proxy.Trickle(pick.uniform(0.2, 2.0)),
    )

    def __init__(self, seed: int) -> None:
        self.pick, self.lock, self.ended = Random(f"{seed}-s3"), threading.Lock(), False
        self.kind, self.left = self.KINDS[0], 0

    def __call__(self, seen: proxy.Seen) -> proxy.Fault | None:
        with self.lock:
            if not self.left and self.pick.random() < 0.015:
                self.kind, self.left = self.pick.choice(self.KINDS), self.pick.randint(1, 4)
            if self.ended or not self.left:
                return None
            self.left -= 1
            return self.kind(self.pick)


@contextmanager
def opened(name: str, folder: Path, faults: FaultyRequests) -> Iterator[tuple[str, dict[str, str]]]:
    """Give the address of an empty store, and the environment that reaches it."""
    if name == "folder":
        yield str(folder / "store"), {}
        return
    with ExitStack() as stack:
        if name == "own":
            endpoint = os.environ["SOAK_ENDPOINT"]
        else:
            endpoint = stack.enter_context(run_moto() if name == "moto" else run_weed(folder))
        front = stack.enter_context(proxy.proxied(endpoint))
        front.fault = faults
        bucket = stack.enter_context(closing(fresh(endpoint)))
        yield bucket.uri, {**bucket.environment, "SHEAF_STORE_ENDPOINT": front.url}


def repeated(actor: Actor, first: Callable[[], None] | None = None) -> None:
    """Let an actor do one round after another until the site stops."""
    if first is not None:
        first()
    while not actor.site.stop.is_set():
        actor.round()  # type: ignore[attr-defined]


def soak(site: Site, faults: FaultyRequests) -> None:
    """Let the actors work side by side, and then hold that all promises were kept."""
    server = Server(site)
    writers = [Writer(site, f"writer{number}") for number in range(2)]
    every = ("--prefix", "oai_dc", "--prefix", "capture", "--prefix", "mods")
    harvesters = [
        Harvester(site, "harvester0", server.url, "--prefix", "oai_dc", "--overlap", "0"),
        Harvester(site, "harvester1", server.url, *every),
    ]
    writers[0].begin()  # before that there is nothing to serve
    try:
        server.begin()
        with ThreadPoolExecutor(8) as pool:
            actors = [server, Expirer(site, "expirer"), *harvesters]
            futures: list[Future[None]] = [pool.submit(repeated, actor) for actor in actors]
            futures.append(pool.submit(repeated, writers[0]))
            futures.append(pool.submit(repeated, writers[1], writers[1].begin))
            wait(futures, SECONDS, FIRST_EXCEPTION)
            site.stop.set()
        for future in futures:
            future.result()
        faults.ended = True
        check(site, server, writers, [*harvesters, Harvester(site, "anew", server.url, *every)])
    finally:
        site.stop.set()
        if server.process is not None:
            server.process.terminate()
            server.process.wait(60)
    assert "Traceback" not in (server.folder / "errors").read_text()


def check(
    site: Site, server: Server, writers: Sequence[Writer], harvesters: Sequence[Harvester]
) -> None:
    """Publish what is left, harvest for the last time in peace, and compare everything."""
    end = Actor(site, "end")
    end.finish("publish")  # often a writer has published all, and its snapshot is not in effect yet
    effective = json.loads(end.finish("status", "--json"))["snapshot"]["effective"]
    left = datetime.fromisoformat(effective) - datetime.now(UTC)
    time.sleep(max(0.0, left.total_seconds()) + POINTER_SECONDS)
    if server.process is None:
        server.begin()
    for actor in (server, *harvesters):
        actor.set_clock(0)
    for harvester in harvesters:
        harvester.finish(*harvester.command, "--every", "0")
    *others, fresh = (harvester.copies() for harvester in harvesters)
    for copies in others:
        assert copies == {prefix: fresh[prefix] for prefix in copies}
    expected = {name: item for writer in writers for name, item in writer.expected.items()}
    shelves = {oai_name.collection_identifier(NAMESPACE, f"collection:shelf{n}") for n in range(10)}
    records = fresh["oai_dc"].items()
    assert {name: shown(record) for name, record in records if name not in shelves} == {
        name: replace(item, title="" if item.deleted else item.title)
        for name, item in expected.items()
    }
    for prefix, copy in fresh.items():  # no identifier comes twice within a list
        assert harvest(server.url, prefix).identifiers == copy.keys()
    code, out, _ = writers[0].run("verify")
    assert code == 0, out


def shown(record: Mapping[str, Any]) -> Item:
    """Return a record of Dublin Core as its writer knows it."""
    specs = [spec.partition(":") for spec in record["sets"] or ()]
    collections = frozenset(name for root, _, name in specs if root == "collection")
    return Item("" if record["deleted"] else record["title"], collections, record["deleted"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    ["folder", "moto", pytest.param("seaweedfs", marks=LONG), pytest.param("own", marks=OWN)],
)
def test_a_short_soak_breaks_no_promise(tmp_path: Path, name: str) -> None:
    seed = int(os.environ.get("SOAK_SEED", "25"))
    faults = FaultyRequests(seed)
    with opened(name, tmp_path, faults) as (address, environment):
        site = Site(address, environment, tmp_path, seed)
        soak(site, faults)
    print(site.counts)
    assert site.counts["publish"] > 1
    assert site.counts["reinstate"]
    assert site.counts["harvest"] > 2
    assert site.counts["kill"]
