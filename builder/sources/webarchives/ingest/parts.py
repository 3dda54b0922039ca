"""Parts of an ingest: the results of numbered chunks of splits.

The rows of a part are objects of their own. `part-NNNNNN.json` is written last and only once, and
makes them count. So a chunk may be read again, or twice at once: the first process to write that
object wins, and the others remove their rows.

An ingest by one machine keeps its parts in its work folder (`ingest`). One by many keeps plan
(`plan`) and parts in the store, where the commit makes one run of them.
"""

import hashlib
import os
import secrets
import shutil
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from builder.errors import UsageError
from builder.intake.pool import Advance
from builder.sources.webarchives.ingest.plan import (
    IngestPart,
    IngestPlan,
    find_part,
    part_name,
    read_chunk,
    read_plan,
)
from builder.sources.webarchives.ingest.split_reader import Task, carry_out
from builder.sources.webarchives.ingest.splits import Split, reader_version
from builder.store.durable import writing
from builder.store.s3 import open_store
from functions.config.configuration import Configuration
from functions.snapshot import layout
from functions.snapshot.errors import Conflict
from functions.snapshot.store import Writer


@dataclass(frozen=True, slots=True)
class PartTask:
    """What a machine needs to read parts of a run; the credentials are in its environment.

    `folder` is for unfinished files (None: the machine's own for temporary files).
    """

    store: str
    base: Path
    settings: Configuration
    run: str
    folder: Path | None = None


def read_part(
    store: Writer,
    plan: IngestPlan,
    index: int,
    folder: Path,
    settings: Configuration | None = None,
) -> IngestPart:
    """Read a chunk and write its part, unless it is there; `folder` holds unfinished files.

    Faults in the data are rows of the part. Raises UsageError for a number that the plan lacks or a
    reader of another version, and StoreError.
    """
    if plan.reader != reader_version():
        raise UsageError(
            f"run {plan.run} was planned by Sheaf and suffix list {' and '.join(plan.reader)}, but "
            f"these are {' and '.join(reader_version())}: use one version for all parts"
        )
    part = find_part(store, plan, index)
    if part is not None:
        return part
    return write_part(store, plan, index, read_chunk(store, plan, index), folder, settings)


def carry_out_part(task: PartTask, index: int, advance: Advance | None = None) -> int:
    """Read one chunk and return its number, without progress. Raises UsageError and StoreError."""
    home = task.folder or Path(tempfile.gettempdir())
    with closing(open_store(task.store, task.base, task.settings, os.environ)) as store:
        plan = read_plan(store, task.run)
        with writing(home):
            home.mkdir(parents=True, exist_ok=True)
            folder = tempfile.TemporaryDirectory(
                prefix="sheaf-part-", dir=home, ignore_cleanup_errors=True
            )
        with folder as name:
            read_part(store, plan, index, Path(name), task.settings)
    return index


def write_part(
    store: Writer,
    plan: IngestPlan,
    index: int,
    chunk: tuple[Split, ...],
    folder: Path,
    settings: Configuration | None = None,
    threads: int = 1,
    advance: Advance = lambda read, captures: None,
) -> IngestPart:
    """Read the splits of a chunk, and write their rows and then the part. Raises StoreError."""
    name = f"part-{index:06}-{secrets.token_hex(8)}"
    local = folder / name
    digests: dict[str, str] = {}
    try:
        task = Task(chunk, local, plan.sets, plan.rules, threads, settings)
        part = IngestPart(tuple(carry_out(task, advance)), digests)
        for key in part.files:
            path = folder / key
            with writing(path):
                with path.open("rb") as file:
                    digests[key] = hashlib.file_digest(file, "sha256").hexdigest()
                    file.seek(0)
                    store.put(plan.key(key), file)
                path.unlink(missing_ok=True)  # the rows of an index take much space
    finally:
        shutil.rmtree(local, ignore_errors=True)
    try:
        store.create(plan.key(part_name(index)), part.document())
    except Conflict:
        earlier = find_part(store, plan, index)
        if earlier is not None and earlier.files != part.files:  # else our own write arrived twice
            store.remove(*map(plan.key, part.files))
            return earlier
    return part


def list_missing(store: Writer, plan: IngestPlan) -> list[int]:
    """Return the numbers of the chunks whose part is not there.

    Raises UsageError if the run is committed.
    """
    there = set(store.keys(layout.run_prefix(plan.run)))
    if plan.key(layout.RUN_SUMMARY) in there:
        raise UsageError(f"run {plan.run} is committed already: run `sheaf publish`")
    return [n for n in range(plan.chunks) if plan.key(part_name(n)) not in there]
