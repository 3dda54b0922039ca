"""A run is cut off at each of its steps; nobody sees anything of it, and given again it is whole.

KILL_ALL=1 ends it at the changes of temporary files as well, which nobody else sees.
"""

import itertools
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from builder.obi.history import is_open, standing
from builder.obi.run import abandon, claim, history
from builder.store.folder import FolderStore
from builder.verify.verify import verify
from functions.snapshot.errors import StoreError
from tests.bucket import Bucket, fresh
from tests.builder.obi.conftest import Time
from tests.builder.obi.holding import GATHER, Store, objects
from tests.builder.obi.test_verify import MEANS
from tests.builder.obi.writing import work, written
from tests.extent import ALL, EVERY, places
from tests.patience import in_real_time

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.builder.obi.writing"])


def killed(root: Path, time: Time, at: int) -> int | None:
    """Write a run up to its change `at`; return how many there were if it got through."""
    counted = root.with_name(f"counted-{root.name}")
    process = _PROCESSES.Process(target=work, args=(root, time.clock, at, counted, EVERY))
    process.start()
    wait([process.sentinel])
    process.join()
    if process.exitcode == -signal.SIGKILL:
        return None
    assert process.exitcode == 0, process.exitcode
    return int(counted.read_text())


def consistent(store: Store, before: int) -> bool:
    """Check that all of the run is there, or nothing of it counts; tell which."""
    runs = history(store)
    assert len(runs) in (before, before + 1)
    done = verify(store, MEANS)
    assert not done.damaged, done.findings
    unfinished = {f.code for f in done.findings} - {"temporary"}
    assert unfinished <= {"obi-run-unfinished"}, done.findings
    assert done.kinds[0].objects == done.kinds[0].read == len(runs) * 5
    return len(runs) > before


@pytest.fixture(scope="module")
def count(tmp_path_factory: pytest.TempPathFactory) -> int:
    found = killed(tmp_path_factory.mktemp("whole") / "store", Time(), 0)
    assert found is not None
    assert found > 9  # five objects, and four of the run itself
    return found


def test_a_process_may_be_killed_at_any_change(tmp_path: Path, count: int) -> None:
    """The same, given again, gives the very same bytes; or it is abandoned, and others go on."""
    whole = tmp_path / "whole"
    assert killed(whole, Time(), 0) == count
    expected = objects(FolderStore(whole))
    for at in places(count, 1):
        store = FolderStore(tmp_path / str(at))
        assert killed(store.root, Time(), at) is None
        over = consistent(store, 0)
        lacks_commit_alone = any("log.parquet" in m for m in standing(store).values())
        run = written(store, Time().runtime)
        if over or lacks_commit_alone:  # it counted already, so this is the next one
            assert [r.tist for r in history(store)] == [run.tist - 1, run.tist]
            assert expected.items() <= objects(store).items()
        else:
            assert objects(store) == expected
        assert consistent(store, len(history(store)) - 1)
        assert list((store.root / ".tmp").iterdir()) == []


def test_what_was_cut_off_can_be_given_up(tmp_path: Path, count: int) -> None:
    for at in places(count, 3):
        store = FolderStore(tmp_path / str(at))
        assert killed(store.root, Time(), at) is None
        begun = [tist for tist, members in standing(store).items() if is_open(members)]
        later = claim(store, GATHER, Time().runtime, wait=5)
        if begun:
            before = objects(store)
            if "log.parquet" not in standing(store)[begun[0]]:
                with pytest.raises(StoreError, match=f"--abandon {begun[0]}"):
                    later.turn()
                abandon(store, begun[0], "it died", Time().runtime)
            later.turn()
            assert before.items() <= objects(store).items()  # nothing goes
        later.commit([])
        assert not verify(store, MEANS).damaged
        assert all(not is_open(members) for members in standing(store).values())


class Cut(Exception):
    """The connection, the machine or the process is gone."""


class Breaking(Bucket):
    """A bucket to which so many requests are made that write; the last may come through or not."""

    left = 0
    through = False

    def create(self, key: str, data: bytes) -> None:
        self._step(lambda: super(Breaking, self).create(key, data))

    def create_file(self, key: str, path: Path) -> None:
        self._step(lambda: super(Breaking, self).create_file(key, path))

    def _step(self, write: Callable[[], None]) -> None:
        self.left -= 1
        if self.left > 0:
            write()
            return
        if self.left == 0 and self.through:
            write()
        raise Cut


@pytest.fixture
def buckets(moto_server: str) -> Iterator[Callable[[], Breaking]]:
    made: list[Breaking] = []

    def make() -> Breaking:
        with closing(fresh(moto_server)) as plain:
            made.append(Breaking(plain.endpoint, plain.bucket))
        return made[-1]

    yield make
    for bucket in made:
        bucket.close()


@in_real_time
@pytest.mark.sampled(2)
@pytest.mark.parametrize("through", [False, True], ids=["not-made", "made"])
def test_a_bucket_may_be_lost_at_any_write(buckets: Callable[[], Breaking], through: bool) -> None:
    expected: dict[str, bytes] = {}
    for step in itertools.count(1, 1 if ALL else 3):
        store = buckets()
        store.left, store.through = step, through
        try:
            written(store, Time().runtime)
        except Cut:
            pass
        else:
            assert objects(store) == expected
            break
        store.left = 1 << 30
        over = consistent(store, 0)
        lacks_commit_alone = any("log.parquet" in m for m in standing(store).values())
        written(store, Time().runtime)
        if not (over or lacks_commit_alone):
            expected = expected or objects(store)
            assert objects(store) == expected
        else:
            assert expected.items() <= objects(store).items()
    assert step == 10  # open, five objects, documents, log, commit: then all is over
