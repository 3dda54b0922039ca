"""The site: all answers of OAI-PMH as files, for hosts that run no code of Sheaf."""

from builder.exports.export_row import Export

SITE = Export(
    "site",
    "Write all answers of OAI-PMH as files, or update such a folder.",
    ("sheaf export site public/", "sheaf export site public/ --json"),
)
"""`sheaf export site`."""
