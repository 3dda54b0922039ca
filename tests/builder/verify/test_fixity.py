"""Checks that are recorded cover a store part by part; a copy is compared with its store."""

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.store.folder import FolderStore
from builder.verify.report import record
from functions.snapshot.errors import Conflict, DamagedStore
from functions.snapshot.fixity import FIXITY, KEPT, CheckReport, find_since, next_part, read_reports
from tests.e2e.conftest import Home, make_home

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def report(day: int, part: str = "", percent: float | None = None) -> CheckReport:
    return CheckReport(DAY + timedelta(day), DAY + timedelta(day), 1, part, percent)


@given(st.integers(1, 9), st.integers(0, 40), st.sampled_from([None, "2/3", "1/1", ""]))
def test_the_part_that_is_due_covers_the_store_in_as_many_checks(
    count: int, days: int, other: str | None
) -> None:
    reports: list[CheckReport] = []
    for day in range(days):
        if other is not None and day == days // 2:  # a check of another kind changes nothing
            reports.append(report(-1, other))
        reports.append(report(day, f"{next_part(reports, count)}/{count}"))
    due = [one for one in reports if one.began >= DAY and one.part.endswith(f"/{count}")]
    assert {one.part for one in due[-count:]} == {
        f"{n}/{count}" for n in range(1, min(count, days) + 1)
    }
    if days >= count:
        assert find_since(reports) == max(due[-count].began, DAY - timedelta(1))


def test_a_sample_covers_nothing_and_a_whole_check_all() -> None:
    assert find_since([]) is None
    assert find_since([report(1, percent=99.0), report(2, "1/2")]) is None
    assert find_since([report(1), report(2, "1/2")]) == DAY + timedelta(1)


class Raced(FolderStore):
    """Another check records its report before each of the first replacements."""

    left = 2

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        if self.left:
            self.left -= 1
            store = FolderStore(self.root)
            theirs = report(self.left, "1/2").to_json()
            now = store.read(FIXITY) if store.tag(FIXITY) else b""
            store.replace(FIXITY, now + theirs, store.tag(FIXITY))
        return super().replace(key, data, tag)


def test_reports_of_checks_at_once_are_all_kept(tmp_path: Path) -> None:
    store = Raced(tmp_path)
    record(store, report(9))
    assert [one.began for one in read_reports(store)] == [report(n).began for n in (1, 0, 9)]
    store.left = 99
    with pytest.raises(Conflict):
        record(store, report(10))


def test_only_so_many_reports_are_kept_and_damage_is_named(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    lines = b"".join(report(day).to_json() for day in range(KEPT))
    later = json.dumps({**json.loads(report(0).to_json()), "later": 1}).encode()
    store.replace(FIXITY, lines + later, None)
    record(store, report(KEPT + 1))
    kept = read_reports(store)
    assert (len(kept), kept[0], kept[-2]) == (KEPT, report(2), report(0))
    store.replace(FIXITY, b"{}\n", store.tag(FIXITY))
    with pytest.raises(DamagedStore, match=r"fixity\.jsonl is damaged: .*; remove it"):
        record(store, report(1))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Give a store of one snapshot."""
    folder = tmp_path_factory.mktemp("fixity")
    home = make_home(folder / "home")
    pages = {f"http://a.cz/{n}": b"<title>A</title>" for n in range(9)}
    home.publish_pages(folder / "a.warc.gz", pages)
    return home


def test_parts_that_are_due_are_recorded_until_all_was_read(home: Home) -> None:
    store = FolderStore(home.folder / "store")
    for number in (1, 2, 3, 1):
        done = home("verify", "--part", "next/3", "--record", "--json")
        assert (done.code, done.json["part"]) == (0, f"{number}/3")
    reports = read_reports(store)
    assert [one.part for one in reports] == ["1/3", "2/3", "3/3", "1/3"]
    assert sum(one.read for one in reports[:3]) == reports[0].objects > 3
    assert find_since(reports) == reports[1].began
    assert not any(one.damage for one in reports)
    for options in (("--part", "next/400"), ("--newest", "--record"), ("--part", "next/0")):
        assert home("verify", *options).code == 2


def test_damage_is_recorded(home: Home, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert home("copy", copy).code == 0
    hurt = max((copy / "records" / "records").iterdir())
    hurt.write_bytes(b"x" + hurt.read_bytes()[1:])
    assert home("verify", "--record", "--store", copy).code == 1
    (found,) = read_reports(FolderStore(copy))
    assert (found.damage, found.codes, found.part) == (1, {"file-digest": 1}, "")


def test_a_copy_is_compared_object_by_object(home: Home, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert home("copy", copy).code == 0
    done = home("verify", "--against", copy)
    assert (done.code, done.out.splitlines()[-1]) == (0, "no differences found")
    files = sorted((copy / "records").rglob("*.parquet"))
    flipped, short, gone = random.Random(1).sample(files, 3)
    data = bytearray(flipped.read_bytes())
    data[len(data) // 2] ^= 1
    flipped.write_bytes(data)
    short.write_bytes(short.read_bytes()[:-1])
    gone.unlink()
    found = home("verify", "--against", copy, "--json")
    assert found.code == 1
    assert {one["object"]: one["code"] for one in found.json["findings"]} == {
        str(path.relative_to(copy)): f"comparison-{code}"
        for path, code in ((flipped, "differs"), (short, "differs"), (gone, "missing"))
    }
    assert home("verify", "--against", home.folder / "store").code == 2


def test_a_copy_that_is_behind_differs_in_nothing(home: Home, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert home("copy", copy).code == 0
    pages = {"http://b.cz/": b"<title>B</title>"}
    home.publish_pages(tmp_path / "b.warc.gz", pages)
    done = home("verify", "--against", copy, "--json")
    assert (done.code, done.json["snapshots"], done.json["findings"]) == (0, [1], [])
