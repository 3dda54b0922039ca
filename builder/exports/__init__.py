"""Exports: what a person takes away from a store, one folder for each format.

The `__init__.py` of a folder has its row, and its `export.py` has `add`, which declares the
arguments of `sheaf export NAME`, and `run`, which writes. To add a format is to add a folder, and
its row here: the command line, its help and its reference follow from the row.
"""

from builder.exports.bagit import BAGIT
from builder.exports.cdxj import CDXJ
from builder.exports.dedupe import DEDUPE
from builder.exports.export_row import Export
from builder.exports.jsonl import JSONL
from builder.exports.oai import OAI
from builder.exports.ocfl import OCFL
from builder.exports.parquet import PARQUET
from builder.exports.rocrate import ROCRATE
from builder.exports.site import SITE
from builder.exports.wacz import WACZ
from builder.exports.warc import WARC

EXPORTS: tuple[Export, ...] = (
    *(OCFL, BAGIT, ROCRATE, WARC, WACZ),
    *(CDXJ, DEDUPE, PARQUET, JSONL, OAI, SITE),
)
"""The formats, in the order of the help."""
