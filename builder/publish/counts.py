"""Counts: what the parts of a publish changed, and the report that they make together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from builder.publish import captures, filesets, harvested, templates
from builder.snapshot.transaction import ChangeResult
from functions.snapshot.manifest import Manifest


@dataclass
class ChangeCounts:
    """The results of the parts of a publish."""

    merged: captures.Merged
    moved: int = 0
    restated: int = 0
    template_changes: templates.RevisedTemplates = field(default_factory=templates.RevisedTemplates)
    fileset_changes: filesets.RevisedFilesets = field(default_factory=filesets.RevisedFilesets)
    harvest_changes: harvested.RevisedHarvests = field(default_factory=harvested.RevisedHarvests)

    @property
    def _revised(
        self,
    ) -> tuple[templates.RevisedTemplates, filesets.RevisedFilesets, harvested.RevisedHarvests]:
        return self.template_changes, self.fileset_changes, self.harvest_changes

    @property
    def new(self) -> int:
        """Number of new items."""
        return self.merged.new + sum(one.new for one in self._revised)

    @property
    def changed(self) -> int:
        """Number of changed items."""
        return self.merged.changed + self.moved + sum(one.changed for one in self._revised)

    def account(
        self, manifest: Manifest | None, records: int, faults: int, keys: Sequence[str]
    ) -> ChangeResult:
        """Return the result of the change; `manifest` is None if nothing changes."""
        return ChangeResult(
            manifest,
            records,
            self.new,
            self.changed - self.moved,
            self.merged.unchanged + self.fileset_changes.unchanged + self.harvest_changes.unchanged,
            self.merged.copies,
            faults,
            moved=self.moved,
            keys=tuple(keys),
            deleted=sum(one.deleted for one in self._revised),
        )
