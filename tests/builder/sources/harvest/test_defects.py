"""A harvest against each defect that repositories have: nothing is lost, nothing comes twice."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.builder.sources.harvest import wire
from tests.builder.sources.harvest.defects import DEFECTS
from tests.builder.sources.harvest.element import Item
from tests.builder.sources.harvest.kept import Kept, expected, kept
from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import NOW, Answer, Call, Provider, items
from tests.e2e.conftest import sheaf

COUNT = 60
MOST = 120  # requests, in whatever way a list goes on and on
SETTINGS = {"TRIES": "3", "WAIT_SECONDS": "0.02", "FIRST_BYTE_SECONDS": "0.4"}
State = dict[str, tuple[str, bool, str]]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(f"SHEAF_HTTP_{name}", value)


def harvested(provider: Provider, home: Path, *more: object) -> tuple[int, dict[str, Any], Kept]:
    """Harvest; return the exit code, the account, and what is kept."""
    done = sheaf("harvest", provider.url, home, "--json", *more)
    assert "Traceback" not in done.err
    (told,) = done.json
    return done.code, told, kept(home)


def titled(begin: str) -> Callable[[State], State]:
    """Return what becomes of titles that begin with something."""
    return lambda state: {
        name: (stamp, gone, title and begin + title) for name, (stamp, gone, title) in state.items()
    }


def stamped(end: Callable[[str], str]) -> Callable[[State], State]:
    return lambda state: {name: (end(s), gone, title) for name, (s, gone, title) in state.items()}


@dataclass(frozen=True)
class Outcome:
    """How a harvest ends where that is not as ever: its code, a word of its account, its state."""

    code: int = 0
    says: str = ""
    of: Callable[[State], State] = lambda state: state
    mended: str = ""


ROUND = Outcome(says="is a loop")
OUTCOMES = {
    "same-token": ROUND,
    "token-cycle": ROUND,
    "fresh-tokens": ROUND,
    "empty-pages": ROUND,
    **{
        f"tokens-die{status}": Outcome(says="started again at")
        for status in ("", "-401", "-404", "-422", "-500")
    },
    "bad-record-500": Outcome(1, "one by one"),
    "bad-record-cut": Outcome(1, "one by one"),
    "bad-bytes": Outcome(of=titled("ÿÃ"), mended="windows-1252"),
    "bare-ampersand": Outcome(of=titled("B & C, R&D;"), mended="escaped"),
    "control-characters": Outcome(of=titled("ab"), mended="removed"),
    "control-references": Outcome(mended="removed"),
    "non-characters": Outcome(mended="removed"),
    "surrogates": Outcome(of=titled("😀"), mended="removed"),
    "entities": Outcome(of=titled("éŠ"), mended="were replaced"),
    "day-stamps": Outcome(of=stamped(lambda text: text[:10])),
    "odd-stamps": Outcome(of=stamped(lambda text: text.replace("Z", ".123+00:00"))),
}


def check_what_changes_comes_with_the_next_run(provider: Provider, name: str, home: Path) -> None:
    # Without a responseDate the harvester goes by its own clock.
    own = datetime.now(UTC).replace(microsecond=0)
    provider.now = max(NOW, own) + timedelta(days=2)
    provider.seen.clear()
    provider.change(provider.items["oai:a.cz:2"], title="Another")
    provider.delete("oai:a.cz:5")
    provider.change(Item("oai:a.cz:new", provider.now, "New"))
    calls = len(provider.calls)
    code, told, found = harvested(provider, home)
    since = [c.arguments.get("from") for c in provider.calls[calls:] if c.is_list]
    assert found.state == expected(provider.state())
    assert code == 0, told
    assert found.doubled == []
    assert (told["new"], told["changed"], told["deleted"]) == (1, 2, 1)
    assert any(since) or name == "no-dates"


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", sorted(DEFECTS))
def test_a_defect_is_survived(name: str, tmp_path: Path) -> None:
    outcome = OUTCOMES.get(name, Outcome())
    poison = frozenset({"oai:a.cz:27"}) if name.startswith("bad-record") else frozenset()
    with serving(items(COUNT), name, poison=poison, hang=1.0, token_life=2) as provider:
        code, told, found = harvested(provider, tmp_path)
        assert len(provider.calls) <= MOST
        state = outcome.of(expected(provider.state()))
        # It takes time to hang, and an empty list has a test of its own.
        if name not in OUTCOMES and name not in ("hang", "empty-list"):
            check_what_changes_comes_with_the_next_run(provider, name, tmp_path)
    assert found.doubled == []
    assert found.state == {one: said for one, said in state.items() if one not in poison}
    assert code == outcome.code, told
    assert told["status"] == ("partial" if poison else "complete")
    assert [one["identifier"] for one in told["missing"]] == sorted(poison)
    assert outcome.says in " ".join(told["notes"])
    assert bool(told["notes"]) == bool(outcome.says), told["notes"]
    faults = {row.fault for row in found.rows if not row.deleted}
    if name in ("odd-stamps",):
        assert faults == {"its datestamp is not valid in OAI-PMH"}
    elif outcome.mended:
        assert all(outcome.mended in str(fault) for fault in faults), faults


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(12))
def test_defects_at_once_are_survived(seed: int, tmp_path: Path) -> None:
    """Of the wire's troubles, of what is sent, and of lists one each."""
    rng = random.Random(seed)
    plain = DEFECTS.keys() - OUTCOMES.keys() - {"hang", "empty-list", "html-type"}
    troubles = sorted(plain & {"503", "429", "500", "cut", "cut-chunked", "reset", "html", "empty"})
    sent = sorted((plain & wire.DEFECTS.keys()) - {*troubles} - {"utf-16", "cp1252", "latin1-told"})
    lists = sorted(DEFECTS.keys() - wire.DEFECTS.keys() - {"bad-record-500", "bad-record-cut"})
    names = [rng.choice(some) for some in (troubles, sent, lists)]
    with serving(items(COUNT), *names) as provider:
        _, told, found = harvested(provider, tmp_path)
        assert found.state == expected(provider.state()), names
        assert len(provider.calls) <= 2 * MOST, names
    assert found.doubled == [], names
    assert told["status"] == "complete", (names, told)


