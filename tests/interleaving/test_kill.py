"""A command is killed at each of its changes of a store; run again, it completes what it began.

Changes of one kind that follow each other are tried once or twice, as `kinds` says, and what a
command does as another one does is not tried again. KILL_ALL=1 takes each change, and those of
temporary files as well, which nobody else sees.
"""

import re
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest

from builder.intake import intake
from builder.outputs.log.signer import create_key
from builder.publish.publish import publish
from builder.publish.purge import complete_purges
from builder.publish.reinstate import reinstate
from builder.publish.selection import Selection
from builder.publish.withdraw import withdraw
from builder.runtime import Runtime
from builder.snapshot.expiry import expire, snapshots
from builder.snapshot.transaction import NothingSelectedError
from builder.store.folder import FolderStore
from builder.verify.verify import VerifyRuntime, verify
from functions.config import configuration
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import layout
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import NAMESPACE, Clock, World, capture
from tests.builder.obi.archive import Repec
from tests.builder.row_checks import row_problems
from tests.builder.sources.redif.trees import paper
from tests.extent import ALL, EVERY
from tests.functions.oai.client import content, event, respond
from tests.interleaving.killer import killing
from tests.interleaving.operation import IDENTITY, SETTINGS

HOUR = timedelta(hours=1)
DERIVED = ("publish", "withdraw", "purge", "reinstate")
PAPER = f"oai:{NAMESPACE}:RePEc:aaa:wpaper:1"
WITHDRAWN = f"oai:{NAMESPACE}:{capture(3).identity}"
MADE = ("log/", "tables/", "dumps/superseded.json")
"""Prefixes of objects with signatures, times or places, which differ."""


def _withdraw(store: FolderStore, runtime: Runtime, *, purge: bool) -> object:
    selection = Selection(identifiers=(WITHDRAWN,))
    return withdraw(store, SETTINGS, runtime, selection, "asked for", purge=purge)


def _restore(store: FolderStore, runtime: Runtime) -> object:
    try:
        return reinstate(store, SETTINGS, runtime, Selection(identifiers=(WITHDRAWN,)))
    except NothingSelectedError:
        return None  # it is restored already, which a person is told


def _derive(store: FolderStore, runtime: Runtime, command: str) -> object:
    """Carry out a command with log, tables, dumps and records of templates, as the program does."""
    settings = configuration.parse(
        f'[repository]\nnamespace = "{NAMESPACE}"\n[publish]\ndumps = ["oai_dc"]\n'
        f'[sign]\nkey = "{store.root.parent / "sheaf.key"}"\n',
        {},
    )
    selection = Selection(identifiers=(PAPER, WITHDRAWN))
    if command == "publish":
        publish(store, settings, runtime)
        return complete_purges(store, settings, runtime)
    if command == "reinstate":
        return reinstate(store, settings, runtime, selection)
    return withdraw(store, settings, runtime, selection, "asked for", purge=command == "purge")


COMMANDS: dict[str, Callable[[FolderStore, Runtime], object]] = {
    "publish": lambda store, runtime: publish(store, SETTINGS, runtime),
    "withdraw": partial(_withdraw, purge=False),
    "purge": partial(_withdraw, purge=True),
    "restore": _restore,
    "expire": lambda store, runtime: expire(store, runtime),
    **{f"derived {name}": partial(_derive, command=name) for name in DERIVED},
}


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
        """Carry out a command up to its change `at`; return what it changed if it got through."""
        with killing(self.root, at) as killer:
            self.done(name, step=killer.step)
        return None if killer.dead else killer.changes

    def done(
        self,
        name: str,
        later: timedelta = timedelta(0),
        step: Callable[[str], None] = lambda change: None,
    ) -> None:
        """Carry out the command; `step` is called when it waits."""
        clock = Clock(self.now + later)

        def sleep(seconds: float) -> None:
            step("sleep")
            clock.sleep(seconds)

        runtime = Runtime(clock, sleep, lambda text: None, {}, 1, identity=lambda: IDENTITY)
        COMMANDS[name](self.store, runtime)

    def objects(self) -> dict[str, bytes]:
        return {key: self.store.read(key) for key in self.store.keys("")}

    def answer(self) -> bytes:
        """Return what a server that begins an hour later answers, when all is in effect."""
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
        assert not thorough or row_problems(self.store) == []
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


