"""OAI-PMH harvester: copies the records of any OAI-PMH 2.0 repository to disk and updates them."""

from builder.sources.source import Source

HARVEST = Source(
    __name__,
    "folders of these, or of `sheaf harvest`",
    noun=("harvested record",),
    count=lambda run: run.harvested,
)
