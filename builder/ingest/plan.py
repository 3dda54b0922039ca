"""Plan of an ingest that many processes or machines share: chunks of work, kept in the store.

Below the prefix of the run:

    plan.json             what to read, and how; written last
    plan-000000.jsonl     the first PAGE chunks, one a line: the splits to read together
    part-000000.json      the result of the first chunk (builder.ingest.parts)

Chunks are numbered from 0. The reader of one chunk reads `plan.json` and one page.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from typing import Any

from builder.errors import UsageError
from builder.ingest import splits
from builder.ingest.ingest import IngestJob
from builder.ingest.splits import ArchiveFile, Split
from builder.sources import identity
from builder.sources.rules import DocumentRules, SetRule
from functions import distribution
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Reader, Writer

PAGE = 500
"""Chunks of a page: few, because each reader of a chunk reads the whole page."""


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


def reader_version() -> tuple[str, ...]:
    """Return the versions of what reads archives here."""
    return distribution.version(), identity.suffix_list_version()


def split_file(file: ArchiveFile, most: int) -> tuple[Split, ...]:
    """Return the splits of a file: the whole, or its digest and ranges of at most `most` bytes."""
    ranges = splits.ranges(file, most)
    return (splits.digest(file), *ranges) if ranges else (Split(file),)


def write_plan(store: Writer, run: str, job: IngestJob, most: int) -> IngestPlan:
    """Write the plan of a job, in chunks of about `most` bytes, and return it.

    If a run of an equal plan is not committed yet, its plan is returned instead. Raises StoreError.
    """
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


def _parse(line: bytes) -> tuple[Split, ...]:
    return tuple(Split.of(document) for document in json.loads(line))


def _page(first: int) -> str:
    return f"plan-{first:06}.jsonl"


def _tuples(document: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in document.items()}
