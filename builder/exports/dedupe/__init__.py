"""CDX of what need not be stored again, as wget reads it."""

from builder.exports.export_row import UNREAD, Export

DEDUPE = Export(
    "dedupe",
    "Write what a crawl by wget need not store again.",
    ("sheaf export dedupe stored.cdx --set domain:org:example",),
    UNREAD,
)
