"""Tiles: the log as static objects (C2SP tlog-tiles).

A tile has up to 256 hashes of one level of the tree; a level of tiles is eight levels of the tree.
A bundle has the entries of a tile of level 0, each after its length in two bytes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from builder.outputs.log.merkle import find_root, hash_leaf, nodes_of, prove_inclusion, trace_root
from builder.outputs.log.note import Checkpoint, ProofError, VerifierKey, open_checkpoint
from functions.snapshot.errors import MissingObject
from functions.snapshot.store import Reader

LOG = "log/"
CHECKPOINT = "log/checkpoint"
WIDTH = 256
_HEIGHT = 8
_HASH = 32
_LONGEST = (1 << 16) - 1
_ENTRIES = "entries"


def tile_key(level: int | str, number: int, width: int = WIDTH) -> str:
    """Return the key of a tile, or of a bundle (level "entries"); `width` is its hashes."""
    digits = f"{number:03d}"
    digits = digits.zfill(-(-len(digits) // 3) * 3)
    parts = [digits[at : at + 3] for at in range(0, len(digits), 3)]
    path = "/".join([*(f"x{part}" for part in parts[:-1]), parts[-1]])
    return f"{LOG}tile/{level}/{path}" + (f".p/{width}" if width < WIDTH else "")


def list_tiles(size: int) -> Iterator[tuple[int | str, int, int]]:
    """Yield level, number and width of all tiles and bundles of a log with `size` entries."""
    level, count = 0, size
    while count:
        for name in _names_of(level):
            for number in range(-(-count // WIDTH)):
                yield name, number, min(WIDTH, count - number * WIDTH)
        level, count = level + 1, count // WIDTH


def list_partials(size: int) -> list[str]:
    """Return the keys of partial tiles that the last entry of a log of `size` made complete."""
    keys = []
    level, count = 0, size
    while count and count % WIDTH == 0:
        number = count // WIDTH - 1
        for name in _names_of(level):
            keys += [tile_key(name, number, width) for width in range(1, WIDTH)]
        level, count = level + 1, count // WIDTH
    return keys


def _names_of(level: int) -> tuple[int | str, ...]:
    return (_ENTRIES, level) if level == 0 else (level,)


@dataclass(frozen=True, slots=True)
class TileTree:
    """A log of `size` entries, whose objects `read` returns; it raises MissingObject."""

    read: Callable[[str], bytes]
    size: int

    def node(self, level: int, index: int) -> bytes:
        """Return a node of the tree (merkle.Nodes). Raises ProofError, StoreError."""
        tile, height = divmod(level, _HEIGHT)
        number, place = divmod(index << height, WIDTH)
        hashes = self.leaves(tile, number)
        return nodes_of(hashes[place : place + (1 << height)])(height, 0)

    def leaves(self, level: int | str, number: int, width: int | None = None) -> list[bytes]:
        """Return the hashes of a tile, or the entries of a bundle (level "entries").

        `width` is their number, by default that of a log of this size. Raises ProofError,
        StoreError.
        """
        if width is None:
            below = 0 if isinstance(level, str) else _HEIGHT * level
            width = min(WIDTH, (self.size >> below) - number * WIDTH)
        try:
            data = self.read(tile_key(level, number, width))
        except MissingObject:
            if width == WIDTH:
                raise
            data = self.read(tile_key(level, number))  # a later entry completed it
        if isinstance(level, str):
            leaves = _split_bundle(data)
        else:
            leaves = [data[at : at + _HASH] for at in range(0, len(data), _HASH)]
        is_cut = not isinstance(level, str) and len(data) % _HASH
        if is_cut or len(leaves) not in (width, WIDTH):
            raise ProofError(f"{tile_key(level, number, width)} is cut off")
        return leaves[:width]

    def find_root(self) -> bytes:
        """Return the root of the tree."""
        return find_root(self.size, self.node)

    def entries(self, start: int = 0) -> Iterator[bytes]:
        """Yield the entries from number `start`. Raises ProofError, StoreError."""
        for number in range(start // WIDTH, -(-self.size // WIDTH)):
            yield from self.leaves(_ENTRIES, number)[max(0, start - number * WIDTH) :]

    def read_entry(self, index: int) -> bytes:
        """Return one entry. Raises ProofError if its hash does not lead to the root."""
        entry = self.find_entry(index)
        if trace_root(hash_leaf(entry), index, self.size, self.prove(index)) != self.find_root():
            raise ProofError(f"entry {index} is not what the tiles have")
        return entry

    def find_entry(self, index: int) -> bytes:
        """Return one entry, whose place is not checked."""
        return self.leaves(_ENTRIES, index // WIDTH)[index % WIDTH]

    def prove(self, index: int) -> tuple[bytes, ...]:
        """Return the path from an entry to the root."""
        return prove_inclusion(index, self.size, self.node)

    def append(self, entry: bytes) -> tuple["TileTree", dict[str, bytes]]:
        """Return the tree with another entry, and the objects that it adds to the store."""
        if len(entry) > _LONGEST:
            raise ProofError(f"an entry of {len(entry):,} bytes is too long for the log")
        number, width = divmod(self.size, WIDTH)
        bundle = pack_entries(self.leaves(_ENTRIES, number)) if width else b""
        objects = {tile_key(_ENTRIES, number, width + 1): bundle + pack_entries([entry])}
        level, place, added = 0, self.size, hash_leaf(entry)
        while True:
            number, width = divmod(place, WIDTH)
            hashes = [*(self.leaves(level, number) if width else ()), added]
            objects[tile_key(level, number, width + 1)] = b"".join(hashes)
            if width + 1 < WIDTH:
                break
            level, place, added = level + 1, number, find_root(WIDTH, nodes_of(hashes))

        def read(key: str) -> bytes:
            return objects[key] if key in objects else self.read(key)

        return replace(self, read=read, size=self.size + 1), objects


def pack_entries(entries: Iterable[bytes]) -> bytes:
    """Return a bundle of entries, each after its length."""
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def _split_bundle(data: bytes) -> list[bytes]:
    entries = []
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 2], "big")
        entries.append(data[at + 2 : at + 2 + length])
        at += 2 + length
    if at != len(data):
        raise ProofError("a bundle of entries is cut off")
    return entries


_KEPT = 64
"""Tiles that are kept in memory."""


@dataclass(frozen=True, slots=True)
class SignedLog:
    """A log: the note with its checkpoint, the checkpoint, and the tree in the tiles."""

    note: str
    checkpoint: Checkpoint
    tree: TileTree

    def has_root(self) -> bool:
        """Return whether the tiles lead to the root. Raises ProofError, StoreError."""
        return self.tree.find_root() == self.checkpoint.root

    def continues(self, earlier: Checkpoint) -> bool:
        """Return whether the log begins with the entries of `earlier`.

        False if it has fewer. Raises ProofError, StoreError.
        """
        if earlier.origin != self.checkpoint.origin or earlier.size > self.checkpoint.size:
            return False
        return find_root(earlier.size, self.tree.node) == earlier.root


def open_log(reader: Reader, keys: Sequence[VerifierKey] | None) -> SignedLog | None:
    """Return the log of a store, None without one; `keys` of None checks no signature.

    Raises ProofError if its checkpoint is not signed, and StoreError.
    """
    try:
        note = reader.read(CHECKPOINT).decode("utf-8", "replace")
    except MissingObject:
        return None
    checkpoint = open_checkpoint(note, keys)
    return SignedLog(note, checkpoint, TileTree(lru_cache(_KEPT)(reader.read), checkpoint.size))
