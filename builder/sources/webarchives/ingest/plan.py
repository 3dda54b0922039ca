"""Plan of an ingest that many processes or machines share: chunks of work, kept in the store.

Below the prefix of the run:

    plan.json             what to read, and how; written last
    plan-000000.jsonl     the first PAGE chunks, one a line: the splits to read together
    part-000000.json      the result of the first chunk (builder.sources.webarchives.ingest.parts)

Chunks are numbered from 0. The reader of one chunk reads `plan.json` and one page.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from io import BytesIO
from pathlib import Path

from builder.errors import UsageError
from builder.intake import intake
from builder.sources.webarchives.backlog import ExchangeRecord
from builder.sources.webarchives.events import Edge
from builder.sources.webarchives.ingest import splits
from builder.sources.webarchives.ingest.splits import ArchiveFile, Split, reader_version
from builder.sources.webarchives.rules import DocumentRules
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.seal import build, check_seal, refuse_damage, seal
from functions.snapshot.store import Reader, Writer

_VERSION = 6  # of the contents of a work folder
LARGEST = 4096
"""Megabytes of a chunk at most: 9 minutes of a function on Lambda, whose limit is 15."""
PAGE = 500
"""Chunks of a page: few, because each reader of a chunk reads the whole page."""
_PAGE_NAME = "plan-{:06}.jsonl"
PART = "000000"
"""The name of a part's files, as rows.IntakeWriter has it."""


@dataclass(frozen=True, slots=True)
class IngestJob:
    """Job of an ingest: the files, the sets of all captures, and the rules for documents."""

    files: tuple[ArchiveFile, ...]
    sets: tuple[str, ...]
    rules: DocumentRules

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in self.files)

    def fingerprint(self, sources: Sequence[str], store: str) -> str:
        """Return a text that identifies the job, but not the content of its files.

        It includes the version of the reader.
        """
        columns = [(c.name, c.type) for table in intake.TABLES.values() for c in table]
        versions = [_VERSION, *reader_version()]
        places = [s if "://" in s else str(Path(s).absolute()) for s in sources]
        return json.dumps([versions, columns, store, places, self.sets, repr(self.rules)])


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """How to read the chunks of a run: the sets of all captures, and the rules for documents.

    `reader` names the versions that decide what a file yields; all parts need the same.
    """

    run: str
    chunks: int
    files: int
    bytes: int
    sets: tuple[str, ...]
    rules: DocumentRules
    reader: tuple[str, ...]
    digest: str
    """SHA-256 of all pages: an equal plan has the same files and chunks."""

    def key(self, name: str) -> str:
        """Return the key of an object of the run, or of a folder that has nothing else."""
        return layout.run_prefix(self.run) + name if self.run else name


@dataclass(frozen=True, slots=True)
class SplitResult:
    """Result of one split: counts, and the spans of its rows in its part's captures and faults.

    `part` is the name of the folder with the part's rows. Those of an index are in files of its
    `own` there.
    `first` and `next` are the boundaries at which a range's records begin and end (offset, and ARC
    version). They prove that neighbouring ranges leave no gap. `near` joins records over them.
    """

    split: Split
    source: intake.IntakeSource
    part: str
    changed: bool = False
    """Whether the file changed while it was read."""
    captures_at: int = 0
    faults_at: int = 0
    first: Edge | None = None
    next: Edge | None = None
    near: tuple[ExchangeRecord, ...] = ()
    own: tuple[str, ...] = ()

    def file(self, table: str) -> str:
        """Return the name of the file with the rows of `table`, if there are any."""
        return f"{self.part}/{table}-{PART}.parquet"

    def files(self) -> tuple[str, ...]:
        """Return the names of all files with its rows."""
        if self.own:
            return tuple(f"{self.part}/{name}" for name in self.own)
        tables = ("captures", "faults")
        return tuple(self.file(table) for table in tables if getattr(self.source, table))


