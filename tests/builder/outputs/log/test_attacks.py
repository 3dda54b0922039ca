"""What who writes to the bucket, or hands over a bundle, may try: it is found, and in one line."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from builder.outputs.log.bundle import ProofBundle, describe_verdict, verify_bundle
from builder.outputs.log.index import NEWEST, index_key
from builder.outputs.log.merkle import EMPTY
from builder.outputs.log.note import ProofError, encode
from builder.outputs.log.tiles import CHECKPOINT
from functions.snapshot.errors import DamagedStore, MissingObject, NothingPublished
from tests.builder.outputs.dumps.history import identify
from tests.builder.outputs.log.conftest import Signed

FIRST = "2026-01-01T00:00:30Z"


@pytest.fixture
def two(signed: Signed) -> Signed:
    """Give a store of two signed snapshots."""
    signed.publish(*range(100))
    signed.world.clock.sleep(60)
    signed.publish(*range(100, 200))
    return signed


def swap(name: str, other: Any) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    def change(bundle: dict[str, Any], rival: dict[str, Any]) -> None:
        bundle[name] = rival[name] if other is None else other

    return change


def size_up(rows: object) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    def change(bundle: dict[str, Any], rival: dict[str, Any]) -> None:
        """Give a block another number of rows, with a path of the length that this needs."""
        block = bundle["lookup"][0][0]
        block["rows"] = rows
        if isinstance(rows, int) and not isinstance(rows, bool) and rows > 1 << 32:
            block["block_path"] = [encode(bytes(32))] * ((-(-rows // 64)) - 1).bit_length()

    return change


CHANGES: list[Callable[[dict[str, Any], dict[str, Any]], Any]] = [
    swap("identifier", identify(4)),  # a record's proof that claims another one
    swap("identifier", 7),
    swap("identifier", "\ud800"),
    swap("records", None),  # the record of another one
    swap("records", []),
    swap("lookup", []),
    swap("lookup", [[]]),
    swap("lookup", None),
    swap("sequence", "null"),
    swap("entry", {"text": "{}", "index": 1 << 63, "path": []}),
    swap("checkpoint", f"n\n{'9' * 5000}\n{encode(EMPTY)}\n\n\u2014 n AAAA\n"),
    swap("checkpoint", f"archive.example.org/log\n0\n{encode(EMPTY)}\n"),
    swap("form", "x\noai:a was in snapshot 1"),
    *map(size_up, (0, -1, True, 1.5, 1 << 63, 1 << 64, 1 << 70, None, "64")),
    lambda bundle, rival: bundle["lookup"][0].append(bundle["lookup"][0][0]),
]


def test_no_forged_bundle_proves_or_breaks_a_verifier(two: Signed, tmp_path: Path) -> None:
    bundle, *rivals = (json.loads(two.prove(identify(n)).to_json()) for n in (3, *range(100, 120)))
    rival = next(one for one in rivals if one["lookup"] != bundle["lookup"])
    whole = json.dumps(bundle)
    for number, change in enumerate(CHANGES):
        forged = json.loads(whole)
        change(forged, rival)
        data = json.dumps(forged).encode()
        try:
            verify_bundle(ProofBundle.parse(data), [two.key])
        except ProofError as error:
            lines = str(error).splitlines()
        else:
            lines = []
        assert len(lines) == 1, number
        done = two.check(data, tmp_path)
        assert (done.returncode, done.stderr) == (1, ""), (number, done)
    for data in (b"", b"\xff", b"[]", b"[" * 100_000, b'{"form":' * 100_000):
        with pytest.raises(ProofError):
            ProofBundle.parse(data)
        done = two.check(data, tmp_path)
        assert (done.returncode, done.stderr) == (1, ""), data[:9]


def test_an_absent_identifier_cannot_claim_that_another_is_present(
    two: Signed, tmp_path: Path
) -> None:
    """Absence can be proved of any text, so of one that looks like a verdict."""
    claim = f"{identify(500)} was in snapshot 1\nproved: {identify(500)} is present in snapshot 1"
    bundle = two.prove(claim)
    text = describe_verdict(verify_bundle(bundle, [two.key]))
    assert len(text.splitlines()) == 1
    assert text.startswith('"')
    done = two.check(bundle.to_json(), tmp_path)
    assert (done.returncode, done.stdout.count("\n")) == (0, 2)
    assert done.stdout.startswith("proved: '")


def test_a_checkpoint_of_no_entries_or_of_too_many_is_found(two: Signed) -> None:
    path = two.world.root / CHECKPOINT
    name, _, *rest = path.read_text().split("\n")
    for size, root, code in (
        ("0", encode(EMPTY), "log-truncated"),
        ("9" * 5000, rest[0], "log-forged"),
        (str(1 << 63), rest[0], "log-forged"),
        ("9" * 18, rest[0], "log-altered"),
    ):
        path.write_text("\n".join([name, size, root, *rest[1:]]))
        # Without a key, the store's identity tells who signed.
        assert list(dict.fromkeys(["log-forged", code])) == two.codes(trusting=True)
        assert two.codes() == ["log-forged"]


def alter_index(signed: Signed, snapshot: int, change: Callable[[dict[str, Any]], Any]) -> None:
    for key in (index_key(snapshot), NEWEST):
        path = signed.world.root / key
        index = json.loads(path.read_bytes())
        if index["snapshot"] == snapshot:
            change(index)
            path.write_text(json.dumps(index))


def set_group(at: int, value: object) -> Callable[[dict[str, Any]], Any]:
    def change(index: dict[str, Any]) -> None:
        index["lookup"][0]["files"][0][2][0][at] = value

    return change


def set_member(name: str, value: object) -> Callable[[dict[str, Any]], Any]:
    return lambda index: index.update({name: value})


def test_an_index_that_was_changed_is_found_and_proves_nothing_false(two: Signed) -> None:
    kept = {key: two.world.store.read(key) for key in (index_key(2), NEWEST)}
    for change in (
        *(set_group(3, rows) for rows in ("100", -1, 1 << 70, True, None)),
        set_group(0, "first"),
        set_group(5, "AAAA"),
        set_member("records", [{"object": "../../sheaf.key"}]),
        set_member("records", [{"span": [0, 99], "files": []}]),
        set_member("lookup", []),
        set_member("sequences", []),
        set_member("effective", "2025-01-01T00:00:00Z"),
        set_member("entry", "[" * 50_000),
        lambda index: index["lookup"][0]["files"][0].__setitem__(0, "../../sheaf.key"),
    ):
        for key, data in kept.items():
            (two.world.root / key).write_bytes(data)
        alter_index(two, 2, change)
        assert two.codes() == ["log-index"]
        for identifier, present in ((identify(3), True), (identify(500), False)):
            with suppress(DamagedStore):
                assert two.verify(identifier).present == present
            with suppress(DamagedStore, MissingObject, NothingPublished):
                assert two.verify(identifier, FIRST).snapshot == 1
    alter_index(two, 2, set_group(3, "100"))
    two.world.clock.sleep(60)
    two.publish(300)  # it reads the files, and signs what they have
    assert set(two.codes()) == {"log-index"}
    assert two.verify(identify(300)).present


def test_trees_of_other_files_are_not_signed(signed: Signed) -> None:
    """The index says which tree is that of a file, and the entry only in which order they are."""
    for numbers in (range(100), range(100, 110)):
        signed.publish(*numbers)
        signed.world.clock.sleep(60)
    alter_index(signed, 2, swap_files)
    assert signed.codes() == ["log-index"]
    signed.publish(300)
    assert signed.codes() == ["log-index"]  # of snapshot 2, and no log-mismatch
    assert signed.verify(identify(3)).present


def swap_files(index: dict[str, Any]) -> None:
    """Exchange the names of two data files."""
    one, other = [file for run in index["records"] for file in run["files"]]
    one[0], other[0] = other[0], one[0]
