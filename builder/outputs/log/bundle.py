"""Bundles: one JSON document that proves offline what a snapshot says of an identifier.

The signature covers the root of the log, the log an entry, and the entry the trees of the look-up
by identifier. Neighbouring rows show all positions of the identifier, or that it has none. The
record at the highest position is the one in the snapshot; a path leads from its digest to the
entry.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from builder.outputs.log.entry import LogEntry, RunHead, sequence_line
from builder.outputs.log.merkle import hash_leaf, trace_root
from builder.outputs.log.note import Checkpoint, ProofError, VerifierKey, open_checkpoint
from builder.outputs.log.rows import BLOCK_ROWS, LOOKUP, LOOKUP_ROW, RECORDS, WIDTHS, hash_group
from builder.text import visible
from functions.snapshot import oai_name
from functions.snapshot.seal import Struct, build, to_values

FORM = "sheaf-proof/1"
HashPath = tuple[bytes, ...]
"""Hashes from a leaf to a root (Base64 in JSON)."""


class BlockProof(Struct, frozen=True):
    """A block of rows: its row group and that group's rows, its number there, rows and paths."""

    group: int
    rows: int
    block: int
    data: bytes
    block_path: HashPath
    group_path: HashPath


class RecordProof(Struct, frozen=True):
    """A record: number of its run, its row in the block, its JSON, and the block's proof."""

    run: int
    row: int
    text: str
    proof: BlockProof


class EntryProof(Struct, frozen=True):
    """An entry of the log: its text, its number, and the path to the root."""

    text: str
    index: int
    path: HashPath


class SequenceProof(Struct, frozen=True):
    """A publish: its place in the entry's tree, number, instant and path."""

    index: int
    number: int
    effective: str
    path: HashPath


class ProofBundle(Struct, frozen=True):
    """A proof for one identifier.

    `next` is the entry after `entry`; None if the checkpoint has no later one. `lookup` has blocks
    for each run. `records` is empty if the identifier has no position; otherwise its last one is of
    the identifier, and any before it only share its key. `sequence` is that of the record.
    """

    form: str
    identifier: str
    checkpoint: str
    entry: EntryProof
    next: EntryProof | None
    lookup: tuple[tuple[BlockProof, ...], ...]
    records: tuple[RecordProof, ...]
    sequence: SequenceProof | None

    def to_json(self) -> bytes:
        """Return the bundle as a JSON document."""
        return json.dumps(to_values(self), ensure_ascii=False, indent=1).encode()

    @staticmethod
    def parse(data: bytes) -> "ProofBundle":
        """Parse the output of `to_json`. Raises ProofError."""
        try:
            bundle = build(ProofBundle, json.loads(data))
            bundle.to_json()  # a lone surrogate cannot be hashed
        except (ValueError, RecursionError) as error:
            raise ProofError(f"it is not a bundle of `sheaf prove`: {error}") from error
        if bundle.form != FORM:
            raise ProofError(f"its form is {bundle.form!r}, and this Sheaf reads {FORM}")
        return bundle


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a bundle proves.

    The snapshot was in effect from `effective` until `until`, None if no later one was signed. The
    record was there if `present`; `row` is its JSON, with what is there of a deleted one.
    """

    identifier: str
    store: str
    snapshot: int
    effective: str
    until: str | None
    present: bool
    deleted: bool
    datestamp: str | None
    digest: str | None
    row: dict[str, Any] | None
    checkpoint: Checkpoint


def verify_bundle(bundle: ProofBundle, keys: Sequence[VerifierKey] | None) -> Verdict:
    """Return what a bundle proves; `keys` of None checks no signature. Raises ProofError."""
    checkpoint = open_checkpoint(bundle.checkpoint, keys)
    entry = _open_entry(checkpoint, bundle.entry)
    until = None
    if bundle.entry.index != checkpoint.size - 1:  # else it is the last one
        if bundle.next is None or bundle.next.index != bundle.entry.index + 1:
            raise ProofError("the entry after that of the snapshot is missing")
        until = _open_entry(checkpoint, bundle.next).effective
    record = _find_record(bundle, entry)
    row = json.loads(record.text) if record else None
    return Verdict(
        bundle.identifier,
        entry.store,
        entry.snapshot,
        entry.effective,
        until,
        record is not None,
        bool(row and row["deleted"]),
        _find_datestamp(bundle, entry, row) if row else None,
        hash_text(record.text).hex() if record else None,
        row,
        checkpoint,
    )


def hash_text(text: str) -> bytes:
    """Return the digest of a record's JSON."""
    return hashlib.sha256(text.encode()).digest()


