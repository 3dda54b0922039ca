"""Intake: the runs that were ingested and are not published yet.

A run is written on the local disk and moved into the store when it is complete. Its summary comes
last, and only a run with a summary counts. So an interrupted run is never visible.
"""

import contextlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from builder.intake.lines import SUFFIX, LineWriter
from builder.store.durable import writing
from builder.threads import map_in_order
from functions.snapshot import item_tables, layout, schema
from functions.snapshot.errors import (
    RELEASE,
    VERSION,
    DamagedStore,
    MissingObject,
    OlderSchemaError,
    StoreError,
    check_version,
)
from functions.snapshot.manifest import MirrorOrigin
from functions.snapshot.seal import build, refuse_damage, to_values
from functions.snapshot.store import Writer

CAPTURES = (
    schema.Column("identity", "VARCHAR", "local part of the identifier", "k3j2..."),
    schema.Column("sets", "VARCHAR[]", "most specific sets, sorted", "[mime:text:html]"),
    *(column for column in schema.CAPTURE if column.name not in schema.RESOLVED),
)
FILESETS = (
    schema.Column("deed", "VARCHAR", "list, delete or leave the item", "list"),
    schema.Column("identity", "VARCHAR", "local part of the dataset's identifier", "dataset,..."),
    schema.Column("version_identity", "VARCHAR", "the same of its version", "dataset,zenodo,..."),
    schema.Column("kind", "VARCHAR", "fileset or file", "fileset"),
    schema.Column("sets", "VARCHAR[]", "most specific sets, sorted", "[platform:zenodo]"),
    schema.Column("document", "VARCHAR", "content of the item, as JSON", "{...}"),
    *(column for column in item_tables.RESULT if column.name != "identifier"),
)
TABLES = {
    "captures": CAPTURES,
    "faults": schema.FAULT,
    "sources": schema.SOURCE,
    "filesets": FILESETS,
    "harvested": item_tables.INTAKE,
    "set_names": item_tables.NAMES,
    "own_records": item_tables.OWN,
    "own_tables": item_tables.OWN_TABLES,
}
_LINES = frozenset({"sources", "filesets"})
"""The small tables, as JSON lines; the others are in Parquet."""

_THREADS = 32  # that fetch files: many runs have a small file each
_SUMMARIES = 64  # that are read at a time
_FEW = 4  # runs that are listed one by one: one listing also names runs that are not finished


@dataclass(frozen=True, slots=True)
class IntakeSource:
    """Result of one archive file: the columns of schema.SOURCE; `skips` counts by reason.

    `faults` counts rows; `codes` counts all faults by code, since an index may find more than it
    lists.
    `failed`: the file should have captures, but gave none or could not be read to its end, for
    which `problem` is the reason, if it is known.
    """

    source: str
    digest: str
    path: str
    format: str
    bytes: int
    captures: int
    skipped: int
    faults: int
    skips: Mapping[str, int]
    codes: Mapping[str, int]
    collections: tuple[str, ...] = ()
    software: str | None = None
    operator: str | None = None
    part_of: str | None = None
    description: str | None = None
    failed: bool = False
    reading: str | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class IntakeRun:
    """A finished run of `sheaf ingest`, or of `sheaf fileset`, which has results of requests.

    `harvested` counts the records that came from other repositories, `own` those of one's own.
    `parts` are the data files;
    runs of 0.2.0 name only those that many machines wrote. A `published` run is being removed.
    """

    name: str
    sources: tuple[IntakeSource, ...]
    results: int = 0
    harvested: int = 0
    own: int = 0
    parts: tuple[str, ...] = ()
    """Names below the run's prefix, such as part-000000-1f2e/captures-000000.parquet."""
    published: bool = False
    mended: tuple[str, ...] = ()
    """Sources that are gone, whose faults are over."""
    origin: MirrorOrigin | None = None
    """The state of the repository that the store replicates, if it does."""

    @property
    def keys(self) -> list[str]:
        """The keys of its parts."""
        return [layout.run_prefix(self.name) + part for part in self.parts]


def run_name(now: datetime) -> str:
    """Return a name for a run that begins now; no two runs get the same.

    The order of names is that of the runs, to the microsecond.
    """
    return f"{now:%Y%m%dT%H%M%SZ}-{now.microsecond:05x}{secrets.token_hex(3)}"


def part_path(folder: Path, table: str, name: str) -> Path:
    """Return the path in `folder` for the rows of `table` in a part of that name."""
    return folder / f"{table}-{name}{_suffix(table)}"


def _suffix(table: str) -> str:
    return SUFFIX if table in _LINES else ".parquet"


def commit(
    store: Writer, run: IntakeRun, folder: Path, parts: Iterable[tuple[str, Path]] | None = None
) -> None:
    """Move a run's files into the store; its summary, written last, makes it count.

    The files are those in `folder`, or `parts`, with their names. Parts in `folder` are created one
    by one on request, and removed after the move. Raises StoreError, and then removes the moved
    files: a full disk would stay full.
    """
    prefix = layout.run_prefix(run.name)
    needed = {prefix + name for name in run.parts}
    moved: list[str] = []
    own = sorted(folder.iterdir()) if parts is None else ()
    left = ((p.name, p) for p in own if p.name.endswith((".parquet", SUFFIX)))
    try:
        for name, path in left if parts is None else parts:
            moved.append(prefix + name)
            with writing(path), path.open("rb") as file:
                store.put(moved[-1], file)
            if parts is not None and path.parent == folder:
                path.unlink()
        gone = needed.union(moved).difference(store.keys(prefix))
        if gone:
            raise StoreError(f"{min(gone)} was removed during the ingest; ingest again")
        names = (key.removeprefix(prefix) for key in moved)
        whole = replace(run, parts=tuple(dict.fromkeys((*names, *run.parts))))
        store.create(prefix + layout.RUN_SUMMARY, summary(whole))
    except StoreError:
        with contextlib.suppress(StoreError):  # otherwise it is an orphan, which expires
            if store.tag(prefix + layout.RUN_SUMMARY) is None:
                store.remove(*moved)
        raise


