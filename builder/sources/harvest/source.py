"""Harvests as a source of `sheaf ingest`: folders of `sheaf harvest`."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

from builder.errors import explaining
from builder.intake import intake
from builder.intake.captures import FAULT_CODES
from builder.intake.paths import STDIN
from builder.sources.harvest.errors import HarvestError
from builder.sources.source import (
    Claim,
    SourceInput,
    SourceReader,
    SourceReport,
    find_home,
    find_namespace,
)
from builder.store import workdir
from builder.store.context import Context


def claim(context: Context, inputs: Sequence[SourceInput]) -> Claim:
    """Take the folders that are harvests, or have harvests in them."""
    harvests = {source: find_harvests(source.name) for source in inputs}
    folders = list(dict.fromkeys(folder for inside in harvests.values() for folder in inside))
    rest = [source for source, inside in harvests.items() if not inside]
    return Claim(rest, partial(_aggregate, context, folders) if folders else None)


def find_harvests(source: str) -> tuple[Path, ...]:
    """Return the harvest folders at a source; an empty tuple if the source is anything else.

    Raises UsageError if the source cannot be read.
    """
    path = Path(source)
    with explaining(source, "read"):  # no permission, or a name that is too long
        if source == STDIN or not path.is_dir():
            return ()
        from builder.sources.harvest.folder import STATE

        if (path / STATE).is_file():
            return (path,)
    return tuple(sorted(state_file.parent for state_file in path.glob(f"*/{STATE}")))


def _aggregate(context: Context, folders: Sequence[Path]) -> SourceReport:
    """Read the new parts of harvests into the intake, or with --again all parts."""
    from builder.sources.harvest.ingest import DAMAGED, HarvestIngest
    from builder.sources.harvest.mirror import read_replica
    from builder.sources.harvest.repository import list_addresses
    from builder.sources.readings import find_readings
    from functions.oai.render import check

    configuration, namespace = context.configuration, find_namespace(context)
    replica = read_replica(configuration, context.store)
    formats, _ = check.open_formats(configuration)
    known_parts = () if context.arguments.again else find_readings(context.store)
    folder = workdir.folder_of(find_home(context), None)
    with workdir.open_workdir(folder) as work, work.scratch() as scratch:
        gathered = HarvestIngest(
            context.store,
            namespace,
            list_addresses(configuration),
            {reading for reading, *_ in known_parts},
            {row.prefix: row.namespace for row in formats.rows},
            scratch,
            intake.run_name(context.now()),
            replica,
        ).carry_out(folders)
    return SourceReport(
        gathered.text({row.prefix: row.crosswalks for row in formats.rows}),
        {"harvested": asdict(gathered)},
        faults=gathered.faults.total(),
        failed="" if gathered.is_whole else FAULT_CODES[DAMAGED],
    )


def _find_defaults(context: Context) -> Sequence[str]:
    """Return the harvests of configured repositories whose last lists are whole.

    Others keep what they had. One with a damaged state is left out, too.
    """
    from builder.sources.harvest import folder
    from builder.sources.harvest.repository import find_repository, list_addresses

    names, named = [], list_addresses(context.configuration)
    for path in find_harvests(str(find_harvest_home(context))) if named else ():
        with suppress(HarvestError):
            state = folder.read(path)
            if state and state.is_whole and find_repository(named, state.base_url).name:
                names.append(str(path))
    return names


def find_harvest_home(context: Context) -> Path:
    """Return the folder of what `sheaf update` harvests."""
    return context.configuration_path.parent / str(context.defaults["harvest.home"])


READER = SourceReader(claim, _find_defaults)
