"""Fileset ingest: reads requests for datasets, stores verified files, and writes results."""

from builder.sources.source import Source

DATASETS = Source(
    __name__,
    noun=("result of datasets", "results of datasets"),
    count=lambda run: run.results,
    key="results",
)
