"""A harvest that is killed again and again comes to what one that is left alone comes to."""

import random
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from builder.sources.harvest import folder as folders
from builder.sources.harvest.version import HarvestedRow
from tests.builder.sources.harvest.forker import Forker, forker
from tests.builder.sources.harvest.kept import expected, kept
from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import NOW, Answer, Call, Provider, items
from tests.extent import EVERY

COUNT, PAGE = 1200 if EVERY else 240, 6  # so that there is something left to be killed
LIFE = COUNT // 26  # requests that a token lives for: what changes at once comes within them
FIRST, NEXT = 6, 4  # requests that are let through at most before a kill; three are of no list
KILLS = 60 if EVERY else 10  # of each of ten harvests
CHAINS = [
    # form, seconds between commits, defects
    ("parquet", "0", ()),
    ("parquet", "0.02", ()),
    ("parquet", "0.05", ("no-order",)),
    ("parquet", "0", ("tokens-die",)),
    ("parquet", "0.01", ("overlapping-pages", "gzip")),
    ("jsonl", "0", ("cut",)),
    ("jsonl", "0.02", ("single-use-tokens",)),
    ("jsonl", "0", ("control-references", "503")),
    ("xml", "0.01", ()),
    ("xml", "0", ("fresh-tokens",)),
]


@dataclass
class Killer:
    """Kills what is at work when so many more requests came, and a little later."""

    forker: Forker
    rng: random.Random
    left: int = 0
    killed: int = 0

    def arm(self, most: int) -> None:
        self.left = self.rng.randint(1, most)

    def __call__(self, provider: Provider, call: Call, answer: Answer) -> Answer:
        self.left -= 1
        if self.left == 0:
            pause = self.rng.choice((0.0, 0.0005, 0.002, 0.005, 0.02)) * self.rng.random()
            threading.Timer(pause, self.kill).start()
        return answer

    def kill(self) -> None:
        self.killed += 1
        self.forker.kill()


@pytest.fixture(scope="module")
def processes() -> Iterator[Forker]:
    with forker() as found:
        yield found


def versions(rows: tuple[HarvestedRow, ...]) -> Counter[tuple[object, ...]]:
    """Return the rows, each as often as it is there; in whichever run, for one may end unseen."""
    return Counter((r.identifier, r.datestamp, r.deleted, r.sets, r.record) for r in rows)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("number", range(len(CHAINS)))
def test_a_killed_harvest_comes_to_the_same(number: int, processes: Forker, tmp_path: Path) -> None:
    form, every, defects = CHAINS[number]
    config = tmp_path / "sheaf.toml"  # no killed run waits before it asks again
    config.write_text("[http]\nbackoff_seconds = 0\n")
    more = ("--format", form, "--every", every, "--overlap", "3600", "--config", config)
    killer = Killer(processes, random.Random(number))
    with serving(items(COUNT), *defects, page_size=PAGE, token_life=LIFE) as provider:
        alone, torn = tmp_path / "alone", tmp_path / "torn"

        def left_alone(home: Path) -> int:
            provider.seen.clear()
            provider.used.clear()
            processes.begin("harvest", provider.url, home, *more)
            return processes.ended()

        def killed(home: Path, times: int, most: int) -> None:
            provider.seen.clear()
            provider.used.clear()
            provider.answers.append(killer)
            for _ in range(times):
                killer.arm(most)
                processes.begin("harvest", provider.url, home, *more)
                code = processes.ended()
                assert code in (-9, 0)
                # What a killed process left is a part of what there will be, each row once.
                for state in home.glob(f"*/{folders.STATE}"):
                    found = folders.read(state.parent)
                    assert found is not None
                    rows = versions(tuple(folders.rows(state.parent, found)))
                    assert not rows - whole
                if code == 0:
                    break
            killer.left = 0
            provider.answers.remove(killer)

        for times, most in ((KILLS * 2 // 3, FIRST), (KILLS - KILLS * 2 // 3, NEXT)):
            assert left_alone(alone) == 0
            whole = versions(kept(alone).rows)
            killed(torn, times, most)
            assert left_alone(torn) == 0
            assert versions(kept(torn).rows) == whole
            assert kept(torn).state == kept(alone).state == expected(provider.state())
            assert kept(torn).doubled == []
            provider.now = NOW.replace(day=23)
            for at in range(0, COUNT, 5):
                item = provider.items[f"oai:a.cz:{at}"]
                provider.change(item, title=f"Changed {at}", deleted=at % 3 == 0)
    assert killer.killed >= KILLS // 2
