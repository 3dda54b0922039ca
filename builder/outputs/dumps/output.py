"""The dumps as an output. A copy has none: the next publish there makes its own."""

from collections.abc import Sequence

from builder.outputs.dumps.clean import SUPERSEDED, list_strays
from builder.outputs.dumps.listing import DumpState
from builder.outputs.dumps.update import update_dumps
from builder.outputs.dumps.verify import dump_findings
from builder.outputs.output import Output, OutputUpdate
from builder.runtime import Runtime
from builder.snapshot.audit import StoreAudit
from builder.store.findings import Finding
from functions.config.configuration import Configuration
from functions.snapshot import dumps
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Writer


class DumpsOutput(Output):
    """The dumps of `publish.dumps`."""

    def check(self, configuration: Configuration) -> None:
        """Raise ConfigurationError if `publish.dumps` names something that is not a format."""
        if names := configuration["publish.dumps"]:
            from builder.outputs.dumps.formats import DumpFormats  # loads the renderer

            DumpFormats.of(configuration).check(names)

    def open(self, configuration: Configuration) -> OutputUpdate:
        """Return the update to the formats of `publish.dumps`."""
        index = (dumps.INDEX,)
        objects, ended = (index, ()) if configuration["publish.dumps"] else ((), index)
        return OutputUpdate(
            lambda store, runtime: update_dumps(store, configuration, runtime), objects, ended
        )

    def retire(self, store: Writer, runtime: Runtime, *, anew: bool) -> int:
        """Remove what the index does not name. Raises StoreError."""
        try:
            state = DumpState.read(store)
            strays = list_strays(store, state, None if anew else runtime.clock())
        except (MissingObject, DamagedStore):
            return 0  # without dumps, or the next publish makes them anew
        if anew:  # else it would name what is removed now for readers of today
            store.remove(SUPERSEDED)
        store.remove(*strays, *state.index.removed)
        return len(strays)

    def verify(self, audit: StoreAudit) -> Sequence[Finding]:
        """Check that what the index names exists and has its bytes. Raises StoreError."""
        if not audit.listed:
            return ()
        return list(dump_findings(audit.store, audit.pointer, audit.is_read, audit.now))
