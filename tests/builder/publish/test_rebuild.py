"""A store of templates that is rebuilt from `obi/` alone: nothing changes for its harvesters."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builder.obi.publishes import read_records
from builder.publish import rebuild as rebuilding
from builder.publish.rebuild import rebuild
from builder.publish.selection import Selection
from functions.snapshot.errors import DamagedStore
from tests.builder.conftest import capture
from tests.builder.obi.archive import PREFIX, Repec, harvested, state
from tests.builder.sources.redif.trees import paper
from tests.interleaving.killer import Killed

ONE, TWO, THREE = (f"{PREFIX}RePEc:aaa:wpaper:{n}" for n in (1, 2, 3))


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repec]:
    """A store in which templates appeared, changed, were lost, withdrawn and reinstated."""
    old = Repec(tmp_path_factory.mktemp("old") / "store")
    old.take(a=paper(1), b=paper(2), c=paper(3))
    old.publish()
    old.take(a=None, b=paper(2, "Other Rugs"))
    old.publish()
    for item in (TWO, THREE):
        chosen = Selection(identifiers=(item,))
        old.clock.sleep(10)
        old.withdraw(chosen)
    old.clock.sleep(10)
    old.reinstate(chosen)
    old.take(c=paper(3, "Third Rugs"))
    old.publish()
    yield old
    old.close()


@pytest.fixture
def anew(lived: Repec, tmp_path: Path) -> Iterator[Repec]:
    """An empty store with the same obi store, a day later."""
    (tmp_path / "new").mkdir()
    new = Repec(tmp_path / "new" / "store")
    shutil.copytree(lived.root / "obi", new.root / "obi")
    new.clock.now = lived.clock.now
    new.clock.sleep(86_400)
    new.files = dict(lived.files)
    yield new
    new.close()


def rebuilt(world: Repec) -> int:
    return rebuild(world.store, world.configuration(), world.runtime(), {})


def test_harvesters_go_on_with_the_same_items_tombstones_and_datestamps(
    lived: Repec, anew: Repec
) -> None:
    mirror: dict[str, Any] = {}
    with lived.asked() as client:
        since = harvested(client, mirror, None)
    assert {name for name, (_, deleted, *_) in mirror.items() if deleted} == {ONE, TWO}
    assert "Third Rugs" in mirror[THREE][3]
    assert len({stamp for stamp, *_ in mirror.values()}) == 4
    anew.ingest([capture(1)])  # published now, and not at those dates
    assert rebuilt(anew) == 6
    with anew.asked() as client:
        assert state(client) == mirror
    anew.take(b=None, d=paper(4))
    anew.publish()
    with anew.asked() as client:
        harvested(client, mirror, since)
        assert mirror == state(client)
        assert len(mirror) == 7


@pytest.mark.thorough
def test_an_interrupted_rebuild_goes_on(
    lived: Repec, anew: Repec, monkeypatch: pytest.MonkeyPatch
) -> None:
    revise, done = rebuilding.revise, []

    def fail(*given: object) -> None:
        if len(done) == 2:
            raise Killed
        done.append(revise(*given))  # type: ignore[arg-type]

    monkeypatch.setattr(rebuilding, "revise", fail)
    with pytest.raises(Killed):
        rebuilt(anew)
    monkeypatch.setattr(rebuilding, "revise", revise)
    assert rebuilt(anew) == 4
    assert rebuilt(anew) == 0
    with lived.asked() as before, anew.asked() as after:
        assert state(after) == state(before)


def test_a_run_that_is_missing_is_no_change_to_be_left_out(anew: Repec) -> None:
    last = [record for record in read_records(anew.store) if record.run][-1]
    anew.store.remove(last.key)
    forged = last.document().replace(str(last.run).encode(), b"1795255200")
    anew.store.create(last.key, forged)
    with pytest.raises(DamagedStore, match="run 1795255200, which is missing"):
        rebuilt(anew)


def test_a_store_that_has_its_snapshots_is_not_rebuilt(lived: Repec) -> None:
    assert rebuilt(lived) == 0
