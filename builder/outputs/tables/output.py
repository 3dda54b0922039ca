"""The tables of Iceberg as an output. A copy makes its own, as their paths name the store."""

from collections.abc import Sequence

from builder.outputs.output import Output, OutputUpdate
from builder.outputs.tables.clean import find_named, list_strays
from builder.outputs.tables.index import INDEX
from builder.outputs.tables.update import read_index, refresh_tables, update_tables
from builder.outputs.tables.verify import table_findings
from builder.runtime import Runtime
from builder.snapshot.audit import StoreAudit
from builder.store.copier import ObjectCopier
from builder.store.findings import Finding
from functions.config.configuration import Configuration
from functions.snapshot.store import Writer


class TablesOutput(Output):
    """The tables of `publish.tables`."""

    def open(self, configuration: Configuration) -> OutputUpdate:
        """Return the update that `publish.tables` wants."""
        objects, ended = ((INDEX,), ()) if configuration["publish.tables"] else ((), (INDEX,))
        return OutputUpdate(
            lambda store, runtime: update_tables(store, configuration, runtime), objects, ended
        )

    def retire(self, store: Writer, runtime: Runtime, *, anew: bool) -> int:
        """Drop retired snapshots and what they alone need. Raises Conflict and StoreError."""
        before = read_index(store)
        if before is None:
            return 0
        earlier = find_named(store, before)
        refresh_tables(store, runtime)
        strays = list_strays(store, runtime.clock(), earlier, anew=anew)
        store.remove(*strays)
        return len(strays)

    def verify(self, audit: StoreAudit) -> Sequence[Finding]:
        """Check the objects of the tables. Raises StoreError."""
        return [*table_findings(audit.store, audit.pointer, audit.now)] if audit.listed else ()

    def copy(
        self, source: Writer, copier: ObjectCopier, runtime: Runtime, snapshots: Sequence[int]
    ) -> None:
        """Make the tables of the target, if the source has some. Raises Conflict and StoreError."""
        if source.tag(INDEX) is not None:
            refresh_tables(copier.target, runtime)
