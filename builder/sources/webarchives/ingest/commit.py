"""Commit of an ingest by many machines: one run of intake from all parts in the store.

It is apart from the parts, whose readers need no DuckDB.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from builder.errors import UsageError
from builder.intake import intake
from builder.sources.webarchives.ingest.join import FileJoin, connect
from builder.sources.webarchives.ingest.parts import list_missing, write_part
from builder.sources.webarchives.ingest.plan import (
    IngestPart,
    IngestPlan,
    SplitResult,
    find_part,
    part_name,
)
from builder.sources.webarchives.ingest.result import IngestResult
from builder.sources.webarchives.ingest.splits import ArchiveFile, Split
from builder.sources.webarchives.remote.files import SourceAccess
from builder.store.durable import writing
from builder.threads import map_in_order
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Writer

_THREADS = 32  # that read the results of parts, each a small object
_NAMED = 5  # missing parts


def check_parts(store: Writer, plan: IngestPlan) -> None:
    """Raise UsageError, which names some, if parts of a run are missing. Raises StoreError."""
    if missing := list_missing(store, plan):
        listed = ", ".join(map(str, missing[:_NAMED])) + (" and more" if missing[_NAMED:] else "")
        raise UsageError(
            f"{len(missing):,} of {plan.chunks:,} parts of run {plan.run} are missing: {listed}. "
            f"Run `sheaf ingest part --run {plan.run} --index {missing[0]}`, or the state machine "
            f'again with {{"run": "{plan.run}"}}'
        )


def commit(
    store: Writer,
    plan: IngestPlan,
    folder: Path,
    say: Callable[[str], None],
    connection: SourceAccess | None = None,
) -> IngestResult:
    """Commit all parts in the store as one run of intake; `folder` holds unfinished files.

    Raises UsageError if a part is missing, and StoreError.
    """
    check_parts(store, plan)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)

    def find(index: int) -> IngestPart:
        part = find_part(store, plan, index)
        if part is None:
            raise DamagedStore(f"{plan.key(part_name(index))} was removed during the commit")
        return part

    def reread(torn: Mapping[int, ArchiveFile]) -> Iterator[SplitResult]:
        for number, file in torn.items():
            index = plan.chunks + number  # no chunk of the plan has it
            part = find_part(store, plan, index) or write_part(
                store, plan, index, (Split(file),), folder, connection
            )
            yield from part.results

    with closing(connect(folder, 1)) as database:
        joined = FileJoin(store, plan, database, say)
        parts = map_in_order(find, range(plan.chunks), _THREADS, 2 * _THREADS)
        joined.join((result for part in parts for result in part.results), reread)
        names = tuple(joined.place(store, folder))
    run = intake.IntakeRun(plan.run, tuple(joined.sources()), parts=names)
    intake.commit(store, run, folder, ())
    return IngestResult(run, tuple(joined.whole))
