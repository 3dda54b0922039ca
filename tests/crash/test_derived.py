"""A process is killed after its snapshot took effect: what follows from it is completed.

That is what settles the pointer, the record in `obi/`, the log, tables and dumps, and a purge.
`verify` names what lacks before, and the next publish completes it, as if nobody was killed.
"""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from builder.proofs.signer import create_key
from builder.verify.log import log_findings
from builder.verify.verify import VerifyRuntime, verify
from functions.snapshot import layout
from tests.builder.conftest import NAMESPACE, capture
from tests.builder.obi.archive import Repec
from tests.builder.redif.trees import paper
from tests.crash.test_kill import HOUR, Stage, kinds
from tests.crash.work import DERIVED

MADE = ("log/", "tables/", "dumps/superseded.json")
"""Prefixes of objects with signatures, times or places, which differ."""


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def prepared(name: str, folder: Path) -> Stage:
    """Return a store with templates, captures, a log, tables and dumps for a command."""
    folder.mkdir()
    create_key(folder / "sheaf.key", f"{NAMESPACE}/log")
    world = Repec(folder / "store")
    world.ingest([capture(number) for number in range(6)])
    world.take(a=paper(1), b=paper(2))
    step = Stage(folder, world.clock.now)
    step.done("derived publish")
    world.clock.sleep(100)
    if name == "reinstate":
        Stage(folder, world.clock.now).done("derived withdraw")
        world.clock.sleep(100)
    if name == "publish":
        world.ingest([capture(7)])
        world.take(b=paper(2, "Other Rugs"), c=paper(3))
    now = world.clock.now + timedelta(seconds=10)
    world.close()
    return Stage(folder, now)


def found(stage: Stage) -> list[str]:
    """Return the codes of what verify finds in a store an hour later."""
    clock = lambda: stage.now + HOUR  # noqa: E731
    means = VerifyRuntime(clock, lambda total: _Silent(), 512, 1)
    findings = [*verify(stage.store, means).findings, *log_findings(stage.store, None, None)]
    return [finding.code for finding in findings if finding.code != "temporary"]


class _Silent:
    """A progress bar that nobody sees."""

    def __enter__(self) -> object:
        return lambda count: None

    def __exit__(self, *exception: object) -> None:
        pass


def lasting(stage: Stage) -> dict[str, bytes]:
    return {key: data for key, data in stage.objects().items() if not key.startswith(MADE)}


@pytest.mark.thorough
@pytest.mark.parametrize("name", DERIVED)
def test_what_follows_a_snapshot_is_named_and_completed(
    tmp_path: Path, name: str, pool: ThreadPoolExecutor
) -> None:
    start = prepared(name, tmp_path / "start")
    whole = start.copy(tmp_path / "whole")
    changes = whole.killed(f"derived {name}", at=0)
    assert changes is not None
    first = next(n for n, change in enumerate(changes, 1) if change.endswith(layout.POINTER))
    whole.done("derived publish")
    assert found(whole) == []
    expected = lasting(whole)
    named: dict[int, list[str]] = {}

    def attempt(at: int) -> None:
        stage = start.copy(tmp_path / str(at))
        assert stage.killed(f"derived {name}", at) is None, at
        named[at] = found(stage)
        stage.done("derived publish")
        assert found(stage) == [], (at, changes[at - 1])
        differing = {k for k, v in lasting(stage).items() if expected.get(k) != v}
        differing |= expected.keys() - lasting(stage).keys()
        assert differing == set(), (at, changes[at - 1])
        shutil.rmtree(stage.folder)

    for _ in pool.map(attempt, [at for at in kinds(changes, name) if at > first]):
        pass
    unnamed = [changes[at - 1] for at, codes in sorted(named.items()) if not codes]
    assert unnamed == []
