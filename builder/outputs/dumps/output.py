"""The dumps as an output. A copy has none: the next publish there makes its own."""

from collections.abc import Sequence

from builder.outputs.dumps.clean import SUPERSEDED, list_strays
from builder.outputs.dumps.listing import DumpState
from builder.outputs.dumps.update import check_names, update_dumps
from builder.outputs.dumps.verify import dump_findings
from builder.outputs.output import OutputAudit, OutputUpdate
from builder.runtime import Runtime
from builder.store.copier import ObjectCopier
from builder.store.findings import Finding
from functions.config.configuration import Configuration
from functions.snapshot import dumps
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Writer

copied: tuple[str, ...] = ()


def open(configuration: Configuration) -> OutputUpdate:
    """Return the update to the formats of `publish.dumps`. Raises ConfigurationError."""
    check_names(configuration)
    index = (dumps.INDEX,)
    objects, ended = (index, ()) if configuration["publish.dumps"] else ((), index)
    return OutputUpdate(
        lambda store, runtime: update_dumps(store, configuration, runtime), objects, ended
    )


def retire(store: Writer, runtime: Runtime, *, anew: bool) -> int:
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


def verify(audit: OutputAudit) -> Sequence[Finding]:
    """Check that what the index names exists and has its bytes. Raises StoreError."""
    if not audit.listed:
        return ()
    return list(dump_findings(audit.store, audit.pointer, audit.is_read, audit.now))


def check_copy(source: Writer, target: Writer) -> None:
    """Do nothing: dumps are made anew."""


def copy(source: Writer, copier: ObjectCopier, runtime: Runtime, snapshots: Sequence[int]) -> None:
    """Do nothing: dumps are made anew."""
