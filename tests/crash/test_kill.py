"""A process is killed at each of its changes of a store; run again, it completes what it began.

Changes of one kind that follow each other are tried once or twice, as `kinds` says, and what a
command does as another one does is not tried again. KILL_ALL=1 takes each change, and those of
temporary files as well, which nobody else sees.
"""

import multiprocessing
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from builder.intake import intake
from builder.runtime import Runtime
from builder.snapshot.expiry import expire, snapshots
from builder.store.folder import FolderStore
from builder.verify.verify import VerifyRuntime, verify
from functions.config import configuration
from functions.oai.application import Application
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.snapshot import layout
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import NAMESPACE, Clock, World, capture
from tests.crash.work import COMMANDS, IDENTITY, work
from tests.e2e.conftest import warc
from tests.extent import EVERY
from tests.functions.oai.client import content, event, respond

HOUR = timedelta(hours=1)

_ALONE = threading.Lock()
"""To be held where a thread looks whether processes have ended: each can be told so once only."""
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.crash.work", "duckdb", "pyarrow.parquet"])


@dataclass(frozen=True)
class Stage:
    """A store in a folder of its own, and the time in it."""

    folder: Path
    now: datetime

    @property
    def root(self) -> Path:
        return self.folder / "store"

    @property
    def store(self) -> FolderStore:
        return FolderStore(self.root)

    def copy(self, folder: Path) -> "Stage":
        shutil.copytree(self.folder, folder)
        return Stage(folder, self.now)

    def killed(self, name: str, at: int) -> list[str] | None:
        """Carry out a command up to its change `at`; return what it changed if it got through.

        A real process is killed by a real SIGKILL.
        """
        counted = self.folder / "counted"
        process = _PROCESSES.Process(
            target=work, args=(name, self.root, Clock(self.now), at, counted, EVERY)
        )
        with _ALONE:
            process.start()
        wait([process.sentinel])
        with _ALONE:
            process.join()
        if process.exitcode == -signal.SIGKILL:
            return None
        assert process.exitcode == 0, process.exitcode
        return counted.read_text().splitlines()

    def done(self, name: str, later: timedelta = timedelta(0)) -> None:
        """Carry out the command in this process."""
        clock = Clock(self.now + later)
        runtime = Runtime(clock, clock.sleep, lambda text: None, {}, 1, identity=lambda: IDENTITY)
        COMMANDS[name](self.store, runtime)

    def objects(self) -> dict[str, bytes]:
        return {key: self.store.read(key) for key in self.store.keys("")}

    def answer(self) -> bytes:
        """Return what a harvester is answered an hour later, when all is in effect."""
        settings = configuration.parse(f'[repository]\nnamespace = "{NAMESPACE}"\n', {})
        repository = DuckRepository(self.store)
        application = Application(repository, settings, lambda: self.now + HOUR)
        reply = respond(application, event("verb=ListRecords&metadataPrefix=oai_dc"))
        repository.close()
        return content(reply) if reply["statusCode"] == 200 else b"503"

    def swept(self, *, thorough: bool = False) -> "Stage":
        """Let whatever a day makes an orphan expire, and somebody write something."""
        now = datetime.now(UTC) + timedelta(days=2)
        runtime = Runtime(
            lambda: now, lambda s: None, lambda text: None, {}, 1, identity=lambda: IDENTITY
        )
        self.store.create("probe", b"")
        self.store.remove("probe")
        expire(self.store, runtime, keep=100)
        assert list((self.root / ".tmp").iterdir()) == []
        means = VerifyRuntime(lambda: now, lambda total: nullcontext(lambda count: None), 512, 1)
        assert not thorough or verify(self.store, means).findings == ()
        return self


def _grown(world: World) -> None:
    """Publish three times."""
    world.ingest([capture(n) for n in range(12)], ("collection:x",))
    world.publish()
    for number in (20, 21):
        world.ingest([capture(number), capture(5, title=f"{number}")])
        world.publish()


def prepared(name: str, folder: Path) -> Stage:
    """Return a store in which the command has much to do."""
    world = World(folder / "store")
    folder.mkdir()
    warc(folder / "archive.warc.gz", {"http://a.cz/": b"<title>A</title>", "http://b.cz/": b"x"})
    if name != "first":
        begin(world, "to be killed", _grown)
    if name == "restore":
        Stage(folder, world.clock.now).done("withdraw")
        world.clock.sleep(100)
    if name == "expire":
        world.clock.sleep(100)
    world.ingest([capture(30), capture(31), capture(4, title="changed")])
    if name in ("first", "publish"):
        world.ingest([capture(32)], ("collection:y",))
    now = world.clock.now + timedelta(seconds=10)
    world.close()
    return Stage(folder, now)


