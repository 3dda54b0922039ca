"""OAI-PMH documents: records, all or what changed."""

from builder.exports.export_row import Export

OAI = Export(
    "oai",
    "Write records as OAI-PMH documents: all, or what changed since a snapshot.",
    ("sheaf export oai dc/", "sheaf export oai mods/ --format mods --since 2026-11-22"),
)
