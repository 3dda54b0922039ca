"""The kind of collections."""

from builder.kinds.collections import collections
from builder.kinds.kind import Kind

COLLECTIONS = Kind(settle=collections.restate)
