"""The proof index of a snapshot: its entry with the entry's place in the log, and its trees.

A command that proves reads it first. Large runs are objects of their own, which snapshots share.
"""

import hashlib
import json
import re
from typing import Any

from builder.outputs.log.entry import RunHead
from builder.outputs.log.merkle import root_of
from builder.outputs.log.rows import LOOKUP, RECORDS, WIDTHS, hash_group
from builder.outputs.log.tiles import LOG
from functions.snapshot.errors import VERSION
from functions.snapshot.seal import Natural, Struct, build, encode, parse, refuse_damage
from functions.snapshot.store import Reader

NEWEST = f"{LOG}newest.json"
"""The index of the newest snapshot in the log; it is replaced after the checkpoint."""
SNAPSHOTS, RUNS = f"{LOG}snapshots/", f"{LOG}runs/"
_RUN = re.compile(re.escape(RUNS) + r"[0-9a-f]{32}\.json")
_INLINED = 3 << 16
"""Bytes of runs that an index itself holds."""


class GroupTree(Struct, frozen=True, array_like=True):
    """A row group: first key or position, bytes with its footer, rows, and root of its blocks.

    `data` has the rows of a small row group of `lookup`: so small publishes cost no more requests.
    """

    first: Natural
    offset: Natural
    length: Natural
    rows: Natural
    root: bytes
    data: bytes = b""

    def __post_init__(self) -> None:
        if self.data and len(self.data) != self.rows * WIDTHS[LOOKUP]:
            raise ValueError(f"a row group does not have {self.rows} rows")


class FileTrees(Struct, frozen=True, array_like=True):
    """A data file: key, size in bytes, and its row groups."""

    key: str
    bytes: Natural
    groups: tuple[GroupTree, ...]


class RunTree(Struct, frozen=True):
    """A run of a table: first and last position of its span, and its data files."""

    span: tuple[Natural, Natural]
    files: tuple[FileTrees, ...]

    def places(self) -> list[tuple[FileTrees, GroupTree]]:
        """Return each row group with its file."""
        return [(file, group) for file in self.files for group in file.groups]

    def leaves(self) -> list[bytes]:
        """Return the hashes of its row groups, which are the leaves of its tree."""
        return [hash_group(group.rows, group.root) for _, group in self.places()]

    def head(self) -> RunHead:
        """Return what an entry says of the run."""
        leaves = self.leaves()
        return RunHead(*self.span, len(leaves), root_of(leaves))


class ProofIndex(Struct, frozen=True):
    """What `sheaf prove` needs of a snapshot.

    `entry` is the last one in a log with the signed `checkpoint`, and `path` leads to its root.
    `columns` are the signed columns of records. `sequences` are numbers and instants of publishes.
    """

    snapshot: int
    effective: str
    entry: str
    checkpoint: str
    path: tuple[bytes, ...]
    columns: tuple[str, ...]
    sequences: tuple[tuple[int, str], ...]
    lookup: tuple[RunTree, ...]
    records: tuple[RunTree, ...]

    def to_objects(self) -> dict[str, bytes]:
        """Return the index and the runs that it does not hold itself, by key."""
        objects: dict[str, bytes] = {}
        runs = {run: encode(run) for run in (*self.lookup, *self.records)}
        written: dict[RunTree, Any] = {}
        left = _INLINED
        for run, data in sorted(runs.items(), key=lambda item: len(item[1])):
            left -= len(data)
            if left >= 0:
                written[run] = run
                continue
            key = f"{RUNS}{hashlib.sha256(data).hexdigest()[:32]}.json"
            objects[key] = data
            written[run] = {"object": key}
        members = {name: getattr(self, name) for name in self.__struct_fields__}
        members |= {table: [written[run] for run in members[table]] for table in (LOOKUP, RECORDS)}
        objects[index_key(self.snapshot)] = encode({"schema": VERSION, **members}, ascii=False)
        return objects


def index_key(snapshot: int) -> str:
    """Return the key of the index of a snapshot."""
    return f"{SNAPSHOTS}{snapshot}.json"


def run_keys(data: bytes) -> set[str]:
    """Return the keys of the runs that an index names. Raises DamagedStore."""
    members = parse(dict[str, Any], data, "an index of proofs")
    with refuse_damage("an index of proofs"):
        runs = [run for table in (LOOKUP, RECORDS) for run in members[table]]
        names = {str(run["object"]) for run in runs if "object" in run}
        if strange := [name for name in names if not _RUN.fullmatch(name)]:
            raise ValueError(f"{strange[0]!r} is not the key of a run")
    return names


def read_index(reader: Reader, key: str) -> ProofIndex:
    """Return an index of proofs. Raises MissingObject, DamagedStore, StoreError."""
    data = reader.read(key)
    runs = {name: reader.read(name) for name in run_keys(data)}
    members = parse(dict[str, Any], data, "an index of proofs")
    with refuse_damage("an index of proofs"):
        for table in (LOOKUP, RECORDS):
            members[table] = [
                json.loads(runs[run["object"]]) if "object" in run else run
                for run in members[table]
            ]
        return build(ProofIndex, members)