@dataclass(frozen=True, slots=True)
class IngestPart:
    """Result of one chunk: that of each split."""

    results: tuple[SplitResult, ...]
    digests: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each data file, by its name."""

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the data files below the run's prefix."""
        return tuple(dict.fromkeys(name for result in self.results for name in result.files()))

    @property
    def captures(self) -> int:
        """Number of captures of all splits."""
        return sum(result.source.captures for result in self.results)

    def document(self) -> bytes:
        """Return the part as JSON."""
        results = [{**asdict(each), "split": each.split.document()} for each in self.results]
        return seal(json.dumps({"results": results, "digests": dict(self.digests)}).encode())


def make_plan(run: str, job: IngestJob, chunks: int = 0, digest: str = "") -> IngestPlan:
    """Return the plan of a job. A plan that is not stored needs no run, chunks and digest."""
    return IngestPlan(
        run, chunks, len(job.files), job.bytes, job.sets, job.rules, reader_version(), digest
    )


def write_plan(store: Writer, run: str, job: IngestJob, most: int) -> IngestPlan:
    """Write the plan of a job, in chunks of about `most` bytes, and return it.

    If a run of an equal plan is not committed yet, its plan is returned instead. Raises UsageError
    for URLs with secrets, which a plan would store, and StoreError.
    """
    if signed := [file.label for file in job.files if file.address not in ("", file.label)]:
        raise UsageError(
            f"{signed[0]} was given with a secret, which a plan would keep in the store: ingest "
            "signed URLs without parts and engines"
        )
    every = [split for file in job.files for split in splits.split_file(file, most)]
    chunks = list(splits.together(every, most))
    lines = [json.dumps([split.document() for split in chunk]) + "\n" for chunk in chunks]
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    plan = make_plan(run, job, len(chunks), digest)
    if equal := _find_equal(store, plan):
        return equal
    for first in range(0, len(chunks), PAGE):
        store.put(
            plan.key(_PAGE_NAME.format(first)),
            BytesIO("".join(lines[first : first + PAGE]).encode()),
        )
    store.create(plan.key(layout.PLAN), json.dumps(asdict(plan), indent=1).encode())
    return plan


def _find_equal(store: Writer, plan: IngestPlan) -> IngestPlan | None:
    """Return the plan of the newest uncommitted run that is equal but for its name."""
    keys = set(store.keys(layout.INTAKE))
    for key in sorted(keys, reverse=True):
        run = key.split("/")[1]
        prefix = layout.run_prefix(run)
        if key == prefix + layout.PLAN and prefix + layout.RUN_SUMMARY not in keys:
            with suppress(UsageError, DamagedStore):  # removed meanwhile, or of another version
                earlier = read_plan(store, run)
                if earlier == replace(plan, run=run):
                    return earlier
    return None


def read_plan(store: Reader, run: str) -> IngestPlan:
    """Return the plan of a run. Raises UsageError if there is none, and StoreError."""
    key = layout.run_prefix(run) + layout.PLAN
    try:
        with refuse_damage(key, "plan again"):
            return build(IngestPlan, json.loads(store.read(key)))
    except MissingObject:
        raise UsageError(
            f"there is no run {run} to go on with in {store.address}: it was published, or "
            "`sheaf ingest plan` prints another name"
        ) from None


def read_chunk(store: Reader, plan: IngestPlan, index: int) -> tuple[Split, ...]:
    """Return the splits of a chunk. Raises UsageError if there is none, and StoreError."""
    if not 0 <= index < plan.chunks:
        raise UsageError(f"--index {index}: expected a number from 0 to {plan.chunks - 1}")
    page = index // PAGE * PAGE
    line = store.read(plan.key(_PAGE_NAME.format(page))).splitlines()[index - page]
    return build(tuple[Split, ...], json.loads(line))


def find_part(store: Reader, plan: IngestPlan, index: int) -> IngestPart | None:
    """Return the part of a chunk, None if it was not written yet. Raises StoreError."""
    key = plan.key(part_name(index))
    try:
        data = store.read(key)
    except MissingObject:
        return None
    with refuse_damage(key, "remove it, and read it again"):
        check_seal(data)
        return build(IngestPart, json.loads(data))


def part_name(index: int) -> str:
    """Return the name of a part's object below the run's prefix."""
    return f"part-{index:06}.json"
