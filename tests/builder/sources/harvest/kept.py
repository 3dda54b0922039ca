"""What a harvest kept, as somebody reads it who knows the layout alone."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from builder.sources.harvest import folder as folders
from builder.sources.harvest.version import HarvestedRow


@dataclass(frozen=True)
class Kept:
    """The rows of the one harvest below a folder, in order, and its state's document."""

    rows: tuple[HarvestedRow, ...]
    files: tuple[str, ...]

    @property
    def state(self) -> dict[str, tuple[str, bool, str]]:
        """What is known in the end: datestamp, deleted, and the title, "" where there is none."""
        return {
            row.identifier: (row.datestamp, row.deleted, "".join(row.dc.get("title", ())))
            for row in self.rows
        }

    @property
    def doubled(self) -> list[tuple[str, str]]:
        """The versions that are there more than once in a run."""
        counts = Counter((r.identifier, r.datestamp, r.record, r.run) for r in self.rows)
        return [(key[0], key[1]) for key, count in counts.items() if count > 1]


def kept(home: Path) -> Kept:
    """Read the one harvest below a folder of harvests."""
    (own,) = (path.parent for path in home.glob(f"*/{folders.STATE}"))
    found = folders.read(own)
    assert found is not None
    rows = tuple(folders.rows(own, found))
    for row in rows:
        etree.fromstring(row.record)
    return Kept(rows, tuple(sorted(file.name for file in own.iterdir())))


def expected(state: dict[str, tuple[str, bool, str]]) -> dict[str, tuple[str, bool, str]]:
    """Return a provider's state as a harvest tells it: what is deleted has no title."""
    return {name: (s, gone, "" if gone else title) for name, (s, gone, title) in state.items()}
