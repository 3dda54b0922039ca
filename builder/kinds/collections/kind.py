"""The kind of collections."""

from builder.kinds.collections import collections
from builder.kinds.kind import Kind

COLLECTIONS = Kind(
    (collections.KIND,),
    settle=collections.restate,
    follow="is derived from the captures of its set: withdraw them with --set",
)
