"""Report of an import: what its archives hold, and their faults."""

from dataclasses import dataclass, field

from builder.gather.gather_report import GatherReport
from builder.gather.vaults.faults import VAULT_FAULTS, FaultList
from builder.sources.events import FAULT_CODES
from builder.text import tally

_MEANINGS = {**FAULT_CODES, **VAULT_FAULTS}


@dataclass(slots=True)
class ImportReport:
    """What an import found and did.

    Of the `captures`, `unnamed` ones are of URLs that no template named, `older` ones are not later
    than what the store has, and `repeated` ones are copies, or between equal captures. `failed`
    archives could not be read.
    """

    archives: int = 0
    failed: int = 0
    captures: int = 0
    unnamed: int = 0
    older: int = 0
    repeated: int = 0
    faults: FaultList = field(default_factory=FaultList)
    gathered: GatherReport = field(default_factory=GatherReport)

    def text(self) -> str:
        """Return what the archives hold, and their faults, as text."""
        counts = self.faults.counts
        lines = [
            f"{tally(self.captures, 'capture')} in {tally(self.archives, 'archive')}: "
            f"{self.unnamed:,} of URLs that no template named, {self.older:,} not later than what "
            f"the store has, {self.repeated:,} repeated"
        ]
        if counts:
            lines.append(f"{tally(counts.total(), 'fault')} of the archives:")
            lines += [
                f"  {many:,} {code}: {_MEANINGS[code]}" for code, many in counts.most_common()
            ]
        return "\n".join(lines)

    def document(self) -> dict[str, object]:
        """Return the same as members of a JSON document."""
        names = ("archives", "failed", "captures", "unnamed", "older", "repeated")
        return {
            **{name: getattr(self, name) for name in names},
            "faults": dict(sorted(self.faults.counts.items())),
        }
