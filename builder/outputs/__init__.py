"""Outputs: what a publish also writes of a snapshot, one folder for each.

The `output.py` of a folder has its class (output.Output). To add one is to add a folder, and its
row here: publish, withdraw, expire, purge, verify and copy loop over the rows.
"""

from builder.outputs.dumps.output import DumpsOutput
from builder.outputs.log.output import LogOutput
from builder.outputs.output import Output
from builder.outputs.site.output import SiteOutput
from builder.outputs.tables.output import TablesOutput

OUTPUTS: tuple[Output, ...] = (LogOutput(), TablesOutput(), DumpsOutput(), SiteOutput())
"""The outputs, in the order in which they follow a change."""
