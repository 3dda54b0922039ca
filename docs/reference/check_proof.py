"""Checks a bundle of `sheaf prove`: python check_proof.py BUNDLE VERIFIER_KEY

It shares no code with Sheaf and needs Python and the package `cryptography`. Exit status 0: proved;
1: not proved. docs/guide/proofs.md says how bundles are made.

The bundle's `checkpoint` is a signed note (C2SP signed-note, tlog-checkpoint) over the root of the
log. Each entry of the log is a JSON document about a snapshot:

store, snapshot, effective   the store's id, the snapshot's number and instant
manifest                     SHA-256 of its manifest, which names all leaves, and these all files
sequences                    tree of the publishes; a leaf is "<number> <instant>" and a line feed
lookup, records              for each run of these tables, the tree of its row groups
previous                     the checkpoint before this entry

All trees are those of RFC 6962. A row group is cut into blocks of 64 rows, whose hashes make a
tree. The leaf of a row group is its number of rows in 8 bytes, and the root of that tree. A row of
`lookup` is the first 63 bits of the identifier's SHA-256 and a position, in 8 bytes each, sorted. A
row of `records` is the SHA-256 of the record's JSON: its columns but for NULL, without spaces.

For each run of `lookup` the bundle has adjacent blocks that enclose the identifier, so all its
positions are known. The record at the highest one is the one in the snapshot. Its datestamp is the
instant of its publish. The entry after that of the snapshot shows until when it was in effect.

The objects of the log are below `log/` in the store, as in C2SP tlog-tiles: `checkpoint`,
`tile/<L>/<N>` and `tile/entries/<N>`. `snapshots/`, `runs/` and `newest.json` there are digests
that `sheaf prove` reads, and no part of the log. The signature shows what was published, and not
that it is true.

Keys of leaves and data files have 128 bits of SHA-256. So a publisher could make two files of one
key in 2^64 steps. Digests of rows are whole.
"""

import base64
import hashlib
import json
import struct
import sys
from itertools import pairwise
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ROWS = 64  # rows of a block
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


class BadBundle(Exception):
    """The bundle does not prove its claim."""


def need(condition, text):
    """Raise BadBundle unless the condition holds."""
    if not condition:
        raise BadBundle(text)


def sha(data):
    """Return the SHA-256."""
    return hashlib.sha256(data).digest()


def unbase(text):
    """Return the bytes of Base64."""
    return base64.b64decode(text, validate=True)


def climb(data, index, size, path):
    """Return the root of a tree of `size` leaves, from leaf `index` and its path (RFC 6962)."""
    need(0 <= index < size, "a leaf is outside its tree")
    # From the root: whether the leaf is in the left part, at each branching.
    turns = []
    while size > 1:
        left = 1 << ((size - 1).bit_length() - 1)
        turns.append(index < left)
        index, size = (index, left) if index < left else (index - left, size - left)
    need(len(turns) == len(path), "a path has the wrong length")
    node = sha(b"\0" + data)
    for is_left, text in zip(reversed(turns), path, strict=True):
        other = unbase(text)
        node = sha(b"\1" + (node + other if is_left else other + node))
    return node


def open_note(note, verifier_key):
    """Return origin, size and root of a signed checkpoint."""
    name, key_id, key = verifier_key.split("+", 2)
    key = unbase(key)
    expected = sha(name.encode() + b"\n" + key)[:4]
    need(len(key) == 33 and key[0] == 1 and expected.hex() == key_id, "the key is malformed")
    text, _, lines = note.rpartition("\n\n")
    text += "\n"
    for line in lines.splitlines():
        dash, signer, value = line.split(" ")
        value = unbase(value)
        if (dash, signer, value[:4]) == ("\u2014", name, expected):
            try:
                Ed25519PublicKey.from_public_bytes(key[1:]).verify(value[4:], text.encode())
            except InvalidSignature:
                raise BadBundle("the signature is wrong") from None
            origin, size, root = text.split("\n")[:3]
            need(origin == name, "the log has another name")
            return int(size), unbase(root)
    raise BadBundle("the key did not sign this")


def open_entry(proof, size, root):
    """Return an entry that is in the log."""
    data = proof["text"].encode()
    need(climb(data, proof["index"], size, proof["path"]) == root, "an entry is not in the log")
    return json.loads(data)


