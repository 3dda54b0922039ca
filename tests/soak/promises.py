"""What must hold at the end of a soak test."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.soak.actors import SoakHarvester
from tests.soak.items import Item
from tests.soak.report import Report
from tests.soak.shell import Shell
from tests.soak.walker import Walker, walk

_SHOWN = 5


@dataclass(frozen=True)
class CopiedRecord:
    """A record as a harvester keeps it."""

    datestamp: str
    deleted: bool
    sets: tuple[str, ...]
    title: str
    record: str


Copy = Mapping[str, CopiedRecord]


def read_copy(folder: Path, report: Report) -> dict[str, dict[str, CopiedRecord]]:
    """Return the records of a harvest by prefix and identifier; the last row of each counts.

    An unchanged record that was stored twice is a broken promise.
    """
    copies: dict[str, dict[str, CopiedRecord]] = {}
    for path in sorted(folder.glob("*/harvest.json")):
        state = json.loads(path.read_text("utf-8"))
        copy = copies.setdefault(state["prefix"], {})
        for name, record in _rows(path.parent, [part["name"] for part in state["parts"]]):
            if copy.get(name) == record:
                report.fail(f"{path.parent}: {name} of {record.datestamp} is stored twice")
            copy[name] = record
    return copies


def _rows(folder: Path, parts: list[str]) -> Iterator[tuple[str, CopiedRecord]]:
    for part in parts:
        for line in (folder / part).read_text("utf-8").splitlines():
            row = json.loads(line)
            yield (
                row["identifier"],
                CopiedRecord(
                    row["datestamp"],
                    row["deleted"],
                    tuple(row.get("sets", ())),
                    " ".join(row.get("dc_title") or ()),
                    row["record"],
                ),
            )


def check_copies(harvester: SoakHarvester, fresh: Mapping[str, Copy], report: Report) -> None:
    """A harvester's copy equals what is harvested anew, in each of its formats."""
    copies = read_copy(harvester.copy, report)
    for prefix in harvester.habit.prefixes:
        mine, truth = copies.get(prefix, {}), fresh.get(prefix, {})
        _compare(f"{harvester.name}, {prefix}", mine, truth, report)


def check_walker(walker: Walker, fresh: Copy, report: Report) -> None:
    """The headers of one that walked lists equal those that are harvested anew."""
    mine = {name: (one.datestamp, one.deleted) for name, one in walker.held.items()}
    truth = {name: (one.datestamp, one.deleted) for name, one in fresh.items()}
    _compare(walker.name, mine, truth, report)


def check_items(expected: Mapping[str, Item], fresh: Copy, report: Report) -> None:
    """Each item is what its writer made it: title, collections, deleted or not."""
    mine = {name: (item.deleted, *_shown(item)) for name, item in expected.items()}
    truth = {}
    for name in expected:
        if (one := fresh.get(name)) is not None:
            shelves = frozenset(
                spec.removeprefix("collection:")
                for spec in one.sets
                if spec.startswith("collection:")
            )
            title = "" if one.deleted else one.title
            truth[name] = (one.deleted, title, shelves)
    _compare("items", truth, mine, report)


def _shown(item: Item) -> tuple[str, frozenset[str]]:
    return "" if item.deleted else item.title, item.collections


def _compare(
    who: str, mine: Mapping[str, object], truth: Mapping[str, object], report: Report
) -> None:
    wrong = [name for name in sorted({*mine, *truth}) if mine.get(name) != truth.get(name)]
    for name in wrong[:_SHOWN]:
        has, should = mine.get(name), truth.get(name)
        report.fail(f"{who}: {name} is {str(has)[:300]}, and should be {str(should)[:300]}")
    if len(wrong) > _SHOWN:
        report.fail(f"{who}: {len(wrong)} of {len(truth)} are wrong")


def check_lists(url: str, prefixes: list[str], fresh: Mapping[str, Copy], report: Report) -> None:
    """No identifier comes twice within a list, and each list has what was harvested."""
    for prefix in prefixes:
        found = walk(url, prefix)
        if found.repeated:
            report.fail(f"{prefix}: {found.repeated[:3]} came twice within a list")
        if found.headers.keys() != fresh[prefix].keys():
            report.fail(f"{prefix}: a list has other items than a harvest of it")


def check_store(shell: Shell, report: Report) -> None:
    """`sheaf verify` finds no damage."""
    ended = shell.run(["verify"])
    if ended.code != 0:
        report.fail(f"verify ended with {ended.code}: {(ended.out + ended.err)[-1500:]}")
