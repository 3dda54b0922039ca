"""`sheaf export jsonl`."""

from builder.exports import record_parts
from builder.outputs.dumps import json_lines
from builder.store.context import Context

add = record_parts.add_options


def run(context: Context) -> int:
    """Write records as JSON lines: all, or what changed since a snapshot.

    The parts are compressed, and manifest.json has their digests.
    """
    return record_parts.export(context, json_lines.NAME)
