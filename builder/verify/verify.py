"""Verify: reads a whole store, checks its consistency, and repairs damaged objects.

It reads every kept snapshot, and each data file once: its name is the digest of its bytes, so that
the rows are those that were published. Then it reads what kinds keep beside their
records, and the outputs. Objects that were retired meanwhile are not damage. The manifest and its
leaves determine views.sql exactly. Pointer and witness follow from each other and from the
snapshots, unless one of them names a missing snapshot.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from builder.kinds import KINDS
from builder.kinds.kind import KindAudit
from builder.outputs import OUTPUTS
from builder.progress import enter_phase
from builder.runtime import Advance
from builder.snapshot import recovery
from builder.snapshot.audit import StoreAudit
from builder.snapshot.commit import instant_line
from builder.store.durable import digest_object
from builder.store.findings import DAMAGE, Finding
from builder.store.web_store import WebStore
from builder.verify.choice import Sample, StorePart, choose_keys
from builder.verify.identity import identity_findings
from builder.verify.inventory import Inventory, leftovers
from builder.verify.obi_publishes import publish_findings
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, DamagedStore, MissingObject
from functions.snapshot.manifest import DataFile
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue

_PASSING = ("pointer-behind", "pointer-foreign", "witness-ahead", "witness-behind")
"""Findings that a concurrent publish can cause."""


def repair_pointer(store: Writer) -> list[Finding]:
    """Rewrite a pointer or a witness that contradicts the store; return a note for each.

    Raises Conflict if another process publishes meanwhile, and StoreError.
    """
    notes: list[Finding] = []
    for _ in layout.POINTER, layout.WITNESS:  # a lost witness is found once the pointer is right
        tags = {key: store.tag(key) for key in (layout.POINTER, layout.WITNESS)}
        repair = recovery.find_repair(store)
        if repair is None:
            break
        finding, data = repair
        store.replace(finding.object, data, tags[finding.object])
        code = f"{finding.code.partition('-')[0]}-repaired"
        notes.append(Finding(code, finding.object, f"{finding.problem}; it was rewritten"))
    try:
        pointer, _ = recovery.current(store)
    except DamagedStore:  # no repair: the check names it
        return notes
    newest = pointer.newest()
    # Beside the snapshot, it remains if the pointer is lost again.
    if newest is not None and pointer.settled:
        with suppress(Conflict):  # it is there
            store.create(layout.settled_key(newest.snapshot), instant_line(newest.effective))
    return notes


def repair_views(store: Writer, inventory: Inventory) -> None:
    """Rewrite damaged views; the finding on each repaired object becomes a note.

    Views do not change if the manifest is damaged or lacks a leaf. Raises StoreError.
    """
    for place, finding in enumerate(inventory.findings):
        number = layout.snapshot_of(finding.object)
        if finding.code not in {"views-missing", "views-damaged"} or number is None:
            continue
        with suppress(DamagedStore, MissingObject):  # another finding reports it
            contents = inventory.read_snapshot(number)
            if contents.whole and not Catalogue(store).pointer().is_retired(number):
                store.replace(finding.object, contents.views().encode(), store.tag(finding.object))
                problem = f"{finding.problem}; it was rewritten"
                inventory.findings[place] = Finding("views-repaired", finding.object, problem)


@dataclass(frozen=True, slots=True)
class VerifyRuntime:
    """Injected dependencies and limits: clock, progress by bytes, memory in megabytes, threads."""

    clock: Callable[[], datetime]
    progress: Callable[[int], AbstractContextManager[Advance]]
    memory: int
    threads: int


@dataclass(frozen=True, slots=True)
class Verified:
    """Report: snapshots, data files that should exist, and files and bytes that were read.

    `kinds` tell what was checked beside the snapshots.
    """

    snapshots: tuple[int, ...]
    files: int
    read: int
    bytes: int
    findings: tuple[Finding, ...]
    kinds: Sequence[KindAudit] = ()

    @property
    def damaged(self) -> bool:
        """True if any finding is damage."""
        return any(finding.kind == DAMAGE for finding in self.findings)


def verify(
    store: Writer,
    runtime: VerifyRuntime,
    *,
    newest_only: bool = False,
    choice: Sample | StorePart | None = None,
    repair: bool = False,
    keys: Sequence[str] | None = None,
    checkpoint: str | None = None,
) -> Verified:
    """Check the store and return the report; with `choice`, only some objects are read.

    With `repair`, objects that the rest of the store determines are written again. `keys` and
    `checkpoint` are what a person trusts of a signed log, as texts. At a web address, only what
    snapshots name is checked. Raises NewerSchema, and StoreError if the store cannot be read or
    scratch space runs out.
    """
    notes = repair_pointer(store) if repair else []
    inventory = Inventory.take(store, runtime.clock(), newest_only=newest_only)
    if repair:
        repair_views(store, inventory)
        inventory.findings[:0] = notes
    audit = StoreAudit(
        store,
        inventory.pointer,
        runtime.clock(),
        (lambda key: True) if choice is None else choice.holds,
        listed=not newest_only and not isinstance(store, WebStore),
        rows=choice is None,
        open_database=partial(_database, runtime),
        newest=max(inventory.sound(), default=None),
        read_snapshot=inventory.read_snapshot,
        keys=keys,
        checkpoint=checkpoint,
    )
    audits = [kind.verify(audit) for kind in KINDS if kind.verify]
    files = inventory.files
    findings = [*inventory.findings, *_sizes(store, files)]
    lacking = {finding.object for finding in findings}
    findings += identity_findings(store, inventory, lacking)
    chosen = choose_keys(sorted(files.keys() - lacking), choice)
    size = sum(files[key].bytes for key in chosen)
    with runtime.progress(size + sum(check.bytes for check in audits)) as advance:
        enter_phase(advance, "data files")
        for key in chosen:
            findings += file_findings(store, key, advance)
        for check in audits:
            enter_phase(advance, check.nouns[1])
            check.finish(advance)
            findings += check.findings
        findings = _lasting(store, inventory, findings)
        enter_phase(advance, "log, tables, dumps and site")
        findings = _add_outputs(replace(audit, now=runtime.clock()), findings)
        enter_phase(advance, "leftovers")
        findings += leftovers(inventory, runtime.clock(), newest_only=newest_only)
    unique = tuple(dict.fromkeys(findings))
    return Verified(tuple(inventory.numbers), len(files), len(chosen), size, unique, audits)


def _add_outputs(audit: StoreAudit, findings: Sequence[Finding]) -> list[Finding]:
    """Add what is unfinished, and what is wrong with outputs, for which parts may be missing."""
    if audit.listed:
        problem = "items of it may still be in older snapshots"
        purges = [
            Finding("purge-unfinished", key, problem) for key in audit.store.keys(layout.PURGES)
        ]
        findings = [*findings, *publish_findings(audit.store, audit.now), *purges]
    of_outputs = [finding for output in OUTPUTS for finding in output.verify(audit)]
    places = {finding.object for finding in of_outputs}
    others = (f for f in findings if f.code != "part-missing" or f.object not in places)
    return [*others, *of_outputs]


@contextmanager
def _database(runtime: VerifyRuntime) -> Iterator[tuple[engine.Connection, Path]]:
    with (
        tempfile.TemporaryDirectory(prefix="sheaf-verify-") as scratch,
        engine.connect(
            threads=runtime.threads, memory_megabytes=runtime.memory, scratch=Path(scratch)
        ) as connection,
    ):
        yield connection, Path(scratch)


def _sizes(store: Writer, files: Mapping[str, DataFile]) -> Iterator[Finding]:
    """Check by a listing that every data file exists and has its size."""
    there = {e.key: e.bytes for e in store.entries(layout.RECORDS) if e.key in files}
    for key, file in files.items():
        if key not in there:
            yield Finding("file-missing", key, "a kept snapshot names it, but it does not exist")
        elif there[key] != file.bytes:
            problem = f"it has {there[key]:,} bytes, but {file.bytes:,} in its leaf"
            yield Finding("file-size", key, problem)


def file_findings(
    store: Writer, key: str, advance: Advance = lambda count: None
) -> Iterator[Finding]:
    """Read a data file and yield what is wrong with its bytes. Raises StoreError."""
    try:
        digest, size = digest_object(store, key, advance)
    except MissingObject:
        yield Finding("file-missing", key, "a kept snapshot names it")
        return
    except DamagedStore as error:
        yield Finding("file-unreadable", key, str(error))
        return
    if digest[:32] != layout.digest_of(key):
        yield Finding("file-digest", key, f"its {size:,} bytes do not match its name")


def _lasting(store: Writer, inventory: Inventory, findings: list[Finding]) -> list[Finding]:
    """Return the findings without damage caused by concurrent expiry or publishing."""
    if not any(finding.kind == DAMAGE for finding in findings):
        return findings
    try:
        now = Catalogue(store).pointer()
    except DamagedStore:
        return findings
    if now.newest() != inventory.pointer.newest():
        findings = [finding for finding in findings if finding.code not in _PASSING]
    gone = {number for number in inventory.numbers if now.is_retired(number)}
    doomed = inventory.names(gone) - inventory.names(set(inventory.numbers) - gone)
    return [f for f in findings if f.kind != DAMAGE or f.object not in doomed]
