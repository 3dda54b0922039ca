"""Folders of harvests: what was committed is there, and what was not is not, in each form."""

import json
import shutil
import sqlite3
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from builder.errors import UsageError
from builder.sources.harvest import folder, records
from builder.sources.harvest.errors import HarvestError
from builder.sources.harvest.folder import HarvestFolder
from builder.sources.harvest.seen import Seen
from builder.sources.harvest.state import (
    COMPLETE,
    Counts,
    HarvestRun,
    HarvestState,
    RunState,
    parse,
)
from builder.sources.harvest.version import DC, HarvestedRow, Sight
from tests.extent import examples

OAI = "http://www.openarchives.org/OAI/2.0/"


def row(number: int, title: str = "T", run: int = 1, **more: object) -> HarvestedRow:
    record = (
        f'<record xmlns="{OAI}"><header><identifier>oai:a.cz:{number}</identifier>'
        f"<datestamp>2026-11-22</datestamp><setSpec>a</setSpec></header><metadata>"
        f'<d xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></d>\n'
        f"</metadata></record>"
    )
    found = HarvestedRow(
        f"oai:a.cz:{number}",
        "2026-11-22",
        False,
        ("a",),
        {"title": (title,)},
        record,
        "2026-11-22T10:00:00Z",
        run,
    )
    return replace(found, **more)  # type: ignore[arg-type]


def fresh(form: str = "parquet") -> HarvestState:
    return HarvestState("http://a.cz/oai", "oai_dc", None, form)


def opened(path: Path, form: str = "parquet") -> AbstractContextManager[HarvestFolder]:
    return folder.open_folder(path, fresh(form), form)


def rows(path: Path) -> list[HarvestedRow]:
    found = folder.read(path)
    assert found is not None
    return list(folder.rows(path, found))


@pytest.mark.parametrize("form", folder.FORMS)
def test_rows_are_read_as_they_were_written(form: str, tmp_path: Path) -> None:
    written = [
        row(1, "A &amp; B – ěšč", fault="what ?> was mended"),
        row(2, dc={name: (name, "2") for name in DC} if form != "xml" else {"title": ("T",)}),
        row(3, "x\u2028y\r"),
        row(4, record=row(4).record.replace(f' xmlns="{OAI}"', "")),
    ]
    if form == "xml":
        written = [replace(one, harvested="") for one in written]
        written[0] = replace(
            written[0], dc={"title": ("A & B – ěšč",)}, fault="what ? > was mended"
        )
        written[2] = replace(written[2], dc={"title": ("x\u2028y",)})
    path = tmp_path / folder.part_name(1, 0, form)
    writer = records.open_part(path, form)
    for one in written:
        writer.append(one)
    writer.close()
    assert list(records.read_part(path, 1)) == written
    if form == "xml":
        etree.parse(path)
    elif form == "jsonl":
        assert "null" not in path.read_text("utf-8")


@pytest.mark.parametrize("form", folder.FORMS)
def test_what_was_committed_stays_and_what_was_not_goes(form: str, tmp_path: Path) -> None:
    with opened(tmp_path, form) as kept:
        assert kept.add(row(1)) is Sight.NEW
        kept.commit()
        assert kept.add(row(2)) is Sight.NEW
    (tmp_path / folder.part_name(7, 7, form)).write_text("rubbish")
    (tmp_path / "harvest.json.draft").write_text("{")
    (tmp_path / "mine.txt").write_text("of somebody")
    assert [one.identifier for one in rows(tmp_path)] == ["oai:a.cz:1"]
    other = next(one for one in folder.FORMS if one != form)
    with pytest.raises(UsageError, match=f"has the format {form}"), opened(tmp_path, other):
        pass
    with folder.open_folder(tmp_path, fresh(other)) as kept:
        assert kept.state.form == form
    with opened(tmp_path, form) as kept:
        assert not kept.remade
        with (
            pytest.raises(UsageError, match="another process is harvesting"),
            opened(tmp_path, form),
        ):
            pass
        assert kept.add(row(1)) is Sight.AGAIN
        assert kept.add(row(2)) is Sight.NEW
        assert kept.add(row(2, "U")) is Sight.ANOTHER
        assert kept.add(row(2)) is Sight.AGAIN
        kept.commit()
    assert [one.identifier[-1] for one in rows(tmp_path)] == ["1", "2", "2"]
    names = {path.name for path in tmp_path.iterdir()}
    assert "mine.txt" in names
    assert sum(map(folder.is_part, names)) == 2
    assert not any(name.endswith(".draft") for name in names)


@pytest.mark.parametrize("form", folder.FORMS)
@pytest.mark.parametrize("harm", ["gone", "older", "newer", "damaged", "empty", "form", "page"])
def test_the_index_is_made_again_where_it_is_not_that_of_the_parts(
    form: str, harm: str, tmp_path: Path
) -> None:
    index = tmp_path / folder.SEEN
    with opened(tmp_path, form) as kept:
        kept.add(row(1))
        kept.commit()
    shutil.copy(index, tmp_path / "older")
    with opened(tmp_path, form) as kept:
        kept.add(row(2))
        kept.commit()
        if harm == "newer":  # as if the process had ended before the state was written
            kept.add(row(3))
            kept.seen.commit(kept.state.commit + 1)
    if harm == "older":
        shutil.copy(tmp_path / "older", index)
    elif harm in ("damaged", "empty"):
        index.write_bytes(b"no index at all" * 100 if harm == "damaged" else b"")
    elif harm == "gone":
        index.unlink()
    elif harm == "form":
        with sqlite3.connect(index) as base:
            base.execute("PRAGMA user_version = 1")
    elif harm == "page":
        data = index.read_bytes()
        index.write_bytes(data[:4096] + bytes(4096) + data[8192:])
    with opened(tmp_path, form) as kept:
        assert kept.remade
        assert [kept.add(row(n)) for n in (1, 2, 3)] == [Sight.AGAIN, Sight.AGAIN, Sight.NEW]
        assert not kept.seen.list_unlisted(1)
        assert len(kept.seen.list_unlisted(2)) == 3


