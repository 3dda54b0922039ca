"""The kind of datasets."""

from builder.kinds.datasets import filesets, stored
from builder.kinds.datasets.verify import FilesetAudit
from builder.kinds.kind import Kind
from functions.kinds import WITH_FILES

DATASETS = Kind(
    WITH_FILES,
    revise=filesets.revise,
    scrub=filesets.clear_withdrawn_results,
    reinstate=filesets.rewrite_files,
    shows=filesets.shows,
    verify=FilesetAudit.begin,
    copied=stored.PLACES,
    list_copied=stored.list_datasets,
    counted=("datasets", "dataset", "datasets"),
)
