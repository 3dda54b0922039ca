"""Records of publishes: a chain that verify walks, and whose end follows from the snapshot."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from builder.obi.publishes import PUBLISH, PUBLISHES, REINSTATE, WITHDRAW, read_records
from builder.publish.rebuild import rebuild
from builder.publish.reinstate import reinstate
from builder.publish.selection import Selection
from builder.publish.withdraw import withdraw
from builder.snapshot.transaction import NothingSelectedError
from builder.verify.obi_publishes import publish_findings
from tests.builder.conftest import capture
from tests.builder.obi.archive import Repec, state
from tests.builder.obi.test_publish import ONE, TWO, sound
from tests.builder.sources.redif.trees import paper


def take_down(repec: Repec, *items: str) -> None:
    repec.clock.sleep(10)
    repec.withdraw(Selection(identifiers=items))


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repec]:
    """Five records: two publishes, two withdrawals and a reinstatement; then captures alone."""
    repec = Repec(tmp_path_factory.mktemp("lived") / "store")
    repec.publish_tree(a=paper(1), b=paper(2))
    take_down(repec, ONE)
    take_down(repec, TWO)
    repec.publish_tree(c=paper(3))
    repec.clock.sleep(10)
    repec.reinstate(ONE)
    repec.add([capture(1)])
    repec.clock.sleep(60)
    yield repec
    repec.close()


@pytest.fixture
def repec(lived: Repec, tmp_path: Path) -> Iterator[Repec]:
    shutil.copytree(lived.root, tmp_path / "store")
    copy = Repec(tmp_path / "store")
    copy.clock.now, copy.files = lived.clock.now, dict(lived.files)
    yield copy
    copy.close()


def findings(repec: Repec) -> set[tuple[str, int]]:
    """Return the codes of the findings, each with the number of the record, from 1."""
    keys = list(repec.store.keys(PUBLISHES))
    return {
        (finding.code.removeprefix("obi-publish-"), keys.index(finding.object) + 1)
        for finding in publish_findings(repec.store, repec.clock.now)
    }


def findings_of(repec: Repec) -> list[str]:
    return [finding.code for finding in publish_findings(repec.store, repec.clock.now)]


def record(repec: Repec, number: int) -> Path:
    return sorted((repec.root / "obi/;publishes").iterdir())[number - 1]


def replace_member(path: Path, *, without: str = "", **changed: object) -> None:
    members = {**json.loads(path.read_bytes()), **changed}
    members.pop(without, None)
    path.write_bytes(json.dumps(members, ensure_ascii=False, indent=1).encode() + b"\n")


def test_each_change_of_templates_is_a_link(repec: Repec) -> None:
    records = read_records(repec.store)
    kinds = [PUBLISH, WITHDRAW, WITHDRAW, PUBLISH, REINSTATE]
    assert [link.kind for link in records] == kinds
    assert [link.identifiers for link in records] == [(), (ONE,), (TWO,), (), (ONE,)]
    assert records[0].previous is None
    assert [link.previous for link in records[1:]] == [link.link() for link in records[:-1]]
    assert sound(repec) == []


def interrupt(seconds: float) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("following", ["publish", "withdraw", "reinstate"])
@pytest.mark.parametrize("change", [withdraw, reinstate])
def test_a_change_that_was_killed_behind_the_pointer_is_recorded_by_the_next(
    repec: Repec, change: Callable[..., object], following: str
) -> None:
    """It is killed while it waits for its instant; a rebuild from `obi/` must know of it."""
    item, reasons = (ONE, ("asked for",)) if change is withdraw else (TWO, ())
    killed = replace(repec.runtime(), sleep=interrupt)
    chosen = Selection(identifiers=(item,))
    with pytest.raises(KeyboardInterrupt):
        change(repec.store, repec.configuration(), killed, chosen, *reasons)
    repec.clock.sleep(60)
    assert findings_of(repec) == ["obi-publish-missing"]
    if following == "publish":
        repec.publish()
    elif following == "withdraw":
        take_down(repec, item if change is withdraw else ONE)
    else:
        with suppress(NothingSelectedError):
            repec.reinstate(item if change is reinstate else TWO)
    repec.clock.sleep(60)
    assert read_records(repec.store)[5].identifiers == (item,)
    assert sound(repec) == []
    new = Repec(repec.root.parent / "new")
    shutil.copytree(repec.root / "obi", new.root / "obi")
    new.clock.now = repec.clock.now
    rebuild(new.store, new.configuration(), new.runtime(), {})
    with repec.asked() as client, new.asked() as rebuilt:
        before = {name: row for name, row in state(client).items() if "RePEc" in name}
        assert state(rebuilt) == before
    new.close()


def swapped(repec: Repec) -> None:
    """The records of two withdrawals have each other's items."""
    second, third = record(repec, 2), record(repec, 3)
    replace_member(second, identifiers=[TWO])
    replace_member(third, identifiers=[ONE])


def inserted(repec: Repec) -> None:
    third = record(repec, 3)
    at = int(third.name[:11]) - 5
    path = third.with_name(f"{at:011}.json")
    path.write_bytes(third.read_bytes())
    moment = json.loads(third.read_bytes())["effective"]
    replace_member(path, effective=moment.replace(moment[-3:-1], f"{int(moment[-3:-1]) - 5:02}"))


def unlinked(repec: Repec) -> None:
    """A record as Sheaf 0.2 wrote it, between others."""
    replace_member(record(repec, 3), without="previous")


EDITS: dict[Callable[[Repec], None], set[tuple[str, int]]] = {
    swapped: {("edited", 2), ("edited", 3)},
    inserted: {("edited", 3)},
    unlinked: {("edited", 3)},
    lambda repec: replace_member(record(repec, 2), reason="another"): {("edited", 2)},
    lambda repec: replace_member(record(repec, 4), run=1): {("edited", 4)},
    lambda repec: replace_member(record(repec, 5), identifiers=[TWO]): {("edited", 5)},
    lambda repec: replace_member(record(repec, 5), kind=WITHDRAW): {("edited", 5)},
    lambda repec: replace_member(record(repec, 1), previous=None, more=1): {("edited", 1)},
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_altered_link_is_named(repec: Repec, edit: Callable[[Repec], None]) -> None:
    edit(repec)
    assert findings(repec) == EDITS[edit]
    assert sound(repec) != []  # it is damage: exit 1


@pytest.mark.parametrize("number", range(1, 6))
def test_a_removed_link_is_named_and_the_last_one_written_again(repec: Repec, number: int) -> None:
    path = record(repec, number)
    data = path.read_bytes()
    path.unlink()
    (finding,) = publish_findings(repec.store, repec.clock.now)
    assert (finding.code, finding.object) == ("obi-publish-missing", PUBLISHES + path.name)
    if number == 5:
        repec.publish()
        assert path.read_bytes() == data
        assert sound(repec) == []


def test_a_chain_begins_behind_records_of_an_earlier_sheaf(repec: Repec) -> None:
    for number in range(1, 6):
        replace_member(record(repec, number), without="previous")
    assert sound(repec) == []
    take_down(repec, ONE)
    last = read_records(repec.store)[-2:]
    assert [link.is_linked for link in last] == [False, True]
    assert last[1].previous == last[0].link()
    assert sound(repec) == []
    record(repec, 5).unlink()
    assert findings_of(repec) == ["obi-publish-missing"]