def write_sources(finished: Iterable[IntakeRun], folder: Path) -> Path | None:
    """Write the rows of the runs' sources in a new file of lines; None if there are none."""
    rows = [source for run in finished for source in run.sources]
    if not rows:
        return None
    path = folder / f"sources{SUFFIX}"
    with writing(folder):
        writer = LineWriter(path, schema.SOURCE)
        for source in rows:
            writer.append(tuple(getattr(source, column.name) for column in schema.SOURCE))
        writer.close()
    return path


def summary(run: IntakeRun) -> bytes:
    """Return the summary document that makes a run count."""
    document = {"schema": VERSION, "sources": [asdict(s) for s in run.sources]}
    if run.results:
        document["results"] = run.results
    if run.harvested:
        document["harvested"] = run.harvested
    if run.own:
        document["own"] = run.own
    if run.mended:
        document["mended"] = run.mended
    if run.origin:
        document["origin"] = to_values(run.origin)
    if run.parts:
        document["parts"] = run.parts
    return json.dumps(document, indent=1).encode()


def runs(store: Writer) -> Iterator[IntakeRun]:
    """Yield the finished runs in the order of their names; published ones have only a name.

    Raises DamagedStore, NewerSchema or OlderSchemaError.
    """
    ends = ("/" + layout.RUN_SUMMARY, "/" + layout.RUN_PUBLISHED)  # of which the later counts
    keys = {key.split("/")[1]: key for key in store.keys(layout.INTAKE) if key.endswith(ends)}
    read = map_in_order(
        lambda key: _read_summary(store, key), keys.values(), _SUMMARIES, 2 * _SUMMARIES
    )
    for (name, key), data in zip(keys.items(), read, strict=True):
        if key.endswith(ends[1]):
            yield IntakeRun(name, (), published=True)
        elif data is not None:
            yield _parse_run(key, data)


def read_run(store: Writer, name: str) -> IntakeRun | None:
    """Return the run of this name; None if it is not finished, or removed. Raises as `runs`."""
    key = layout.run_prefix(name) + layout.RUN_SUMMARY
    data = _read_summary(store, key)
    return None if data is None else _parse_run(key, data)


def _read_summary(store: Writer, key: str) -> bytes | None:
    try:
        return store.read(key)
    except MissingObject:
        return None  # meanwhile published by another process


def _parse_run(key: str, data: bytes) -> IntakeRun:
    with refuse_damage(key, "remove that run"):
        document = json.loads(data)
        try:
            check_version(document["schema"])
        except OlderSchemaError as error:
            raise _older(key) from error
        return build(IntakeRun, {**document, "name": key.split("/")[1]})


def _older(key: str) -> OlderSchemaError:
    return OlderSchemaError(
        f"{key}: a Sheaf before {RELEASE} wrote this run: remove it, and ingest its sources again"
    )


def keys_of(store: Writer, finished: Sequence[IntakeRun]) -> dict[str, list[str]]:
    """Return the keys of the objects of each run; fewer if another process is discarding them.

    Few runs are listed one by one, many together.
    """
    keys: dict[str, list[str]] = {run.name: [] for run in finished}
    prefixes = [layout.run_prefix(run.name) for run in finished]
    for prefix in prefixes if len(prefixes) <= _FEW else [layout.INTAKE]:
        for key in store.keys(prefix):
            name = key.split("/")[1]
            if name in keys:
                keys[name].append(key)
    return keys


def files(
    store: Writer, finished: Sequence[IntakeRun], keys: Mapping[str, Sequence[str]], table: str
) -> list[str]:
    """Return the runs' local files of `table`, in order; those of published runs are passed over.

    Raises DamagedStore if a file is gone, and OlderSchemaError.
    """
    wanted: list[str] = []
    for run in finished:
        if run.published:
            continue
        prefix = layout.run_prefix(run.name)
        own = [key for key in keys[run.name] if key.startswith(prefix + table)]
        for key in own:
            if not key.endswith(_suffix(table)):
                raise _older(key)
        parts = [key for key in run.keys if key.rpartition("/")[2].startswith(f"{table}-")]
        for key in set(parts).difference(keys[run.name]):
            raise DamagedStore(
                f"{key} is gone: restore it, or remove {prefix} and ingest its sources again"
            )
        wanted += dict.fromkeys([*own, *parts])
    local = map_in_order(store.local, wanted, _THREADS, 2 * _THREADS)
    return [str(path) for path in local]


def discard(store: Writer, finished: Sequence[IntakeRun]) -> None:
    """Remove published runs. They are marked first, since from then on files of theirs are gone.

    If the removal is interrupted, the next publish completes it.
    """
    marks = [layout.run_prefix(run.name) + layout.RUN_PUBLISHED for run in finished]
    for _ in store.create_all((mark, b"") for mark in marks):
        pass
    keys = [key for own in keys_of(store, finished).values() for key in own]
    store.remove(*set(keys).difference(marks))
    store.remove(*marks)
