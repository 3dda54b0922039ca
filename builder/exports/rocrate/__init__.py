"""RO-Crate: folders of datasets with a description in JSON-LD."""

from builder.exports.export_row import ELSEWHERE, Export

ROCRATE = Export(
    "rocrate",
    "Write a folder with an RO-Crate for each version of a dataset.",
    ("sheaf export rocrate crates/ --dataset 10.5281/zenodo.7078725",),
    ELSEWHERE,
)
