"""The kinds of records that came as XML: from other repositories, and from files of our own."""

from functools import partial

from builder.kinds.kind import Kind
from builder.kinds.records import harvested, own
from functions.snapshot import item_tables

RECORDS = Kind(
    ("harvested",),
    identifiers="foreign",
    revise=harvested.revise,
    reinstate=partial(harvested.forget_parts, kind=harvested.KIND, reading=item_tables.READING),
)
OWN_RECORDS = Kind(
    ("record",),
    identifiers="foreign",  # a static repository's items keep theirs
    revise=own.revise,
    reinstate=partial(harvested.forget_parts, kind=own.KIND, reading=item_tables.OWN_READING),
)
