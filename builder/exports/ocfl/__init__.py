"""OCFL 1.1: objects with all their versions in a storage root."""

from builder.exports.export_row import ELSEWHERE, Export

OCFL = Export(
    "ocfl",
    "Write templates, files and datasets with all their versions as OCFL 1.1 objects.",
    ("sheaf export ocfl /archive/ocfl",),
    ELSEWHERE,
)