@pytest.mark.sampled(9)
@pytest.mark.parametrize("case", CASES)
def test_a_process_may_be_killed_at_any_change(tmp_path: Path, case: str) -> None:
    """Readers see the old or the new, and the same command run again gives the very same bytes."""
    name = CASES[case]
    start = prepared(case, tmp_path / "start")
    whole = start.copy(tmp_path / "whole")
    changes = whole.killed(name, at=0)
    assert changes is not None
    assert len(changes) > 3
    old, new = start.answer(), whole.answer()
    assert b"503" not in (new, old) or case == "first"
    expected = whole.objects()
    lasting = whole.swept(thorough=True).objects()

    for at in kinds(changes, case)[:: 1 if ALL else 2]:
        stage = start.copy(tmp_path / str(at))
        assert stage.killed(name, at) is None, at
        assert stage.answer() in (old, new), at
        stage.done(name)
        # What answers as well, for it is all that a reader has.
        assert _differing(stage.objects(), expected) == [], at
        # An expiry that finds something to remove also trims the pointer.
        differing = _differing(stage.swept().objects(), lasting)
        assert [key for key in differing if key != layout.POINTER] == [], at
        shutil.rmtree(stage.folder)


@pytest.mark.thorough
def test_a_publish_that_was_killed_is_completed_an_hour_later(tmp_path: Path) -> None:
    """Its instant has passed by then, so numbers and instants are others; all else is the same."""
    start = prepared("publish", tmp_path / "start")
    whole = start.copy(tmp_path / "whole")
    changes = whole.killed("publish", at=0)
    assert changes is not None
    expected = _state(whole)
    whole.swept(thorough=True)

    for at in kinds(changes, "later"):
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


def _differing(some: dict[str, bytes], others: dict[str, bytes]) -> list[str]:
    return sorted(key for key in {*some, *others} if some.get(key) != others.get(key))


def derived(name: str, folder: Path) -> Stage:
    """Return a store with templates, captures, a log, tables and dumps for a command."""
    folder.mkdir()
    create_key(folder / "sheaf.key", f"{NAMESPACE}/log")
    world = Repec(folder / "store")
    world.ingest([capture(number) for number in range(6)])
    world.take(a=paper(1), b=paper(2))
    Stage(folder, world.clock.now).done("derived publish")
    world.clock.sleep(100)
    if name == "reinstate":
        Stage(folder, world.clock.now).done("derived withdraw")
        world.clock.sleep(100)
    if name == "publish":
        world.ingest([capture(7)])
        world.take(b=paper(2, "Other Rugs"), c=paper(3))
    now = world.clock.now + timedelta(seconds=10)
    world.close()
    return Stage(folder, now)


def codes(stage: Stage) -> list[str]:
    """Return the codes of what verify finds in a store an hour later."""
    runtime = VerifyRuntime(
        lambda: stage.now + HOUR, lambda total: nullcontext(lambda count: None), 512, 1
    )
    findings = verify(stage.store, runtime).findings
    return [finding.code for finding in findings if finding.code != "temporary"]


def lasting(stage: Stage) -> dict[str, bytes]:
    return {key: data for key, data in stage.objects().items() if not key.startswith(MADE)}


@pytest.mark.thorough
@pytest.mark.parametrize("name", DERIVED)
def test_what_follows_a_snapshot_is_named_and_completed(tmp_path: Path, name: str) -> None:
    """That is what settles the pointer, the record in `obi/`, log, tables, dumps and a purge.

    `verify` names what lacks before, and the next publish completes it.
    """
    start = derived(name, tmp_path / "start")
    whole = start.copy(tmp_path / "whole")
    changes = whole.killed(f"derived {name}", at=0)
    assert changes is not None
    first = next(n for n, change in enumerate(changes, 1) if change.endswith(layout.POINTER))
    whole.done("derived publish")
    assert codes(whole) == []
    expected = lasting(whole)
    unnamed = []
    for at in kinds(changes, name):
        if at <= first:
            continue
        stage = start.copy(tmp_path / str(at))
        assert stage.killed(f"derived {name}", at) is None, at
        if not codes(stage):
            unnamed.append(changes[at - 1])
        stage.done("derived publish")
        assert codes(stage) == [], (at, changes[at - 1])
        assert _differing(lasting(stage), expected) == [], (at, changes[at - 1])
        shutil.rmtree(stage.folder)
    assert unnamed == []
