"""Plan of an ingest that many processes or machines share: chunks of work, kept in the store.

Below the prefix of the run:

    plan.json             what to read, and how; written last
    plan-000000.jsonl     the first PAGE chunks, one a line: the splits to read together
    part-000000.json      the result of the first chunk (builder.ingest.parts)

Chunks are numbered from 0. The reader of one chunk reads `plan.json` and one page.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from builder.errors import UsageError
from builder.ingest import splits
from builder.ingest.split_reader import SplitResult
from builder.ingest.splits import ArchiveFile, Split, reader_version
from builder.intake import intake
from builder.sources.rules import DocumentRules, SetRule
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Reader, Writer

_VERSION = 4  # of the contents of a work folder
PAGE = 500
"""Chunks of a page: few, because each reader of a chunk reads the whole page."""


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
        """Return a text that identifies the job, whatever its files contain.

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
        """Return the key of an object of the run."""
        return layout.run_prefix(self.run) + name


@dataclass(frozen=True, slots=True)
class IngestPart:
    """Result of one chunk: that of each split, and the data files, named below the run's prefix.

    `changed` are the labels of files that changed while they were read.
    """

    results: tuple[SplitResult, ...]
    files: tuple[str, ...]
    changed: tuple[str, ...] = ()

    @property
    def captures(self) -> int:
        """Number of captures of all splits."""
        return sum(result.source.captures for result in self.results)

    def document(self) -> bytes:
        """Return the part as JSON."""
        results = [result.document() for result in self.results]
        found = {"results": results, "files": self.files, "changed": self.changed}
        return json.dumps(found).encode()


def split_file(file: ArchiveFile, most: int) -> tuple[Split, ...]:
    """Return the splits of a file: the whole, or its digest and ranges of at most `most` bytes."""
    ranges = splits.ranges(file, most)
    return (splits.digest(file), *ranges) if ranges else (Split(file),)


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
    every = [split for file in job.files for split in split_file(file, most)]
    chunks = list(splits.together(every, most))
    lines = [json.dumps([split.document() for split in chunk]) + "\n" for chunk in chunks]
    plan = IngestPlan(
        run, len(chunks), len(job.files), job.bytes, job.sets, job.rules, reader_version(),
        hashlib.sha256("".join(lines).encode()).hexdigest(),
    )  # fmt: skip
    if found := _find_equal(store, plan):
        return found
    for first in range(0, len(chunks), PAGE):
        store.put(plan.key(_page(first)), BytesIO("".join(lines[first : first + PAGE]).encode()))
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
                found = read_plan(store, run)
                if found == replace(plan, run=run):
                    return found
    return None


def read_plan(store: Reader, run: str) -> IngestPlan:
    """Return the plan of a run. Raises UsageError if there is none, and StoreError."""
    key = layout.run_prefix(run) + layout.PLAN
    try:
        found = json.loads(store.read(key))
        rules = found.pop("rules")
        some = tuple(SetRule(**_tuples(rule)) for rule in rules.pop("set_rules"))
        return IngestPlan(
            **{
                **_tuples(found),
                "rules": DocumentRules(**{**_tuples(rules), "set_rules": some}),
            }
        )
    except MissingObject:
        raise UsageError(
            f"there is no run {run} to go on with in {store.address}: it was published, or "
            "`sheaf ingest plan` prints another name"
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedStore(f"{key} is damaged: {error!r}; plan again") from error


def read_chunk(store: Reader, plan: IngestPlan, index: int) -> tuple[Split, ...]:
    """Return the splits of a chunk. Raises UsageError if there is none, and StoreError."""
    if not 0 <= index < plan.chunks:
        raise UsageError(f"--index {index}: expected a number from 0 to {plan.chunks - 1}")
    page = index // PAGE * PAGE
    return _parse(store.read(plan.key(_page(page))).splitlines()[index - page])


def read_chunks(store: Reader, plan: IngestPlan) -> Iterator[tuple[Split, ...]]:
    """Yield the splits of all chunks, in order."""
    for first in range(0, plan.chunks, PAGE):
        for line in store.read(plan.key(_page(first))).splitlines():
            yield _parse(line)


def find_part(store: Writer, plan: IngestPlan, index: int) -> IngestPart | None:
    """Return the part of a chunk, None if it was not written yet. Raises StoreError."""
    key = plan.key(part_name(index))
    try:
        found = json.loads(store.read(key))
        results = tuple(SplitResult.of(one, Path(part_name(index))) for one in found["results"])
        return IngestPart(results, tuple(found["files"]), tuple(found["changed"]))
    except MissingObject:
        return None
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedStore(f"{key} is damaged: {error!r}; remove it, and read it again") from error


def part_name(index: int) -> str:
    """Return the name of a part's object below the run's prefix."""
    return f"part-{index:06}.json"


def _parse(line: bytes) -> tuple[Split, ...]:
    return tuple(Split.of(document) for document in json.loads(line))


def _page(first: int) -> str:
    return f"plan-{first:06}.jsonl"


def _tuples(document: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in document.items()}
