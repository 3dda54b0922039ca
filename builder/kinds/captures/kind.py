"""The kind of captures."""

from builder.kinds.captures import captures, revisits
from builder.kinds.kind import Kind

CAPTURES = Kind(
    ("capture",),
    gather=captures.merge,
    settle=revisits.resolve,
    inherit=revisits.add_inheriting,
)
