"""The kind of records from other repositories."""

from builder.kinds.kind import Kind
from builder.kinds.records import harvested

RECORDS = Kind(
    ("harvested",),
    identifiers="foreign",
    revise=harvested.revise,
    reinstate=harvested.forget_parts,
)
