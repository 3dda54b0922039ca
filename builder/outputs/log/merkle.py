"""Merkle trees: roots and inclusion proofs (RFC 6962, section 2.1).

A tree is known by its size and by its nodes: `nodes(level, index)` is the root of the leaves from
`index << level`, of which there are `1 << level`. So a tree may be in memory or in tiles.
"""

import hashlib
from collections.abc import Callable, Sequence

from builder.outputs.log.note import ProofError

Nodes = Callable[[int, int], bytes]
EMPTY = hashlib.sha256(b"").digest()
"""The root of the tree without leaves."""


def hash_leaf(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return hashlib.sha256(b"\0" + data).digest()


def hash_children(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node."""
    return hashlib.sha256(b"\1" + left + right).digest()


def nodes_of(leaves: Sequence[bytes]) -> Nodes:
    """Return the nodes of a tree whose leaves have these hashes."""

    def find(level: int, index: int) -> bytes:
        if level == 0:
            return leaves[index]
        return hash_children(find(level - 1, 2 * index), find(level - 1, 2 * index + 1))

    return find


def find_root(size: int, nodes: Nodes) -> bytes:
    """Return the root of a tree."""
    return _hash_range(0, size, nodes) if size else EMPTY


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root of a tree whose leaves have these hashes."""
    return find_root(len(leaves), nodes_of(leaves))


def prove_inclusion(index: int, size: int, nodes: Nodes) -> tuple[bytes, ...]:
    """Return the path from leaf `index` to the root, from below."""
    path = []
    start = 0
    while size > 1:
        split = _split(size)
        if index - start < split:
            path.append(_hash_range(start + split, size - split, nodes))
            size = split
        else:
            path.append(_hash_range(start, split, nodes))
            start, size = start + split, size - split
    return tuple(path[::-1])


def prove_leaf(index: int, leaves: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the path from a leaf to the root of a tree whose leaves have these hashes."""
    return prove_inclusion(index, len(leaves), nodes_of(leaves))


def trace_root(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """Return the root to which a path leads from a leaf's hash. Raises ProofError.

    RFC 9162, section 2.1.3.2.
    """
    if not 0 <= index < size:
        raise ProofError(f"leaf {index} is not in a tree of {size}")
    root, last = leaf, size - 1
    for node in path:
        if last == 0:
            raise ProofError("a path is too long for its tree")
        if index & 1 or index == last:
            root = hash_children(node, root)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            root = hash_children(root, node)
        index, last = index >> 1, last >> 1
    if last:
        raise ProofError("a path is too short for its tree")
    return root


def _split(size: int) -> int:
    """Return the largest power of two below `size`."""
    return 1 << ((size - 1).bit_length() - 1)


def _hash_range(start: int, size: int, nodes: Nodes) -> bytes:
    if size & (size - 1) == 0:
        level = size.bit_length() - 1
        return nodes(level, start >> level)
    split = _split(size)
    return hash_children(
        _hash_range(start, split, nodes), _hash_range(start + split, size - split, nodes)
    )
