"""The tables of the obi store in a snapshot: what the fold made, written in full and in one order.

The same runs give the same files, so that what a publish finds unchanged is shared, and anybody can
make them anew out of the store.
"""

from builder.obi import replay
from builder.snapshot.draft import Draft
from functions.snapshot import obi


def write(draft: Draft) -> None:
    """Write the tables that the fold made in the draft's database in the place of the last ones."""
    for table in obi.TABLES:
        leaves = draft.leaves(draft.write(table, [(replay.query(table), {})]))
        draft.tables.pop(table, None)
        if leaves:
            draft.tables[table] = leaves
