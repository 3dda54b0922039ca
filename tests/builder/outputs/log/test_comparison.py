"""A comparison of a store with a copy has the logs, entry by entry."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from builder.outputs.log.index import index_key
from builder.outputs.log.tiles import CHECKPOINT
from builder.store.folder import FolderStore
from builder.verify.comparison import Comparison, compare
from builder.verify.report import comparison_document, comparison_text
from tests.builder.outputs.log.conftest import Signed, sign_with


def against(signed: Signed, copy: Path, *, trusting: bool = False) -> Comparison:
    world, keys = signed.world, None if trusting else [signed.key.to_text()]
    progress = lambda total: nullcontext(lambda count: None)  # noqa: E731
    return compare(world.store, FolderStore(copy), world.clock, progress, keys=keys)


def found(done: Comparison) -> list[tuple[str, str]]:
    return [(finding.code, finding.object) for finding in done.findings]


@pytest.fixture
def copy(signed: Signed, tmp_path: Path) -> Path:
    """Give a copy of a store with two signed snapshots."""
    for number in range(2):
        signed.publish(number)
        signed.world.clock.sleep(60)
    shutil.copytree(signed.world.root, tmp_path / "copy")
    return tmp_path / "copy"


def test_equal_logs_and_an_older_one_are_told(signed: Signed, copy: Path) -> None:
    done = against(signed, copy)
    assert (found(done), any(result.is_older for result in done.outputs)) == ([], False)
    assert "the logs have the same 2 entries" in comparison_text(done)
    signed.publish(2)
    done = against(signed, copy)
    assert (found(done), any(result.is_older for result in done.outputs)) == ([], True)
    assert "the log of the copy is older: 2 of 3 entries" in comparison_text(done)
    document = comparison_document("a", "b", done)
    assert json.loads(json.dumps(document))["log"] == {"entries": 3, "copied": 2}


def test_a_log_that_was_cut_off_is_no_older_one(signed: Signed, copy: Path) -> None:
    """The copy has the newest snapshot, or the store itself lacks what the copy has."""
    shutil.copytree(copy / "log", copy.parent / "before")
    signed.publish(2)
    for name in ("records", "snapshots", "current.json"):
        place = signed.world.root / name
        if place.is_dir():
            shutil.copytree(place, copy / name, dirs_exist_ok=True)
        else:
            shutil.copy(place, copy / name)
    assert ("comparison-missing", CHECKPOINT) in found(against(signed, copy))
    shutil.copytree(signed.world.root / "log", copy / "log", dirs_exist_ok=True)
    assert found(against(signed, copy)) == []
    shutil.rmtree(signed.world.root / "log")
    shutil.move(copy.parent / "before", signed.world.root / "log")
    done = against(signed, copy)
    assert ("comparison-missing", CHECKPOINT) in found(done)
    assert "it ends after 2 entries, but 3" in comparison_text(done)


def test_two_histories_are_found(signed: Signed, copy: Path, tmp_path: Path) -> None:
    """The holder of the key signs other snapshots, of the same number and of more."""
    shutil.rmtree(signed.world.root)
    for number in range(3):
        signed.publish(number, title="Another")
        assert ("comparison-split", CHECKPOINT) in found(against(signed, copy))
        signed.world.clock.sleep(60)
    assert "differ from entry 0 on, for snapshot 1 and 1" in comparison_text(against(signed, copy))
    other = sign_with(signed.world, tmp_path / "other.key", "another.example.org/log")
    assert ("log-forged", CHECKPOINT) in found(against(other, copy))
    shutil.rmtree(signed.world.root / "log")
    other.publish(9)
    done = against(signed, copy, trusting=True)
    assert "it is the log another.example.org/log" in comparison_text(done)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("log/tile/entries/000.p/2", "comparison-differs"),
        ("log/tile/0/000.p/2", "log-altered"),
        (CHECKPOINT, "log-forged"),
        (index_key(2), "comparison-differs"),
        ("log/newest.json", "comparison-differs"),
    ],
)
def test_each_object_of_the_log_is_compared(
    signed: Signed, copy: Path, key: str, code: str
) -> None:
    data = bytearray((copy / key).read_bytes())
    data[-30] ^= 1
    (copy / key).write_bytes(data)
    assert found(against(signed, copy)) == [(code, key if "differs" in code else CHECKPOINT)]
    (copy / key).unlink()
    assert {code for code, _ in found(against(signed, copy))} <= {
        "comparison-missing",
        "comparison-differs",
        "log-altered",
        "log-missing",
    }
    assert found(against(signed, copy))
