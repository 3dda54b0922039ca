"""Trees, notes and tiles: known vectors, and properties of every size."""

import contextlib
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.outputs.log import merkle
from builder.outputs.log.merkle import hash_leaf, nodes_of, root_of
from builder.outputs.log.note import (
    Checkpoint,
    ProofError,
    SecretKey,
    VerifierKey,
    open_note,
    sign_note,
)
from builder.outputs.log.tiles import TileTree, list_partials, list_tiles, tile_key
from functions.snapshot.errors import MissingObject

VKEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
SKEY = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
SIGNATURE = (
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
)
"""The vector of the reference implementation of signed notes."""
# The first eight leaves of the test trees of RFC 6962's implementations, and their roots.
LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657"]
LEAVES.append("606162636465666768696a6b6c6d6e6f")
ROOTS = {
    0: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}


def test_roots_are_those_of_the_known_trees() -> None:
    hashes = [hash_leaf(bytes.fromhex(leaf)) for leaf in LEAVES]
    for size, root in ROOTS.items():
        assert root_of(hashes[:size]).hex() == root


def test_a_note_is_that_of_the_reference_implementation() -> None:
    secret = SecretKey.parse(SKEY)
    key = secret.find_public()
    assert (key.to_text(), secret.to_text()) == (VKEY, SKEY)
    note = sign_note(TEXT, key, secret.sign)
    assert note == f"{TEXT}\n\u2014 PeterNeumann {SIGNATURE}\n"
    assert open_note(note, [key]) == (TEXT, key)


@pytest.mark.parametrize(
    "altered",
    [
        lambda note: note.replace("answer", "question"),
        lambda note: note.replace("x08go", "x08gp"),
        lambda note: note.replace("x08go/ZJ", "x08go/ZK"),
        lambda note: note.replace("Neumann x", "Numann x"),
        lambda note: note[:-1],
        lambda note: note.replace("\n\n", "\n"),
        lambda note: note.replace("\u2014", "-"),
        lambda note: "",
    ],
)
def test_an_altered_note_is_refused(altered) -> None:  # type: ignore[no-untyped-def]
    key = VerifierKey.parse(VKEY)
    with pytest.raises(ProofError):
        open_note(altered(f"{TEXT}\n\u2014 PeterNeumann {SIGNATURE}\n"), [key])


def test_an_altered_verifier_key_and_a_note_that_is_no_checkpoint_are_refused() -> None:
    for place in range(0, len(VKEY), 7):
        with pytest.raises(ProofError):
            VerifierKey.parse(VKEY[:place] + chr(ord(VKEY[place]) + 1) + VKEY[place + 1 :])
    for text in ("", "a\n1\n", "a\n01\nAAAA\n", "\n1\nAAAA\n", "a\n-1\nAAAA\n"):
        with pytest.raises(ProofError):
            Checkpoint.parse(text)


@given(st.integers(1, 70), st.data())
def test_a_leaf_leads_to_the_root_and_no_other_does(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    hashes = [hash_leaf(bytes([n])) for n in range(size)]
    path = merkle.prove_inclusion(index, size, nodes_of(hashes))
    root = root_of(hashes)
    assert merkle.trace_root(hashes[index], index, size, path) == root
    other = data.draw(st.integers(0, size - 1))
    if other != index:
        assert merkle.trace_root(hashes[other], index, size, path) != root
        with contextlib.suppress(ProofError):  # another place may have a path of another length
            assert merkle.trace_root(hashes[index], other, size, path) != root
    for wrong in (path[1:], [*path, bytes(32)]):
        with contextlib.suppress(ProofError):
            assert wrong == path or merkle.trace_root(hashes[index], index, size, wrong) != root


@pytest.mark.parametrize("removes", [False, True])
def test_tiles_hold_the_tree(removes: bool) -> None:
    """The log passes the width of a tile; partial tiles may be removed once it is complete."""
    objects: dict[str, bytes] = {}

    def read(key: str) -> bytes:
        if key not in objects:
            raise MissingObject(key)
        return objects[key]

    tree = TileTree(read, 0)
    entries = [hashlib.sha256(bytes([n % 256, n // 256])).digest() * 3 for n in range(600)]
    hashes = [hash_leaf(entry) for entry in entries]
    for number, entry in enumerate(entries):
        grown, added = TileTree(read, number).append(entry)
        objects |= added
        if removes:
            for key in list_partials(grown.size):
                del objects[key]
        if number % 37 in (0, 1) or number in (254, 255, 256, 511, 512):
            tree = TileTree(read, grown.size)
            assert tree.find_root() == root_of(hashes[: grown.size]) == grown.find_root()
            assert tree.read_entry(number // 2) == entries[number // 2]
    assert list(tree.entries(250))[:10] == entries[250:260]
    whole = {tile_key(*place) for place in list_tiles(600)}
    assert whole <= objects.keys()
    assert len(whole) == 7
    assert (len(objects) < 200) == removes
    objects[tile_key(0, 1)] = bytes(32) + objects[tile_key(0, 1)][32:]
    with pytest.raises(ProofError):
        TileTree(read, 600).read_entry(300)
    # A tile has the path of the specification.
    assert tile_key(1, 1234067) == "log/tile/1/x001/x234/067"
    assert tile_key("entries", 7, 3) == "log/tile/entries/007.p/3"
