"""The demo's exhibit of ReDIF: an archive and its full texts, taken in, changed, taken in again."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from builder.demo import papers
from builder.demo.shelf import Shelf, serve
from builder.gather.hold import held
from builder.gather.session import Order, Session
from builder.gather.state import Choice
from builder.http.addresses import Guard, networks
from builder.http.fetch import AGENT, Means
from builder.http.limits import Limits
from builder.http.politeness import Hosts, Manners
from builder.ingest import workdir
from builder.obi import log
from builder.obi.row import Incidence
from builder.obi.run import Outside, history
from builder.redif import ingest as redif
from builder.redif.account import RedifReport
from builder.redif.staging import FileOrigin
from builder.store.folder import FolderStore
from functions.snapshot import layout

_MANNERS = Manners(interval=0.02, at_once=1, rest=1.0)
_LIMITS = Limits(connect=5, first_byte=5, total=30, rate=1, bytes=1 << 20)
_LOOPBACK = networks(["127.0.0.0/8"])
_CHOICE = Choice(interval=0, retry=0, again=True)


@dataclass(frozen=True, slots=True)
class Taken:
    """What an ingest and a gathering came to: the account, files gathered, and what happened."""

    ingested: RedifReport
    files: int
    incidences: tuple[Incidence, ...]


class Exhibit:
    """The archive in a folder, and its full texts on a server of this machine."""

    def __init__(
        self, store: FolderStore, outside: Outside, folder: Path, shelf: Shelf, base: str
    ) -> None:
        self._store, self._outside, self._folder, self._shelf = store, outside, folder, shelf
        self.base = base

    def take_in(self) -> Taken:
        """Ingest the archive as it is, and gather the full texts. Raises StoreError."""
        before = {run.tist for run in history(self._store)}
        account = self._ingested()
        files = self._gathered()
        happened = [
            row
            for run in history(self._store)
            if run.tist not in before
            for row in log.rows(self._store, run)
            if isinstance(row, Incidence)
        ]
        return Taken(account, files, tuple(happened))

    def change(self) -> None:
        """Change an abstract and a full text, take a template and a full text away."""
        papers.revise(self._folder, self.base)
        self._shelf.put("/02.pdf", papers.pdf("Honey Prices after a Late Frost, corrected."))
        self._shelf.take("/03.pdf")

    def _ingested(self) -> RedifReport:
        order = redif.RedifJob((FileOrigin(self._folder, self._folder.name, is_tree=True),))
        passing = workdir.folder_of(self._store.root / layout.TEMPORARY, None)
        with workdir.open_workdir(passing) as own:
            account = redif.ingest(
                self._store, order, own, redif.RedifRuntime(self._outside, _unseen)
            )
        assert account is not None  # nobody else has begun a run of this store
        return account

    def _gathered(self) -> int:
        """Gather what all templates refer to; return how many files are there."""
        stop = threading.Event()
        home = self._store.root / layout.TEMPORARY
        with held(home, self._store.address) as hold:
            means = Means(
                agent=f"{AGENT}/{metadata.version('sheaf')} (demonstration)",
                guard=Guard(frozenset({int(self.base.rpartition(":")[2])}), _LOOPBACK),
                limits=_LIMITS,
                hosts=Hosts(_MANNERS, stop),
                scratch=hold.scratch,
                stop=stop,
            )
            order = Order(_CHOICE, "all templates", None, seconds=60, files=100, threads=2)
            session = Session(self._store, hold, self._outside, means, order)
            session.due()
            counts = session.gather().counts
        return sum(counts[name] for name in ("appearances", "changes", "seen"))


def _unseen(
    what: str, total: int | None, unit: str
) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda count: None)


@contextmanager
def exhibit(store: FolderStore, outside: Outside, folder: Path) -> Iterator[Exhibit]:
    """Make the archive in `folder` and serve its full texts for as long as the block runs."""
    shelf = Shelf(papers.texts())
    with serve(shelf) as base:
        papers.write(folder, base)
        yield Exhibit(store, outside, folder, shelf, base)