def check_block(run: RunHead, proof: BlockProof, width: int) -> bytes:
    """Return the rows of a block, once its paths lead to the root of its run. Raises ProofError."""
    data = proof.data
    blocks = -(-proof.rows // BLOCK_ROWS)
    expected = min(BLOCK_ROWS, proof.rows - proof.block * BLOCK_ROWS) * width
    if not 0 <= proof.block < blocks or proof.rows >> 63 or len(data) != expected:
        raise ProofError("a block does not have the rows of its place")
    root = trace_root(hash_leaf(data), proof.block, blocks, proof.block_path)
    leaf = hash_group(proof.rows, root)
    if trace_root(leaf, proof.group, run.size, proof.group_path) != run.root:
        raise ProofError("a block is not in its run")
    return data


def _open_entry(checkpoint: Checkpoint, proof: EntryProof) -> LogEntry:
    root = trace_root(hash_leaf(proof.text.encode()), proof.index, checkpoint.size, proof.path)
    if root != checkpoint.root:
        raise ProofError("an entry is not in the log of the checkpoint")
    return LogEntry.parse(proof.text)


def _search_run(run: RunHead, blocks: Sequence[BlockProof], key: int) -> list[int]:
    """Return the positions of a key in a run, whose adjacent blocks must enclose the key."""
    if not run.size:
        return []
    if not blocks:
        raise ProofError("a run of the look-up has no block")
    for block, later in pairwise(blocks):
        ends = (block.block + 1) * BLOCK_ROWS >= block.rows
        expected = (block.group + 1, 0) if ends else (block.group, block.block + 1)
        if (later.group, later.block) != expected:
            raise ProofError("blocks of the look-up are not adjacent")
    data = b"".join(check_block(run, block, WIDTHS[LOOKUP]) for block in blocks)
    rows = list(LOOKUP_ROW.iter_unpack(data))
    if rows != sorted(rows):
        raise ProofError("rows of the look-up are not in order")
    first, last = blocks[0], blocks[-1]
    begins = (first.group, first.block) == (0, 0)
    ends = last.group == run.size - 1 and (last.block + 1) * BLOCK_ROWS >= last.rows
    if not (begins or rows[0][0] < key) or not (ends or rows[-1][0] > key):
        raise ProofError("blocks of the look-up do not enclose the identifier")
    return [position for row_key, position in rows if row_key == key]


def _find_record(bundle: ProofBundle, entry: LogEntry) -> RecordProof | None:
    """Return the record of the identifier at its highest position, None without one."""
    if len(bundle.lookup) != len(entry.lookup):
        raise ProofError("a run of the look-up is missing")
    key = oai_name.lookup_key(bundle.identifier)
    runs = zip(entry.lookup, bundle.lookup, strict=True)
    positions = [place for run, blocks in runs for place in _search_run(run, blocks, key)]
    positions.sort(reverse=True)
    for record in bundle.records:
        if not positions or not 0 <= record.run < len(entry.records):
            raise ProofError("a record is not at a position of its identifier")
        data = check_block(entry.records[record.run], record.proof, WIDTHS[RECORDS])
        at = record.row * WIDTHS[RECORDS]
        if record.row < 0 or data[at : at + WIDTHS[RECORDS]] != hash_text(record.text):
            raise ProofError("a record is not the one in its block")
        row = _parse_row(record.text)
        if row["position"] != positions.pop(0):
            raise ProofError("a record is not at the highest position of its identifier")
        if row["identifier"] == bundle.identifier:
            return record
    if positions:
        raise ProofError("the record at a position of the identifier is missing")
    return None


def _parse_row(text: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
        if {"position", "identifier", "sequence", "deleted"} <= row.keys():
            return dict(row)
    except (ValueError, AttributeError, RecursionError):
        pass
    raise ProofError("a record is malformed")


def _find_datestamp(bundle: ProofBundle, entry: LogEntry, row: dict[str, Any]) -> str:
    proof = bundle.sequence
    if proof is None or proof.number != row["sequence"]:
        raise ProofError("the publish of the record is missing")
    leaf = hash_leaf(sequence_line(proof.number, proof.effective))
    if trace_root(leaf, proof.index, entry.sequences.size, proof.path) != entry.sequences.root:
        raise ProofError("the publish of the record is not in the entry")
    return proof.effective


def describe_verdict(verdict: Verdict) -> str:
    """Return the claim that a bundle proves, in one or two lines."""
    until = f"until {verdict.until}" if verdict.until else "and was the newest one in the log"
    place = f"snapshot {verdict.snapshot}, which was in effect from {verdict.effective} {until}"
    # A bundle may claim any text: none may look like a part of this one.
    name = visible(verdict.identifier)
    name = f'"{name}"' if " " in name else name
    if not verdict.present:
        return f"{name} was not in {place}"
    state = "was deleted in" if verdict.deleted else "was in"
    return (
        f"{name} {state} {place}\n"
        f"datestamp {verdict.datestamp}, SHA-256 of the record {verdict.digest}"
    )


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """Return the claim as JSON values."""
    return {"proved": True, **to_values(verdict)}
