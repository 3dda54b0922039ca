"""Records of a run by columns, as they are rendered from data files, and as rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.harvest.version import HarvestedRow, item_versions
from builder.parquet.texts import TextColumn, list_values, longest, texts_of


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Records by columns, each a sequence or an array.

    `identifiers` and `texts` are in UTF-8; `dc` has lists for each element.
    """

    identifiers: Sequence[bytes]
    stamps: Any
    deleted: Any
    sets: Any
    dc: Mapping[str, Any]
    texts: Sequence[bytes]

    @property
    def largest(self) -> int:
        """Bytes of the largest record."""
        return longest(self.texts)

    def values(self, harvested: str, run: int) -> Mapping[str, Any]:
        """Return the columns of version.ROW, without those that are NULL."""
        many = len(self.texts)
        return {
            "identifier": texts_of(self.identifiers),
            "datestamp": self.stamps,
            "deleted": self.deleted,
            "sets": self.sets,
            **{f"dc_{name}": values for name, values in self.dc.items()},
            "record": texts_of(self.texts),
            "harvested": [harvested] * many,
            "run": [run] * many,
        }

    def versions(self, run: int) -> list[bytes]:
        """Return what the index of seen items holds of them."""
        stamps, deleted = list_values(self.stamps), list_values(self.deleted)
        names, texts = (
            some.views() if isinstance(some, TextColumn) else some
            for some in (self.identifiers, self.texts)
        )
        return item_versions(run, names, stamps, texts, deleted)

    def rows(self, harvested: str, run: int) -> Iterator[HarvestedRow]:
        """Yield the rows."""
        lists = {name: list_values(values) for name, values in self.dc.items()}
        stamps, deleted, sets = map(list_values, (self.stamps, self.deleted, self.sets))
        for n, (name, text) in enumerate(zip(self.identifiers, self.texts, strict=True)):
            dc = {name: tuple(one) for name, some in lists.items() if (one := some[n]) is not None}
            yield HarvestedRow(
                name.decode(),
                stamps[n],
                deleted[n],
                tuple(sets[n]),
                dc,
                text.decode(),
                harvested,
                run,
            )
