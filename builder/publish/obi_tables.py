"""Tables of the obi store in a snapshot: the result of the replay, in full and in one order.

The same runs give the same files. So a publish shares unchanged files, and anyone can rebuild them
from the store.
"""

from builder.obi import replay
from builder.snapshot.draft import Draft
from functions.snapshot import obi


def write(draft: Draft) -> None:
    """Replace the draft's obi tables by those that the replay made in the database."""
    for table in obi.TABLES:
        leaves = draft.leaves(draft.write(table, [(replay.query(table), {})]))
        draft.tables.pop(table, None)
        if leaves:
            draft.tables[table] = leaves
