"""What all strategies share: where a dataset lies, what is there already, and its record."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from builder.http.settings import Settings
from builder.sources.datasets.download.download import FileDownloader
from builder.sources.datasets.item import ArchiveStrategyResult, FilesetPlatformItem
from builder.sources.datasets.manifest_file import wrap_store_errors
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies import record
from builder.sources.datasets.strategies.record import KeepingRecord
from builder.sources.datasets.strategies.transfer import fails_alone
from functions.snapshot.store import Writer


@dataclass(frozen=True, slots=True)
class ArchivingStrategy(ABC):
    """The strategy `name`; a backend says how it archives a dataset, and what a record lacks.

    `go_on` is called now and then while bytes are read, and may raise a FilesetError.
    """

    name: str
    store: Writer
    downloader: FileDownloader
    settings: Settings
    go_on: Callable[[], None] = field(default=lambda: None, kw_only=True)

    def check_existing(self, item: FilesetPlatformItem) -> ArchiveStrategyResult | None:
        """Return what is archived of exactly this item; None if it is missing or incomplete."""
        with wrap_store_errors("error-store-verify"):
            return self.find_existing(record.locate(self.store, item), item)

    def process(self, item: FilesetPlatformItem) -> ArchiveStrategyResult:
        """Archive the item's files, or those that its record lacks. Raises FilesetError."""
        with wrap_store_errors():
            base = record.locate(self.store, item)
            if (first := self.begin(base)) is None:
                stored = record.write(self.store, base, self.archive(item, base, None), item)
            else:
                stored = self.complete(item, base, first)
            return record.add_withheld(stored.archived, item)

    def find_existing(self, base: str, item: FilesetPlatformItem) -> ArchiveStrategyResult | None:
        """Return what is archived of the item below `base`, as `check_existing` does."""
        if (earlier := record.read(self.store, base)) is None:
            return None
        check = self.settings["fileset.check"]
        missing, altered = record.state(self.store, earlier, check=check, go_on=self.go_on)
        return record.judge(earlier, item, missing, altered)

    def begin(self, base: str) -> KeepingRecord | None:
        """Return the record below `base` that is to be completed, or None to archive anew."""
        return record.of_strategy(self.store, base, self.name)

    @abstractmethod
    def archive(
        self, item: FilesetPlatformItem, base: str, first: KeepingRecord | None
    ) -> KeepingRecord:
        """Archive all files, or those that the record `first` lacks. Raises FilesetError.

        Returns the record of what was archived, which is not written.
        """

    def complete(self, item: FilesetPlatformItem, base: str, first: KeepingRecord) -> KeepingRecord:
        """Archive what the record `first` lacks; return the record. Raises FilesetError."""
        return self.extend(item, base, first, lambda: self.archive(item, base, first))

    def extend(
        self,
        item: FilesetPlatformItem,
        base: str,
        first: KeepingRecord,
        archive: Callable[[], KeepingRecord],
    ) -> KeepingRecord:
        """Add to the record `first` what `archive` archives, even if all these files fail alone."""
        try:
            stored = archive()
        except FilesetError as error:
            if not fails_alone(error, self.settings):
                raise
            return record.extend(self.store, base, first, item, error.manifest)
        return record.extend(
            self.store, base, first, item, stored.archived.manifest, stored.objects
        )
