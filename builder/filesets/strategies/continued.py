"""Any strategy, held so that two processes fetch a dataset once, and continued by a later one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from builder.filesets.download.download import FileDownloader
from builder.filesets.download.parts import PartialFolder
from builder.filesets.item import ArchiveStrategyResult, FilesetPlatformItem
from builder.filesets.manifest_file import wrap_store_errors
from builder.filesets.protocols import Downloader, FilesetIngestStrategy
from builder.filesets.strategies.keys import lease_key, place
from builder.store.lease import Leases


@dataclass(frozen=True, slots=True)
class ContinuedStrategy:
    """The strategy that `make` creates with a downloader; its parts are kept in `folder`.

    The folder's lock holds the dataset on this machine, and a lease in the store on all machines.
    `go_on` is called while another process holds it, and may raise a FilesetError.
    """

    name: str
    make: Callable[[Downloader], FilesetIngestStrategy]
    downloader: FileDownloader
    folder: PartialFolder
    leases: Leases
    go_on: Callable[[], None]

    def check_existing(self, item: FilesetPlatformItem) -> ArchiveStrategyResult | None:
        """Return what is archived of exactly this item; None if it is missing or incomplete."""
        return self.make(self.downloader).check_existing(item)

    def process(self, item: FilesetPlatformItem) -> ArchiveStrategyResult:
        """Archive the item's files, unless another process did meanwhile. Raises FilesetError."""
        together = self.name.startswith("web-") or self.name.endswith("-bundled")
        base = place(item)
        with (
            self.folder.hold(base, self.go_on, lasting=together) as parts,
            wrap_store_errors(item),
            self.leases.hold(lease_key(base), self.go_on) as waited,
        ):
            strategy = self.make(replace(self.downloader, parts=parts))
            waited = waited or (parts is not None and parts.waited)
            done = strategy.check_existing(item) if waited else None
            done = done or strategy.process(item)
            if parts is not None:
                parts.clear()
            return done
