"""An archive of RePEc over time, in a store with a clock of the test's own."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.obi.content import Row
from builder.obi.history import Committed
from builder.obi.run import ObiRuntime, Purpose, claim
from builder.snapshot.transaction import ChangeResult
from builder.sources.redif.account import RedifReport
from builder.sources.redif.ingest import RedifJob, RedifRuntime, ingest
from builder.sources.redif.spool import FileOrigin
from builder.sources.redif.staging import Acceptance
from builder.store import workdir
from tests.builder.conftest import World
from tests.builder.sources.redif.trees import archive, tree
from tests.functions.oai.client import Client, Page

PREFIX = "oai:archive.example.org:"
EVERYTHING = Acceptance(everything=True)


@dataclass
class Repec(World):
    """A world whose intake is ReDIF; `files` are those of the tree by path."""

    files: dict[str, bytes] = field(default_factory=archive)
    clients: list[Client] = field(default_factory=list)

    @property
    def run_outside(self) -> ObiRuntime:
        return ObiRuntime(self.clock, self.clock.sleep, lambda text: None)

    def take(self, **more: bytes | None) -> None:
        """Ingest the tree with other files below aaa/wpaper; None removes one."""
        for name, data in more.items():
            self.files.pop(f"aaa/wpaper/{name}.rdf", None)
            if data is not None:
                self.files[f"aaa/wpaper/{name}.rdf"] = data
        folder = tree(self.root.parent / "RePEc", self.files)
        self.replay(folder, is_tree=True)

    def publish_tree(self, **more: bytes | None) -> ChangeResult:
        """Ingest the tree as `take` does, and publish."""
        self.take(**more)
        return self.publish()

    def replay(
        self,
        path: Path,
        *,
        is_tree: bool = False,
        tist: int | None = None,
        accepted: Acceptance = EVERYTHING,
        encodings: Mapping[str, str] | None = None,
        home: Path | None = None,
    ) -> RedifReport | None:
        self.clock.sleep(10)
        means = RedifRuntime(
            self.run_outside,
            lambda *_: nullcontext(lambda n: None),
            encodings=encodings or {},
            home=home,
        )
        order = RedifJob((FileOrigin(path, path.name, is_tree),), tist, accepted)
        with workdir.open_workdir(self.root.parent / "ingest-x") as held:
            return ingest(self.store, order, held, means)

    def gathered(self, *rows: Row) -> Committed:
        """Commit a run such as `sheaf gather` makes."""
        self.clock.sleep(10)
        run = claim(self.store, Purpose("gather", "web", str(self.clock.now)), self.run_outside)
        run.turn()
        return run.commit(rows)

    @contextmanager
    def asked(self, **settings: Any) -> Iterator[Client]:
        """Give a harvester's client, some time after the last publish."""
        self.clock.sleep(30)
        repository = self.repository()
        client = Client(repository, repository_namespace="archive.example.org", **settings)
        client.clock.now = self.clock.now
        yield client


def state(client: Client, **arguments: str) -> dict[str, tuple[str, bool, tuple[str, ...], str]]:
    """Return by identifier datestamp, whether it is deleted, sets and metadata of a list."""
    return _told(client.pages(**{"metadataPrefix": "oai_dc", **arguments}))


def within(whole: dict[str, Any], of_set: str) -> dict[str, Any]:
    """Return what of a state is in a set, or in one below it, by what each record says."""
    return {
        name: told
        for name, told in whole.items()
        if any(f"{spec}:".startswith(f"{of_set}:") for spec in told[2])
    }


def _told(pages: Iterable[Page]) -> dict[str, tuple[str, bool, tuple[str, ...], str]]:
    found = {}
    for page in pages:
        for record in page.root.iter("{*}record"):
            name = record.findtext("{*}header/{*}identifier")
            deleted = record.find("{*}header").get("status") == "deleted"
            sets = tuple(e.text for e in record.iter("{*}setSpec"))
            texts = [e.text for e in record.iterfind("{*}metadata//*")]
            stamp = record.findtext("{*}header/{*}datestamp")
            assert name not in found, "an identifier twice in one list"
            found[name] = (stamp, deleted, sets, repr(texts))
    return found


def harvested(client: Client, mirror: dict[str, Any], since: str | None, **more: str) -> str:
    """Bring a mirror up to date, as a harvester does; return the responseDate to go on from."""
    given = {"from_": since} if since else {}
    pages = [*client.pages(metadataPrefix="oai_dc", **given, **more)]
    mirror.update(_told(pages))
    return pages[0].response_date
