"""JSON lines: records, all or what changed."""

from builder.exports.export_row import Export

JSONL = Export(
    "jsonl",
    "Write records as JSON lines: all, or what changed since a snapshot.",
    ("sheaf export jsonl all/", "sheaf export jsonl changes/ --since 41 --set mime:text"),
)
