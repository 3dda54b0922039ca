"""Verify: reads a whole store, checks its consistency, and repairs damaged objects.

It reads every kept snapshot, and each data file once. Then it reads the obi store's runs and the
stored files of datasets, the dumps and the Iceberg tables. Objects that were retired meanwhile are
not damage. The manifest and its leaves determine views.sql exactly. Pointer and witness follow from
each other and from the snapshots, unless one of them names a missing snapshot.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from builder.obi.history import history
from builder.outputs import OUTPUTS
from builder.outputs.output import OutputAudit
from builder.publish.purge import purge_findings
from builder.runtime import Advance
from builder.snapshot import recovery
from builder.snapshot.commit import instant_line
from builder.store.findings import DAMAGE, Finding
from builder.store.web_store import WebStore
from builder.verify import obi_history
from builder.verify.choice import Sample, StorePart, choose_keys, make_rule
from builder.verify.data_files import DataFileIndex
from builder.verify.figures import figure_findings
from builder.verify.filesets import FilesetAudit as Datasets
from builder.verify.identity import identity_findings
from builder.verify.inventory import Inventory, leftovers
from builder.verify.obi import ObiAudit
from builder.verify.obi_publishes import publish_findings
from builder.verify.tables import PROVED, TableChecks
from builder.verify.words import word_findings
from functions.database import engine
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, DamagedStore, MissingObject
from functions.snapshot.manifest import DataFile
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_REPAIRED = frozenset({"views-missing", "views-damaged"})
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
    inventory.findings = [
        _rewrite_views(store, inventory, finding) if finding.code in _REPAIRED else finding
        for finding in inventory.findings
    ]


def _rewrite_views(store: Writer, inventory: Inventory, finding: Finding) -> Finding:
    key = finding.object
    number = layout.snapshot_of(key)
    assert number is not None
    try:
        contents = inventory.read_snapshot(number)
        if not contents.whole or Catalogue(store).pointer().is_retired(number):
            return finding
    except (DamagedStore, MissingObject):
        return finding  # another finding reports it
    store.replace(key, contents.views().encode(), store.tag(key))
    return Finding("views-repaired", key, f"{finding.problem}; it was rewritten")


@dataclass(frozen=True, slots=True)
class VerifyRuntime:
    """Injected dependencies and limits: clock, progress by bytes, memory in megabytes, threads."""

    clock: Callable[[], datetime]
    progress: Callable[[int], AbstractContextManager[Advance]]
    memory: int
    threads: int


@dataclass(frozen=True, slots=True)
class Trusted:
    """What a person trusts of a signed log: verifier keys, and an earlier checkpoint, as texts."""

    keys: Sequence[str] | None = None
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """Report: snapshots, data files that should exist, and files and bytes that were read.

    For the obi store: runs, objects that should exist, and objects read. For datasets: places,
    objects that should exist, and objects read.
    """

    snapshots: tuple[int, ...]
    files: int
    read: int
    bytes: int
    findings: tuple[Finding, ...]
    runs: int = 0
    objects: int = 0
    objects_read: int = 0
    datasets: int = 0
    kept: int = 0
    kept_read: int = 0

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
    trusted: Trusted = Trusted(),
) -> Verified:
    """Check the store and return the report; with `choice`, only some objects are read.

    With `repair`, objects that the rest of the store determines are written again. At a web
    address, only what snapshots name is checked. Raises NewerSchema, and StoreError if the store
    cannot be read or scratch space runs out.
    """
    inventory = _take_inventory(store, runtime, newest_only=newest_only, repair=repair)
    rule = make_rule(choice)
    listed = not isinstance(store, WebStore)
    less = newest_only or not listed
    obi = ObiAudit.none(store) if less else ObiAudit.begin(store, rule)
    datasets = Datasets.none(store) if less else Datasets.begin(store, rule)
    files = inventory.files()
    findings = [*inventory.findings, *_sizes(store, files)]
    lacking = {finding.object for finding in findings}
    findings += identity_findings(store, inventory, lacking)
    chosen = choose_keys(sorted(files.keys() - lacking), choice)
    size = sum(files[key][1].bytes for key in chosen)
    with _database(runtime) as database:
        evidence = DataFileIndex(*database)
        evidence.broken |= lacking
        with runtime.progress(size + obi.bytes + datasets.bytes) as advance:
            for key in chosen:
                findings += evidence.add(store, *files[key], advance, keep=choice is None)
            obi.finish(advance)
            datasets.finish(advance)
        if choice is None:
            findings += _check_tables(evidence, inventory)
    if choice is None and listed:
        findings += _rebuilt(store, inventory, runtime)
    findings = [*_lasting(store, inventory, findings), *obi.findings]
    if not less:
        findings += _check_datasets(store, inventory, runtime, datasets)
        findings += [*datasets.findings, *publish_findings(store, runtime.clock())]
        findings += purge_findings(store)
    audited = (store, inventory, runtime, choice, rule)
    findings = _add_outputs(findings, *audited, trusted, listed=not less)
    findings += _list_rest(store, inventory, runtime, newest_only=newest_only)
    return Verified(
        tuple(inventory.numbers),
        len(files),
        len(chosen),
        size,
        tuple(dict.fromkeys(findings)),
        len(obi.chain.runs),
        obi.objects,
        obi.read,
        datasets.places,
        datasets.objects,
        datasets.read,
    )


def _take_inventory(
    store: Writer, runtime: VerifyRuntime, *, newest_only: bool, repair: bool
) -> Inventory:
    """Return what the store lists, after the repairs, which are among its findings."""
    notes = repair_pointer(store) if repair else []
    inventory = Inventory.take(store, runtime.clock(), newest_only=newest_only)
    if repair:
        repair_views(store, inventory)
        inventory.findings[:0] = notes
    return inventory


def _add_outputs(
    findings: Sequence[Finding],
    store: Writer,
    inventory: Inventory,
    runtime: VerifyRuntime,
    choice: Sample | StorePart | None,
    rule: Callable[[str], bool],
    trusted: Trusted,
    *,
    listed: bool,
) -> list[Finding]:
    """Add the findings on the outputs, which say more than that a part of the store is missing."""
    audit = OutputAudit(
        store,
        inventory.pointer,
        runtime.clock(),
        rule,
        listed=listed,
        rows=choice is None and not any(finding.kind == DAMAGE for finding in findings),
        open_database=partial(_database, runtime),
        keys=trusted.keys,
        checkpoint=trusted.checkpoint,
    )
    of_outputs = [finding for output in OUTPUTS for finding in output.verify(audit)]
    places = {finding.object for finding in of_outputs}
    others = (f for f in findings if f.code != "part-missing" or f.object not in places)
    return [*others, *of_outputs]


def _list_rest(
    store: Writer, inventory: Inventory, runtime: VerifyRuntime, *, newest_only: bool
) -> Iterable[Finding]:
    """Return what no snapshot needs; a web address cannot be listed."""
    if isinstance(store, WebStore):
        return [Finding("unlisted", store.address, "a web address has no listing")]
    whole = inventory.complete and not newest_only
    return leftovers(store, inventory.names() if whole else None, runtime.clock())


@contextmanager
def _database(runtime: VerifyRuntime) -> Iterator[tuple[engine.Connection, Path]]:
    with tempfile.TemporaryDirectory(prefix="sheaf-verify-") as scratch:
        connection = engine.connect(
            threads=runtime.threads, memory_megabytes=runtime.memory, scratch=Path(scratch)
        )
        try:
            yield connection, Path(scratch)
        finally:
            connection.close()


def _rebuilt(store: Writer, inventory: Inventory, runtime: VerifyRuntime) -> Iterator[Finding]:
    """Check the obi store's tables in the newest sound snapshot against the logs of its runs."""
    number = max(inventory.sound(), default=None)
    try:
        manifest = number and inventory.read_snapshot(number).manifest
        if not manifest or not manifest.run:
            return
        runs = history(store)
        with _database(runtime) as (connection, scratch):
            yield from obi_history.table_findings(store, manifest, runs, connection, scratch)
    except (DamagedStore, MissingObject) as error:
        yield Finding("obi-tables", layout.manifest_key(number or 0), str(error))


