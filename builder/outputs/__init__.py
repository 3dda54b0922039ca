"""Outputs: what a publish also writes of a snapshot, one folder for each.

The module `output` of a folder is the output (output.Output). To add one is to add a folder, and
its row here: publish, withdraw, expire, purge, verify and copy loop over the rows.
"""

from builder.outputs.dumps import output as dumps_output
from builder.outputs.log import output as log_output
from builder.outputs.output import Output
from builder.outputs.tables import output as tables_output

OUTPUTS: tuple[Output, ...] = (log_output, tables_output, dumps_output)
"""The outputs, in the order in which they follow a change."""
