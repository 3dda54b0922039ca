"""Prove: makes a bundle from the log, the index of a snapshot, and two or more row groups."""

from bisect import bisect_left, bisect_right
from datetime import datetime
from functools import cache, cached_property

from builder.outputs.log.bundle import (
    FORM,
    BlockProof,
    EntryProof,
    ProofBundle,
    RecordProof,
    SequenceProof,
    verify_bundle,
)
from builder.outputs.log.entry import LogEntry, hash_sequences
from builder.outputs.log.index import NEWEST, ProofIndex, RunTree, index_key, read_index
from builder.outputs.log.merkle import Nodes, hash_leaf, nodes_of, prove_inclusion, prove_leaf
from builder.outputs.log.note import ProofError, open_checkpoint
from builder.outputs.log.rows import (
    BLOCK_ROWS,
    LOOKUP,
    LOOKUP_ROW,
    RECORDS,
    WIDTHS,
    GroupRows,
    open_group,
    read_groups,
    read_record,
)
from builder.outputs.log.tiles import WIDTH, TileTree
from functions.snapshot import instant, oai_name
from functions.snapshot.errors import DamagedStore, MissingObject, NothingPublished
from functions.snapshot.seal import MALFORMED
from functions.snapshot.store import Reader
from functions.store import engine

_Place = tuple[ProofIndex, EntryProof, EntryProof | None]
"""A snapshot in the log: its index, and the proofs of its entry and of the next one."""