@pytest.mark.parametrize("name", ["", "tokens-die", "offset-tokens", "no-order"])
def test_a_repository_that_changes_on_the_way_is_had_in_the_end(name: str, tmp_path: Path) -> None:
    """What is changed while a list is walked may be missed in it, and comes with the next run.

    Where tokens count, what did not change is missed, too: that is told, and --full brings it.
    """

    def changing(provider: Provider, call: Call, answer: Answer) -> Answer:
        if call.is_list and call.number < 12:
            provider.now = provider.now.replace(minute=call.number)
            for number in range(call.number, COUNT, 9):
                item = provider.items[f"oai:a.cz:{number}"]
                provider.change(item, title=f"At {call.number}", deleted=number % 4 == 0)
        return answer

    counts = name in ("offset-tokens", "no-order")
    with serving(items(COUNT), *filter(None, [name])) as provider:
        provider.answers.append(changing)
        _, told, _ = harvested(provider, tmp_path)
        assert ("the list ended after" in " ".join(told["notes"])) == counts
        provider.answers.remove(changing)
        _, told, found = harvested(provider, tmp_path, *(["--full"] if counts else []))
        assert found.state == expected(provider.state())
    assert told["status"] == "complete"
    assert found.doubled == []


def test_nothing_new_is_no_fault_however_it_is_told(tmp_path: Path) -> None:
    for name in ("gzip", "empty-list", "errors-404"):
        with serving(items(30), name) as provider:
            harvested(provider, tmp_path / name)
            provider.now = NOW.replace(day=28)
            code, told, _ = harvested(provider, tmp_path / name, "--from", "2026-11-27")
        assert (code, told["records"], told["status"]) == (0, 0, "complete")
