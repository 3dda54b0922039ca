"""Any strategy, held so that two processes fetch a dataset once, and continued by a later one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from builder.filesets.download.download import FileDownloader
from builder.filesets.download.parts import PartialFolder
from builder.filesets.item import ArchiveStrategyResult, FilesetPlatformItem
from builder.filesets.manifest_file import wrap_store_errors
from builder.filesets.protocols import Downloader, FilesetIngestStrategy
from builder.filesets.strategies import record
from builder.filesets.strategies.keys import lease_key
from builder.store.lease import Leases
from functions.snapshot.store import Writer


@dataclass(frozen=True, slots=True)
class ContinuedStrategy:
    """The strategy `name`, or the one that has archived other files of the dataset.

    `make` creates it with a downloader, whose parts are kept in `folder`. The folder's lock holds
    the dataset on this machine, and a lease in the store on all machines; without a folder, nothing
    is held. `go_on` is called while another process holds it, and may raise a FilesetError.
    """

    name: str
    make: Callable[[str, Downloader], FilesetIngestStrategy]
    store: Writer
    downloader: FileDownloader
    folder: PartialFolder | None
    leases: Leases | None
    go_on: Callable[[], None]

    def check_existing(self, item: FilesetPlatformItem) -> ArchiveStrategyResult | None:
        """Return what is archived of exactly this item; None if it is missing or incomplete."""
        return self.make(self.name, self.downloader).check_existing(item)

    def process(self, item: FilesetPlatformItem) -> ArchiveStrategyResult:
        """Archive the item's files, unless another process did meanwhile. Raises FilesetError."""
        with wrap_store_errors(item):
            base = record.locate(self.store, item)
            name = record.begun_by(self.store, base) or self.name
        if self.folder is None or self.leases is None:
            return self.make(name, self.downloader).process(item)
        together = name.startswith("web-") or name.endswith("-bundled")
        with (
            self.folder.hold(base, self.go_on, lasting=together) as parts,
            wrap_store_errors(item),
            self.leases.hold(lease_key(base), self.go_on) as waited,
        ):
            strategy = self.make(name, replace(self.downloader, parts=parts))
            waited = waited or (parts is not None and parts.waited)
            done = strategy.check_existing(item) if waited else None
            done = done or strategy.process(item)
            if parts is not None:
                parts.clear()
            return done
