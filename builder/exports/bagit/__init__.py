"""BagIt 1.0 (RFC 8493): folders for transfer."""

from builder.exports.export_row import ELSEWHERE, Export

BAGIT = Export(
    "bagit",
    "Write a BagIt bag for each run, and each version of a dataset.",
    ("sheaf export bagit /archive/bags", "sheaf export bagit bags --set platform:zenodo"),
    ELSEWHERE,
)
