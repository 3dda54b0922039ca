"""The kind of records from other repositories."""

from builder.kinds.kind import Kind
from builder.kinds.records import harvested
from builder.text import tally

RECORDS = Kind(
    ("harvested",),
    identifiers="foreign",
    revise=harvested.revise,
    reinstate=harvested.forget_parts,
    status=lambda count, manifest: (
        "harvested",
        f"{tally(count, 'item')}, deleted ones included",
    ),
)
