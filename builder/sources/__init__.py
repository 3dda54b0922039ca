"""Sources: what can be ingested, one folder for each.

`webarchives` holds web archives and their indexes, `records` files of metadata, `redif` trees and
tarballs of RePEc, `harvest` other repositories, `datasets` filesets of platforms, `fulltexts` what
templates refer to.

The `__init__.py` of a folder has its row, and its `source.py` has the READER of what `sheaf ingest`
reads. To add a source is to add a folder, and its row here: `sheaf ingest`, its help and `sheaf
status` loop over the rows.
"""

from builder.sources.datasets import DATASETS
from builder.sources.harvest import HARVEST
from builder.sources.records import RECORDS
from builder.sources.redif import REDIF
from builder.sources.source import Source
from builder.sources.webarchives import WEBARCHIVES

SOURCES: tuple[Source, ...] = (WEBARCHIVES, RECORDS, REDIF, DATASETS, HARVEST)
"""The sources, in the order of the help. The last is asked first; web archives take the rest."""