def _check_datasets(
    store: Writer, inventory: Inventory, runtime: VerifyRuntime, datasets: Datasets
) -> Iterator[Finding]:
    """Check the stored files of datasets that the newest sound snapshot lists."""
    number = max(inventory.sound(), default=None)
    if number is None:
        return
    try:
        paths = [
            str(store.local(file.key)) for file in inventory.read_snapshot(number).files("files")
        ]
        if paths:
            with _database(runtime) as (connection, _):
                yield from datasets.check_listed(connection, paths)
    except (DamagedStore, MissingObject):
        return  # reported with the snapshot's own files


def _sizes(store: Writer, files: Mapping[str, tuple[str, DataFile]]) -> Iterator[Finding]:
    """Check by a listing that every data file exists and has its size."""
    there = {e.key: e.bytes for e in store.entries(layout.RECORDS) if e.key in files}
    for key, (_, file) in files.items():
        if key not in there:
            yield Finding("file-missing", key, "a kept snapshot names it, but it does not exist")
        elif there[key] != file.bytes:
            problem = f"it has {there[key]:,} bytes, but {file.bytes:,} in its leaf"
            yield Finding("file-size", key, problem)


def _check_tables(evidence: DataFileIndex, inventory: Inventory) -> Iterator[Finding]:
    """Check the tables of every sound snapshot; shared files are in the index only once."""
    for number in inventory.sound():
        key = layout.manifest_key(number)
        try:
            contents = inventory.read_snapshot(number)
        except MissingObject:
            yield Finding("manifest-missing", key, "it was removed during the check")
            continue
        except DamagedStore as error:
            yield Finding("manifest-damaged", key, str(error))
            continue
        proved = contents.files(*PROVED, layout.WORDS)
        if not contents.whole or any(file.key in evidence.broken for file in proved):
            yield Finding(
                "unchecked", key, "its listings were not checked, as files of it are damaged"
            )
            continue
        yield from TableChecks(evidence, contents).findings()
        yield from figure_findings(evidence, contents)
        yield from word_findings(evidence.connection, evidence.keys, contents)


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
