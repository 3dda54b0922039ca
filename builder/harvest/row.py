"""Rows of harvested records: one for each version, the same in all output forms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from functions.snapshot.column import Column

DC = (
    "title", "creator", "subject", "description", "publisher", "contributor", "date", "type",
    "format", "identifier", "source", "language", "relation", "coverage", "rights",
)  # fmt: skip
"""The elements of Dublin Core 1.1; each is a column `dc_<name>`."""

ROW = (
    Column("identifier", "VARCHAR", "the item's identifier", "oai:a.cz:1"),
    Column("datestamp", "VARCHAR", "its datestamp, as the repository wrote it", "2026-11-22"),
    Column("deleted", "BOOLEAN", "whether the repository declares it deleted", "false"),
    Column("sets", "VARCHAR[]", "setSpecs of its header, in order", "[a, b:c]"),
    *(Column(f"dc_{name}", "VARCHAR[]", f"dc:{name}, in order; NULL if there are none", "[...]")
      for name in DC),
    Column("record", "VARCHAR", "the record element with its namespaces", "<record>..."),
    Column("harvested", "VARCHAR", "responseDate of its page", "2026-11-22T1..."),
    Column("run", "INTEGER", "number of its run", "1"),
    Column("fault", "VARCHAR", "description of repairs to it; NULL if there were none", "NULL"),
)  # fmt: skip
"""The columns of a row, the same in Parquet and JSON lines."""


@dataclass(frozen=True, slots=True)
class HarvestedRow:
    """A harvested version of a record. `dc` holds those Dublin Core elements that are present."""

    identifier: str
    datestamp: str
    deleted: bool
    sets: tuple[str, ...]
    dc: Mapping[str, tuple[str, ...]]
    record: str
    harvested: str
    run: int
    fault: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the row by the names of ROW; a JSON line is the same without None values."""
        return {
            "identifier": self.identifier,
            "datestamp": self.datestamp,
            "deleted": self.deleted,
            "sets": list(self.sets),
            **{f"dc_{name}": list(self.dc[name]) if name in self.dc else None for name in DC},
            "record": self.record,
            "harvested": self.harvested,
            "run": self.run,
            "fault": self.fault,
        }