def open_block(run, proof, width):
    """Return the rows of a block that is in a run."""
    data, rows, block = unbase(proof["data"]), proof["rows"], proof["block"]
    need(len(data) == width * min(ROWS, rows - block * ROWS) > 0, "a block has the wrong size")
    root = climb(data, block, -(-rows // ROWS), proof["block_path"])
    group = rows.to_bytes(8, "big") + root
    found = climb(group, proof["group"], run["size"], proof["group_path"])
    need(found == unbase(run["root"]), "a block is not in its run")
    return data


def find_positions(run, blocks, key):
    """Return the positions of a key; its neighbours must be there, or the ends of the run."""
    if run["size"] == 0:
        return []
    need(blocks, "a run has no block")
    rows = [
        struct.unpack_from(">qq", data, at)
        for data in (open_block(run, block, 16) for block in blocks)
        for at in range(0, len(data), 16)
    ]
    need(rows == sorted(rows), "rows are not in order")

    def ends(block):
        return (block["block"] + 1) * ROWS >= block["rows"]

    for one, other in pairwise(blocks):
        place = (one["group"] + 1, 0) if ends(one) else (one["group"], one["block"] + 1)
        need((other["group"], other["block"]) == place, "blocks are not adjacent")
    begins = blocks[0]["group"] == blocks[0]["block"] == 0
    need(begins or rows[0][0] < key, "the row before is missing")
    whole = blocks[-1]["group"] == run["size"] - 1 and ends(blocks[-1])
    need(whole or rows[-1][0] > key, "the row after is missing")
    return [position for found, position in rows if found == key]


def check(bundle, verifier_key):
    """Return the entry, the next entry, and the record with its datestamp (None: absent)."""
    need(bundle["form"] == "sheaf-proof/1", "the form is unknown")
    size, root = open_note(bundle["checkpoint"], verifier_key)
    entry, later = open_entry(bundle["entry"], size, root), None
    if bundle["entry"]["index"] < size - 1:
        need(bundle["next"]["index"] == bundle["entry"]["index"] + 1, "the next entry is missing")
        later = open_entry(bundle["next"], size, root)
    identifier = bundle["identifier"]
    key = int.from_bytes(sha(identifier.encode())[:8], "big") >> 1
    need(len(bundle["lookup"]) == len(entry["lookup"]), "a run is missing")
    positions = []
    for run, blocks in zip(entry["lookup"], bundle["lookup"], strict=True):
        positions += find_positions(run, blocks, key)
    positions.sort()
    for record in bundle["records"]:
        need(positions and record["run"] >= 0 <= record["row"], "a record has no position")
        data = open_block(entry["records"][record["run"]], record["proof"], 32)
        at = 32 * record["row"]
        need(data[at : at + 32] == sha(record["text"].encode()), "a record is another one")
        row = json.loads(record["text"])
        need(row["position"] == positions.pop(), "a record is not the newest version")
        if row["identifier"] == identifier:
            publish, tree = bundle["sequence"], entry["sequences"]
            need(publish["number"] == row["sequence"], "the publish is another one")
            line = f"{publish['number']} {publish['effective']}\n".encode()
            found = climb(line, publish["index"], tree["size"], publish["path"])
            need(found == unbase(tree["root"]), "the publish is not in the entry")
            return entry, later, row, publish["effective"]
    need(not positions, "a record is missing")
    return entry, later, None, None


def main():
    """Check the bundle that the arguments name."""
    if len(sys.argv) != 3:
        sys.exit((__doc__ or "").splitlines()[0])
    try:
        bundle = json.loads(Path(sys.argv[1]).read_bytes())
        entry, later, row, datestamp = check(bundle, sys.argv[2])
    except BadBundle as error:
        print(f"not proved: {error}")
        return 1
    except OSError as error:
        sys.exit(str(error))
    except MALFORMED as error:
        print(f"not proved: the bundle is malformed ({error!r})")
        return 1
    state = "absent" if row is None else "deleted" if row["deleted"] else "present"
    until = later["effective"] if later else "the newest in the log"
    print(f"proved: {bundle['identifier']!a} is {state} in snapshot {entry['snapshot']}")
    stamped = f"; datestamp {datestamp}" if datestamp else ""
    print(f"in effect from {entry['effective']} until {until}{stamped}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