def test_what_came_in_an_earlier_run_is_the_same_or_changed(tmp_path: Path) -> None:
    with opened(tmp_path) as kept:
        kept.add(row(1))
        kept.add(row(2))
        kept.commit()
        kept.seen.begin()
        assert kept.add(row(1, run=2)) is Sight.SAME
        assert kept.add(row(1, run=2)) is Sight.AGAIN
        assert len(kept.seen.list_unlisted(2)) == 1
        assert kept.add(row(2, "U", run=2)) is Sight.CHANGED
        assert kept.seen.has("oai:a.cz:2", "2026-11-22")
        assert not kept.seen.has("oai:a.cz:2", "2026-11-23")
        assert not kept.seen.has("oai:a.cz:9", "2026-11-22")
        kept.seen.begin()
        assert kept.add(row(2, run=3)) is Sight.CHANGED  # it is again as it was


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=examples(12),
)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.booleans()), max_size=10))
def test_a_version_comes_once_in_a_run_however_often_it_is_opened(
    tmp_path: Path, some: list[tuple[int, int, bool]]
) -> None:
    """Against a model: what is kept of a run is what was not there in it, and is not the last."""
    path = tmp_path / "x"
    shutil.rmtree(path, ignore_errors=True)
    last: dict[int, int] = {}
    kept_now: set[tuple[int, int]] = set()
    expected = []
    for number, version, remake in some:
        if remake and path.exists():
            (path / folder.SEEN).unlink()
        with opened(path) as kept:
            sight = kept.add(row(number, str(version)))
            kept.commit()
        if last.get(number) != version and (number, version) not in kept_now:
            expected.append((number, str(version)))
            last[number] = version
            kept_now.add((number, version))
            assert sight in (Sight.NEW, Sight.ANOTHER)
        else:
            assert sight is Sight.AGAIN
    if some:
        found = [(int(one.identifier[-1]), one.dc["title"][0]) for one in rows(path)]
        assert found == expected


@pytest.mark.parametrize("others", [(), ("notes.txt",)])
def test_of_a_harvest_that_never_began_nothing_is_left(
    others: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "one"
    with opened(path) as kept:
        kept.keep_sets([("a", "A")])
        kept.commit()
        for name in others:
            (path / name).write_text("mine")
    assert [one.name for one in path.glob("*")] == [*others]
    assert path.exists() == bool(others)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "damaged"),
        ("[]", "damaged"),
        ("{}", "another version"),
        ('{"harvest": 2}', "another version"),
        ('{"harvest": 1}', "damaged"),
    ],
)
def test_a_state_that_is_none_is_told(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / folder.STATE).write_text(text)
    with pytest.raises(HarvestError, match=why):
        folder.read(tmp_path)


def test_parts_that_are_not_what_they_were_are_told(tmp_path: Path) -> None:
    with opened(tmp_path) as kept:
        kept.add(row(1))
        kept.commit()
    (name,) = (one for one in tmp_path.iterdir() if folder.is_part(one.name))
    name.write_bytes(name.read_bytes()[:-1])
    with pytest.raises(HarvestError, match="was altered"), opened(tmp_path):
        pass
    state = json.loads((tmp_path / folder.STATE).read_text())
    state["parts"][0]["name"] = "../part-000001-000000.parquet"
    (tmp_path / folder.STATE).write_text(json.dumps(state))
    with pytest.raises(HarvestError, match="names something other than a part"):
        folder.read(tmp_path)
    assert folder.read(tmp_path / "nowhere") is None


def test_a_state_is_read_as_it_was_written() -> None:
    found = fresh()
    found.set, found.covered, found.commit = "a:b", (None, "2026-11-22"), 3
    found.parts.append(folder.PartFile("part-000001-000000.parquet", 2, 3))
    found.going = RunState(2, "2026-11-22T10:00:00Z", "2026-11-21", None, ("2026-11-21", None))
    found.going.lose("oai:ě", "why")
    found.going.note("n")
    found.runs.append(
        HarvestRun(1, COMPLETE, "a", "b", None, None, None, Counts(1, 2), (("i", "w"),), ("n",))
    )
    assert parse(found.document(), "x") == found


def test_no_two_harvests_have_one_folder() -> None:
    names = {
        folder.folder_name(url, prefix, set_)
        for url in (
            "http://a.cz/oai",
            "http://a.cz/OAI",
            "http://a.cz/oai?x=1",
            "http://a.cz/" * 30,
        )
        for prefix in ("oai_dc", "OAI_DC", "..", "a/b")
        for set_ in (None, "a", "a:b", "../..")
    }
    assert len(names) == 64
    assert all(len(name) < 100 and "/" not in name and name.strip(".") == name for name in names)


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    with opened(tmp_path) as kept:
        kept.add(row(1))
        kept.commit()
        (tmp_path / folder.STATE).unlink()
        (tmp_path / f"{folder.STATE}.draft").mkdir()
        with pytest.raises(HarvestError, match="cannot be written"):
            kept.commit()
    assert Seen.open(tmp_path / folder.SEEN, 1) is None
