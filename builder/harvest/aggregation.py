"""Aggregation of harvested folders, as `sheaf ingest` carries it out."""

from collections.abc import Sequence
from pathlib import Path

from builder.context import Context
from builder.harvest import ingest
from builder.harvest.ingest import Gathered
from builder.ingest import workdir
from builder.intake import intake
from builder.publish.harvested import KIND
from functions.oai.render import check


def aggregate(context: Context, folders: Sequence[Path], home: Path) -> Gathered:
    """Read the harvested records into the intake; `home` is for unfinished files."""
    namespace = str(context.configuration["repository.namespace"])
    with workdir.open_workdir(workdir.folder_of(home, None)) as held:
        with held.scratch() as scratch:
            name = intake.run_name(context.now())
            gathered = ingest.ingest(context.store, folders, namespace, scratch, name)
        held.remove()
    return gathered


def list_offered(context: Context) -> frozenset[str]:
    """Return the prefixes of the formats that harvested items are offered in."""
    formats, _ = check.open_formats(context.configuration)
    return frozenset(row.prefix for row in formats.of_kind(KIND))