class Prover:
    """Makes bundles from a store. The newest index is read once, so later proofs cost less."""

    def __init__(self, store: Reader) -> None:
        self._store = store
        self._connection = engine.connect()
        self._places: dict[int, _Place] = {}

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def prove(self, identifier: str, as_of: datetime | None = None) -> ProofBundle:
        """Return the proof for an identifier in the snapshot in effect at `as_of`, or the newest.

        Raises NothingPublished if no such snapshot was signed, MissingObject if it was retired,
        DamagedStore, StoreError.
        """
        try:
            bundle = self._build(identifier, as_of)
            verdict = verify_bundle(bundle, None)
            when = instant.to_text(as_of) if as_of else verdict.effective
            if not verdict.effective <= when < (verdict.until or "a"):
                raise ProofError(f"the snapshot of {verdict.effective} was not in effect at {when}")
        except (ProofError, *MALFORMED, StopIteration) as error:
            raise DamagedStore(
                f"{self._store.address} does not match its log: {error}; run `sheaf verify`"
            ) from error
        return bundle

    def _build(self, identifier: str, as_of: datetime | None) -> ProofBundle:
        index, entry, following = self._find_place(as_of)
        key = oai_name.lookup_key(identifier)
        blocks = []
        positions: list[int] = []
        for run in index.lookup:
            proofs, matches = self._search(run, key)
            blocks.append(proofs)
            positions += matches
        records: list[RecordProof] = []
        publish: SequenceProof | None = None
        for position in sorted(positions, reverse=True):
            record, sequence, owner = self._read_record(index, position)
            records.append(record)
            if owner == identifier:
                leaves = hash_sequences(index.sequences)
                at = next(n for n, pair in enumerate(index.sequences) if pair[0] == sequence)
                publish = SequenceProof(at, *index.sequences[at], prove_leaf(at, leaves))
                break
        return ProofBundle(
            FORM,
            identifier,
            self._newest.checkpoint,
            entry,
            following,
            tuple(blocks),
            tuple(records),
            publish,
        )

    @cached_property
    def _newest(self) -> ProofIndex:
        try:
            return read_index(self._store, NEWEST)
        except MissingObject as error:
            raise NothingPublished(
                f"{self._store.address} has no log: set a key to sign with, then publish"
            ) from error

    def _find_place(self, as_of: datetime | None) -> _Place:
        newest = self._newest
        size = open_checkpoint(newest.checkpoint, None).size
        if as_of is None or instant.from_text(newest.effective) <= as_of:
            return newest, EntryProof(newest.entry, size - 1, newest.path), None
        tree = TileTree(cache(self._store.read), size)

        def find_time(number: int) -> datetime:
            return instant.from_text(LogEntry.parse(tree.find_entry(number)).effective)

        at = bisect_right(range(size), as_of, key=find_time) - 1
        if at < 0:
            raise NothingPublished(
                f"the log begins at {instant.to_text(find_time(0))}: nothing was signed before"
            )
        number = LogEntry.parse(tree.find_entry(at)).snapshot
        if number not in self._places:
            try:
                index = read_index(self._store, index_key(number))
            except MissingObject as error:
                raise MissingObject(
                    f"snapshot {number} was retired: what it had can be proved only by bundles "
                    "from before"
                ) from error
            here, later = (_prove_entry(tree, n) for n in (at, at + 1))
            self._places[number] = index, here, later
        return self._places[number]

    def _search(self, run: RunTree, key: int) -> tuple[tuple[BlockProof, ...], list[int]]:
        """Return the adjacent blocks of a run that enclose a key, and the key's positions."""
        firsts = [group.first for _, group in run.places()]
        at = max(0, bisect_left(firsts, key) - 1)
        blocks: list[tuple[int, int, list[tuple[int, ...]]]] = []
        groups: dict[int, GroupRows] = {}
        while at < len(firsts) and (not blocks or blocks[-1][2][-1][0] <= key):
            file, group = run.places()[at]
            groups[at] = GroupRows(group.data, WIDTHS[LOOKUP])
            if not group.data:
                span = (group.offset, group.length)
                with open_group(self._store, file.key, file.bytes, span) as path:
                    (groups[at],) = read_groups(self._connection, path, LOOKUP, [group.rows])
            for number, data in enumerate(groups[at].blocks()):
                blocks.append((at, number, list(LOOKUP_ROW.iter_unpack(data))))
            at += 1
        while len(blocks) > 1 and blocks[1][2][0][0] < key:
            del blocks[0]
        while len(blocks) > 1 and blocks[-2][2][-1][0] > key:
            del blocks[-1]
        proofs = tuple(_prove_block(run, place, groups[place], n) for place, n, _ in blocks)
        return proofs, [row[1] for *_, rows in blocks for row in rows if row[0] == key]

    def _read_record(self, index: ProofIndex, position: int) -> tuple[RecordProof, int, str]:
        """Return the proof of the record at a position, its sequence and its identifier."""
        for number, run in enumerate(index.records):
            if not run.span[0] <= position <= run.span[1]:
                continue
            places = run.places()
            at = bisect_right([group.first for _, group in places], position) - 1
            file, group = places[at]
            span = (group.offset, group.length)
            with open_group(self._store, file.key, file.bytes, span) as path:
                (rows,) = read_groups(self._connection, path, RECORDS, [group.rows], index.columns)
                row, sequence, owner, text = read_record(
                    self._connection, path, position, index.columns
                )
            proof = _prove_block(run, at, rows, row // BLOCK_ROWS)
            return RecordProof(number, row % BLOCK_ROWS, text, proof), sequence, owner
        raise DamagedStore(f"position {position} of the look-up is in no run of records")


def _prove_entry(tree: TileTree, number: int) -> EntryProof:
    nodes: Nodes = tree.node
    if tree.size <= WIDTH:  # all entries are in the bundle that was read
        nodes = nodes_of([hash_leaf(entry) for entry in tree.entries()])
    path = prove_inclusion(number, tree.size, nodes)
    return EntryProof(tree.find_entry(number).decode(), number, path)


def _prove_block(run: RunTree, at: int, rows: GroupRows, block: int) -> BlockProof:
    data, path = rows.blocks()[block], rows.prove(block)
    return BlockProof(at, rows.rows, block, data, path, prove_leaf(at, run.leaves()))
