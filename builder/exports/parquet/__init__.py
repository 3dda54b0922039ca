"""Parquet: a view with large row groups, and its description (Croissant)."""

from builder.exports.export_row import Export

PARQUET = Export(
    "parquet",
    "Write a view as Parquet with large row groups, described by croissant.json.",
    ("sheaf export parquet captures/", "sheaf export parquet templates/ --view templates"),
)
