"""The kind of datasets."""

from builder.kinds.datasets import filesets
from builder.kinds.kind import Kind

DATASETS = Kind(
    revise=filesets.revise,
    scrub=filesets.clear_withdrawn_results,
    reinstate=filesets.rewrite_files,
    shows=filesets.shows,
)