CASES = {"first": "publish", **{n: n for n in COMMANDS if not n.startswith("derived ")}}
_KINDS = {
    r"os.rename (records|snapshots/leaves)/": "write data",
    r"os.remove records/": "remove data",
    r"os.remove snapshots/leaves/": "remove leaves",
    r"os.remove snapshots/\d+/": "remove manifests",
    r"os.remove intake/": "remove intake",
    r"os.rename intake/": "write intake",
    r"os.\w+ log/(entries|tiles?|nodes|snapshots|runs)/": "write log",
    r"os.\w+ tables/": "write tables",
    r"os.(rename|link) dumps/": "write dumps",
    r"os.remove dumps/": "remove dumps",
}
_STAMPING = {f"os.link snapshots/N/{name}" for name in ("views.sql", "manifest.json", "settled")}
KNOWN: dict[str, set[str]] = {
    "first": {"write data", *_STAMPING},
    "withdraw": _STAMPING,
    "purge": {"write data", *_STAMPING},
    "restore": _STAMPING,
    "later": _STAMPING - {"os.link snapshots/N/manifest.json"},
}
"""What each case does as another one does, where that is tried."""


def kinds(changes: list[str], case: str) -> list[int]:
    """Return where to kill: before each change that is alone of its kind, and in the midst of
    those that follow each other; where none of it is known from another case, before the first
    of those as well.
    """
    if EVERY:
        return list(range(1, len(changes) + 1))
    found: list[int] = []
    known, at = KNOWN.get(case, set()), 1
    for kind, some in groupby(map(_kind, changes)):
        count = len(list(some))
        if kind not in known:
            found += {at + count // 2} if known else {at, at + count // 2}
        at += count
    return sorted(found)


def _kind(change: str) -> str:
    for pattern, kind in _KINDS.items():
        if re.match(pattern, change):
            return kind
    return re.sub(r"\d+", "N", change)


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.mark.sampled(10)
@pytest.mark.parametrize("case", CASES)
def test_a_process_may_be_killed_at_any_change(
    tmp_path: Path, case: str, pool: ThreadPoolExecutor
) -> None:
    """Readers see the old or the new, and the same command run again gives the very same bytes."""
    name = CASES[case]
    start = prepared(case, tmp_path / "start")
    whole = start.copy(tmp_path / "whole")
    changes = whole.killed(name, at=0)
    assert changes is not None
    assert len(changes) > 3
    old, new = start.answer(), whole.answer()
    assert b"503" not in (new, old) or case == "first"
    expected = _comparable(whole.objects())
    lasting = _comparable(whole.swept(thorough=True).objects())

    def attempt(at: int) -> None:
        stage = start.copy(tmp_path / str(at))
        assert stage.killed(name, at) is None, at
        assert stage.answer() in (old, new), at
        stage.done(name)
        # What answers as well, for it is all that a reader has.
        assert _differing(_comparable(stage.objects()), expected) == [], at
        # An expiry that finds something to remove also trims the pointer.
        differing = _differing(_comparable(stage.swept().objects()), lasting)
        assert [key for key in differing if key != layout.POINTER] == [], at
        shutil.rmtree(stage.folder)

    for _ in pool.map(attempt, kinds(changes, case)):
        pass


@pytest.mark.thorough
def test_a_publish_that_was_killed_is_completed_an_hour_later(
    tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    """Its instant has passed by then, so numbers and instants are others; all else is the same."""
    start = prepared("publish", tmp_path / "start")
    whole = start.copy(tmp_path / "whole")
    changes = whole.killed("publish", at=0)
    assert changes is not None
    expected = _state(whole)
    whole.swept(thorough=True)

    def attempt(at: int) -> None:
        stage = start.copy(tmp_path / str(at))
        assert stage.killed("publish", at) is None, at
        stage.done("publish", later=HOUR)
        assert _state(stage) == expected, at
        assert list(intake.runs(stage.store)) == []
        pointer = Catalogue(stage.store).pointer()
        assert pointer.settled
        newest = pointer.newest()
        assert newest is not None
        assert [n for n in snapshots(stage.store) if n > newest.snapshot] == []
        assert _state(stage.swept()) == expected, at
        shutil.rmtree(stage.folder)

    for _ in pool.map(attempt, kinds(changes, "later")):
        pass


def _state(stage: Stage) -> object:
    """Return what the newest snapshot holds: all but its number and its newest instants."""
    catalogue = Catalogue(stage.store)
    newest = catalogue.pointer().newest()
    assert newest is not None
    manifest = catalogue.manifest(newest.snapshot)
    objects = {k: v for k, v in stage.objects().items() if k.startswith(layout.RECORDS)}
    leaves = {k: v for k, v in stage.objects().items() if k.startswith("snapshots/leaves/")}
    sequences = [(s.number, s.first, s.last, dict(s.records)) for s in manifest.sequences]
    stamps = [s.effective for s in manifest.sequences[:-1]]
    return objects, leaves, manifest.tables, manifest.sets, sequences, stamps


def _comparable(objects: dict[str, bytes]) -> dict[str, bytes]:
    """Return the objects with those of the intake by their names alone.

    Names of runs differ by design, and a run's summary names this test's folder.
    """
    found = {k: v for k, v in objects.items() if not k.startswith(layout.INTAKE)}
    parts = sorted(k.rpartition("/")[2] for k in objects if k.startswith(layout.INTAKE))
    return {**found, **{f"intake {n} {part}": b"" for n, part in enumerate(parts)}}


def _differing(some: dict[str, bytes], others: dict[str, bytes]) -> list[str]:
    return sorted(key for key in {*some, *others} if some.get(key) != others.get(key))
