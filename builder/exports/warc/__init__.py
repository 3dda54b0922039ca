"""WARC/1.1: gathered files, or chosen captures."""

from builder.exports.export_row import Export

WARC = Export(
    "warc",
    "Write gathered files as WARC/1.1.",
    ("sheaf export warc /archive/warc", "sheaf export warc all.warc.gz"),
)
