"""Stores of generated captures, published with a clock of the test's own."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builder.intake import intake
from builder.intake.captures import Capture, Fault
from builder.intake.rows import IntakeWriter
from builder.publish.publish import publish
from builder.publish.reinstate import reinstate
from builder.publish.selection import Selection
from builder.publish.withdraw import Withdrawn, withdraw
from builder.runtime import Runtime
from builder.snapshot.expiry import Expired, expire
from builder.snapshot.transaction import ChangeResult
from builder.store.folder import FolderStore
from builder.verify.choice import Sample, StorePart
from builder.verify.verify import Verified, VerifyRuntime, verify
from functions.config import configuration
from functions.config.configuration import Configuration
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import PublishedRecord, RecordSelection
from functions.snapshot import layout, oai_name
from functions.snapshot.manifest import Manifest, Span
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.row_checks import row_problems

NAMESPACE = "archive.example.org"


@dataclass
class Clock:
    """A clock that moves only when told to, or when somebody sleeps."""

    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def capture(number: int, **changes: object) -> Capture:
    """Return a capture; the same number gives the same item, `changes` describe it otherwise."""
    url = f"http://h{number % 17}.example.cz/{number}"
    values: dict[str, object] = {
        "identity": oai_name.capture_identity(url.encode(), "2007-11-05T00:00:00Z", 200, "A"),
        "url": url,
        "url_surtkey": f"cz,example,h{number % 17})/{number:06}",
        "sets": (
            f"domain:cz:example:h{number % 17}",
            "mime:text:html" if number % 3 else "mime:image:png",
        ),
        "fetch_date": "2007-11-05T00:00:00Z",
        "fetch_time": datetime(2007, 11, 5, tzinfo=UTC),
        "fetch_status": 200,
        "content_digest": "A",
        "title": f"Page {number}",
        "warc_filename": "a.warc.gz",
        "warc_record_offset": number * 100,
        "warc_record_length": 100,
    }
    return Capture(**{**values, **changes})  # type: ignore[arg-type]


@dataclass
class World:
    """A folder store, its clock, and what is done with them."""

    root: Path
    clock: Clock = field(default_factory=Clock)
    runs: int = 0
    identity: str = "0123456789abcdef" * 2
    opened: list[DuckRepository] = field(default_factory=list)

    @property
    def store(self) -> FolderStore:
        return FolderStore(self.root)

    def ingest(
        self,
        captures: list[Capture],
        collections: tuple[str, ...] = (),
        faults: tuple[Fault, ...] = (),
        digest: str = "d",
        said: Mapping[str, str] | None = None,
    ) -> None:
        """Put captures into the intake, as `sheaf ingest` does; `said` is what a crawl says."""
        self.runs += 1
        folder = self.root.parent / f"run-{self.runs}"
        folder.mkdir()
        part = IntakeWriter(folder, "000000")
        for one in captures:
            part.capture(one, tuple(sorted(one.sets + collections)))
        for fault in faults:
            part.fault(fault)
        part.close()
        source = intake.IntakeSource(
            "a.warc.gz",
            digest,
            "a.warc.gz",
            "warc.gz",
            1,
            len(captures),
            0,
            len(faults),
            {},
            {},
            collections,
            **(said or {}),
        )
        intake.commit(self.store, intake.IntakeRun(f"run-{self.runs:03}", (source,)), folder)

    def publish(self, **settings: str) -> ChangeResult:
        """Publish what is in the intake; settings as in SHEAF_* variables."""
        return publish(self.store, self.configuration(**settings), self.runtime())

    def add(
        self, captures: list[Capture], collections: tuple[str, ...] = (), **settings: str
    ) -> ChangeResult:
        """Ingest captures and publish them."""
        self.ingest(captures, collections)
        return self.publish(**settings)

    def expire(self, keep: int = 1, older: timedelta = timedelta(0)) -> Expired:
        """Retire all snapshots but the newest `keep` and those in effect within `older`."""
        return expire(self.store, self.runtime(), keep, older)

    def withdraw(
        self,
        selection: Selection | str,
        reason: str = "asked for",
        *,
        purge: bool = False,
        **settings: str,
    ) -> Withdrawn:
        """Withdraw what is selected, or the item of an identifier."""
        chosen = Selection(identifiers=(selection,)) if isinstance(selection, str) else selection
        given = self.configuration(**settings), self.runtime()
        return withdraw(self.store, *given, chosen, reason, purge=purge)

    def reinstate(self, selection: Selection | str, **settings: str) -> Withdrawn:
        """Reinstate what is selected, or the item of an identifier."""
        chosen = Selection(identifiers=(selection,)) if isinstance(selection, str) else selection
        return reinstate(self.store, self.configuration(**settings), self.runtime(), chosen)

    def newest(self) -> Manifest:
        """Return the manifest of the newest snapshot."""
        catalogue = Catalogue(self.store)
        entry = catalogue.pointer().newest()
        assert entry is not None
        return catalogue.manifest(entry.snapshot)

    def listed(
        self, spec: str | None = None, manifest: Manifest | None = None
    ) -> list[PublishedRecord]:
        """Return the captures of the newest snapshot, or of that of a manifest, in one page.

        One reader serves as long as the world lasts, and the size that it tells is checked.
        """
        manifest = manifest or self.newest()
        repository = self.opened[0] if self.opened else self.repository()
        selection = RecordSelection(("capture",), Span(1, manifest.last_position), spec)
        records = repository.page(manifest, selection, 1_000_000, headers=False)
        assert len(records) == repository.size(manifest, selection)
        return list(records)

    @contextmanager
    def views(self) -> Iterator[engine.Connection]:
        """Give a connection with the views of the newest snapshot."""
        text = self.store.read(layout.views_key(self.newest().snapshot)).decode()
        with engine.connect() as connection:
            connection.execute("SET VARIABLE root = $root", {"root": f"{self.root}/"})
            connection.execute(text)
            yield connection

    def verify(
        self,
        store: Writer | None = None,
        choice: Sample | StorePart | None = None,
        **options: bool,
    ) -> Verified:
        """Check the store, or another one by the same clock; if it is sound, also its rows."""
        store = store or self.store
        done = verify(store, checking(self.clock), choice=choice, **options)
        if choice is None and not done.damaged:
            assert row_problems(store) == []
        return done

    def configuration(self, **settings: str) -> Configuration:
        """Return the settings of a world; tables cost time, and have tests of their own."""
        text = f'[repository]\nnamespace = "{settings.pop("namespace", NAMESPACE)}"\n'
        return configuration.parse(text, {"SHEAF_PUBLISH_TABLES": "false", **settings})

    def runtime(self) -> Runtime:
        return Runtime(
            self.clock,
            self.clock.sleep,
            lambda text: None,
            {"list": "1"},
            1,
            identity=lambda: self.identity,
        )

    def repository(self) -> DuckRepository:
        self.opened.append(DuckRepository(self.store))
        return self.opened[-1]

    def close(self) -> None:
        for repository in self.opened:
            repository.close()


def resize(monkeypatch: pytest.MonkeyPatch, **sizes: int) -> None:
    """Change sizes of files, as `GROUP_ROWS`, so that few rows make many."""
    for name, size in sizes.items():
        monkeypatch.setattr(layout, name, size)


def checking(clock: Callable[[], datetime]) -> VerifyRuntime:
    """Return what a check of a store is given, with no progress shown."""
    return VerifyRuntime(clock, lambda total: nullcontext(lambda count: None), 512, 1)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    yield world
    world.close()


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[[str], World]]:
    made: list[World] = []

    def make(name: str) -> World:
        (tmp_path / name).mkdir()
        made.append(World(tmp_path / name / "store"))
        return made[-1]

    yield make
    for world in made:
        world.close()


def leave_out_copy(store: Path) -> None:
    """Take the copy of the newest manifest out of the witness, as 0.2.0 has none."""
    path = store / layout.WITNESS
    document = json.loads(path.read_bytes())
    members = {name: document[name] for name in document.keys() - {"manifest", "sha256"}}
    path.write_text(json.dumps(members))
