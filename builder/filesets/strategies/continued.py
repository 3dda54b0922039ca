"""Any strategy, held so that two processes fetch a dataset once, and continued by a later one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from builder.filesets.download.download import FileDownloader
from builder.filesets.download.parts import PartialFolder
from builder.filesets.item import ArchiveStrategyResult, FilesetPlatformItem
from builder.filesets.protocols import Downloader, FilesetIngestStrategy
from builder.filesets.strategies.keys import place


@dataclass(frozen=True, slots=True)
class ContinuedStrategy:
    """The strategy that `make` creates with a downloader; its parts are kept in `folder`.

    `go_on` is called while another process holds the dataset, and may raise a FilesetError.
    """

    name: str
    make: Callable[[Downloader], FilesetIngestStrategy]
    downloader: FileDownloader
    folder: PartialFolder
    go_on: Callable[[], None]

    def check_existing(self, item: FilesetPlatformItem) -> ArchiveStrategyResult | None:
        """Return what is archived of exactly this item; None if it is missing or incomplete."""
        return self.make(self.downloader).check_existing(item)

    def process(self, item: FilesetPlatformItem) -> ArchiveStrategyResult:
        """Archive the item's files, unless another process did meanwhile. Raises FilesetError."""
        together = self.name.startswith("web-") or self.name.endswith("-bundled")
        with self.folder.hold(place(item), self.go_on, lasting=together) as parts:
            strategy = self.make(replace(self.downloader, parts=parts))
            done = strategy.check_existing(item) if parts and parts.waited else None
            done = done or strategy.process(item)
            if parts is not None:
                parts.clear()
            return done
