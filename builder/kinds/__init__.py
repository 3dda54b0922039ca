"""Kinds: what a snapshot lists, one folder for each kind of item.

The `kind.py` of a folder has its row. To add a kind is to add a folder, and its row here: publish,
withdraw, reinstate and purge loop over the rows.
"""

from builder.kinds.captures.kind import CAPTURES
from builder.kinds.collections.kind import COLLECTIONS
from builder.kinds.datasets.kind import DATASETS
from builder.kinds.kind import Kind
from builder.kinds.records.kind import OWN_RECORDS, RECORDS
from builder.kinds.templates.kind import TEMPLATES

KINDS: tuple[Kind, ...] = (CAPTURES, COLLECTIONS, TEMPLATES, DATASETS, RECORDS, OWN_RECORDS)
"""The kinds, in the order in which they are merged: captures first, which make the tables."""
