"""The proof index of a snapshot: its entry with the entry's place in the log, and its trees.

A command that proves reads it first. Large runs are objects of their own, which snapshots share.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.proofs import note
from builder.proofs.entry import RunHead
from builder.proofs.merkle import Nodes, find_root, nodes_of
from builder.proofs.rows import LOOKUP, RECORDS, WIDTHS, hash_group
from builder.proofs.tiles import LOG
from functions.snapshot.errors import VERSION
from functions.snapshot.seal import parse, refuse_damage

NEWEST = f"{LOG}newest.json"
"""The index of the newest snapshot in the log; it is replaced after the checkpoint."""
SNAPSHOTS, RUNS = f"{LOG}snapshots/", f"{LOG}runs/"
_RUN = re.compile(re.escape(RUNS) + r"[0-9a-f]{32}\.json")
_INLINED = 3 << 16
"""Bytes of runs that an index itself holds."""


@dataclass(frozen=True, slots=True)
class GroupTree:
    """A row group: first key or position, bytes with its footer, rows, and root of its blocks.

    `data` has the rows of a small row group of `lookup`: so small publishes cost no more requests.
    """

    first: int
    offset: int
    length: int
    rows: int
    root: bytes
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class FileTrees:
    """A data file: key, size in bytes, and its row groups."""

    key: str
    bytes: int
    groups: tuple[GroupTree, ...]


@dataclass(frozen=True, slots=True)
class RunTree:
    """A run of a table: first and last position of its span, and its data files."""

    first: int
    last: int
    files: tuple[FileTrees, ...]

    def places(self) -> list[tuple[FileTrees, GroupTree]]:
        """Return each row group with its file."""
        return [(file, group) for file in self.files for group in file.groups]

    def nodes(self) -> tuple[int, Nodes]:
        """Return the size and the nodes of the tree of its row groups."""
        leaves = [hash_group(g.rows, g.root) for file in self.files for g in file.groups]
        return len(leaves), nodes_of(leaves)

    def head(self) -> RunHead:
        """Return what an entry says of the run."""
        size, nodes = self.nodes()
        return RunHead(self.first, self.last, size, note.encode(find_root(size, nodes)))

    def to_json(self) -> bytes:
        """Return the run as JSON for the store."""
        files = [
            [
                file.key,
                file.bytes,
                [_group_json(group) for group in file.groups],
            ]
            for file in self.files
        ]
        return _dump({"span": [self.first, self.last], "files": files})

    @staticmethod
    def of(found: Any) -> "RunTree":
        """Build a run from the values of `to_json`. Raises one of MALFORMED, ProofError."""
        first, last = found["span"]
        files = tuple(
            FileTrees(
                str(key),
                _number(size),
                tuple(map(_parse_group, groups)),
            )
            for key, size, groups in found["files"]
        )
        return RunTree(_number(first), _number(last), files)


@dataclass(frozen=True, slots=True)
class ProofIndex:
    """What `sheaf prove` needs of a snapshot.

    `entry` is the last one in a log with the signed `checkpoint`, and `path` leads to its root.
    `columns` are the signed columns of records. `sequences` are numbers and instants of publishes.
    """

    snapshot: int
    effective: str
    entry: str
    checkpoint: str
    path: tuple[str, ...]
    columns: tuple[str, ...]
    sequences: tuple[tuple[int, str], ...]
    lookup: tuple[RunTree, ...]
    records: tuple[RunTree, ...]

    def to_objects(self) -> dict[str, bytes]:
        """Return the index and the runs that it does not hold itself, by key."""
        objects: dict[str, bytes] = {}
        tables = {LOOKUP: self.lookup, RECORDS: self.records}
        data = {run: run.to_json() for runs in tables.values() for run in runs}
        left, held = _INLINED, set()
        for run in sorted(data, key=lambda run: len(data[run])):
            left -= len(data[run])
            if left >= 0:
                held.add(run)

        def write(run: RunTree) -> Any:
            if run in held:
                return json.loads(data[run])
            key = f"{RUNS}{hashlib.sha256(data[run]).hexdigest()[:32]}.json"
            objects[key] = data[run]
            return {"object": key}

        whole = {
            "schema": VERSION,
            "snapshot": self.snapshot,
            "effective": self.effective,
            "entry": self.entry,
            "checkpoint": self.checkpoint,
            "path": self.path,
            "columns": self.columns,
            "sequences": self.sequences,
            **{table: [write(run) for run in runs] for table, runs in tables.items()},
        }
        objects[index_key(self.snapshot)] = _dump(whole)
        return objects


def index_key(snapshot: int) -> str:
    """Return the key of the index of a snapshot."""
    return f"{SNAPSHOTS}{snapshot}.json"


def run_keys(data: bytes) -> set[str]:
    """Return the keys of the runs that an index names. Raises DamagedStore."""
    found = parse(dict[str, Any], data, "an index of proofs")
    with refuse_damage("an index of proofs"):
        runs = [run for table in (LOOKUP, RECORDS) for run in found[table]]
        names = {str(run["object"]) for run in runs if "object" in run}
        if strange := [name for name in names if not _RUN.fullmatch(name)]:
            raise ValueError(f"{strange[0]!r} is not the key of a run")
    return names


def parse_index(data: bytes, runs: Mapping[str, bytes]) -> ProofIndex:
    """Parse an index; `runs` are the objects of `run_keys`. Raises DamagedStore, ProofError."""
    found = parse(dict[str, Any], data, "an index of proofs")

    def read(listed: Sequence[Any]) -> tuple[RunTree, ...]:
        values = (json.loads(runs[r["object"]]) if "object" in r else r for r in listed)
        return tuple(RunTree.of(value) for value in values)

    with refuse_damage("an index of proofs"):
        return ProofIndex(
            int(found["snapshot"]),
            str(found["effective"]),
            str(found["entry"]),
            str(found["checkpoint"]),
            tuple(map(str, found["path"])),
            tuple(map(str, found["columns"])),
            tuple((int(number), str(when)) for number, when in found["sequences"]),
            read(found[LOOKUP]),
            read(found[RECORDS]),
        )


def _group_json(group: GroupTree) -> list[Any]:
    values = [group.first, group.offset, group.length, group.rows, note.encode(group.root)]
    return [*values, note.encode(group.data)] if group.data else values


def _parse_group(values: Any) -> GroupTree:
    first, offset, length, rows = map(_number, values[:4])
    found = GroupTree(first, offset, length, rows, *map(note.decode, values[4:]))
    if found.data and len(found.data) != rows * WIDTHS[LOOKUP]:
        raise ValueError(f"a row group does not have {rows} rows")
    return found


def _number(value: Any) -> int:
    """Return a number from an index: 63 bits. Raises ValueError."""
    if type(value) is not int or value < 0 or value >> 63:
        raise ValueError(f"{value!r} is not a number of an index")
    return value


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
