"""Runs of the obi store in the formats of earlier releases."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from builder.obi.conversion import convert_run, find_unpacked
from builder.obi.history import history
from builder.runtime import Advance
from builder.verify.obi_packs import PackAudit
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Writer


def pack_runs(
    store: Writer, progress: Callable[[str, int | None], AbstractContextManager[Advance]]
) -> tuple[list[int], PackAudit]:
    """Convert the runs of format 1, one after the other, and check all packs afterwards.

    `progress` shows a text and counts bytes of a total, if that is known. Returns the times of the
    runs, and the audit. Raises DamagedStore.
    """
    left = find_unpacked(history(store))
    for number, run in enumerate(left, 1):
        with progress(f"run {number} of {len(left)}", None) as advance:
            convert_run(store, run, advance)
    packs = PackAudit.begin(store, history(store), lambda where: True, whole=False)
    with progress("checking", packs.bytes) as advance:
        packs.finish(advance)
    for finding in packs.findings:
        raise DamagedStore(f"{finding.object}: {finding.problem}")
    return [run.tist for run in left], packs
