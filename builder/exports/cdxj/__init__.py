"""CDXJ: an index of captures, as cdxj-indexer and pywb write it."""

from builder.exports.export_row import UNREAD, Export

CDXJ = Export(
    "cdxj",
    "Write an index of captures as CDXJ.",
    ("sheaf export cdxj all.cdxj.gz --where 'fetch_status = 200'",),
    UNREAD,
)
