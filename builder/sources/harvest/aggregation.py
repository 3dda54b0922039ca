"""Aggregation of harvested folders, as `sheaf ingest` carries it out."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from builder.intake import intake
from builder.sources.harvest.ingest import Gathered, HarvestIngest
from builder.sources.redif.read_files import find_readings
from builder.store import workdir
from builder.store.context import Context
from functions.oai.render import check


def aggregate(context: Context, folders: Sequence[Path], home: Path, *, again: bool) -> Gathered:
    """Read the new parts of harvests into the intake; `home` is for unfinished files.

    With `again`, parts that were ingested before are read, too.
    """
    configuration = context.configuration
    formats, _ = check.open_formats(configuration)
    readings = set() if again else {reading for reading, *_ in find_readings(context.store)}
    work = HarvestIngest(
        context.store,
        str(configuration["repository.namespace"]),
        configuration["harvest.repositories"],
        readings,
        {row.prefix: row.namespace for row in formats.rows},
    )
    with workdir.open_workdir(workdir.folder_of(home, None)) as folder:
        with folder.scratch() as scratch:
            gathered = work.carry_out(folders, scratch, intake.run_name(context.now()))
        folder.remove()
    return gathered


def list_offered(context: Context) -> Mapping[str, Mapping[str, str]]:
    """Return the crosswalks of the offered formats, by prefix."""
    formats, _ = check.open_formats(context.configuration)
    return {row.prefix: row.crosswalks for row in formats.rows}
