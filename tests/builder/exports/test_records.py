"""`sheaf export jsonl` and `oai`: complete dumps, and differences to earlier ones."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from builder.exports import staging
from functions.kinds import KINDS
from functions.snapshot import instant
from tests.builder.conftest import World, capture
from tests.builder.outputs.dumps.history import (
    KEYS,
    Operation,
    apply,
    brief,
    check_keys,
    contents,
    headers,
    histories,
    lines,
    live,
    merge,
    shown,
)
from tests.e2e.conftest import Result, sheaf
from tests.extent import examples
from tests.functions.oai.validity import valid

pytestmark = pytest.mark.shared(2)

SETS = ("", "mime:text", "mime:text:html")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Give a store of two publishes; the second changed a third of the captures."""
    world = World(tmp_path_factory.mktemp("filled") / "store")
    world.add([capture(n) for n in range(3_000)], ("collection:a",))
    world.add([capture(n, title="žluť \u2028 </a>") for n in range(0, 3_000, 3)])
    yield world
    world.close()


def export(world: World, name: str, folder: Path, *more: object) -> Result:
    return sheaf("export", name, folder, "--store", world.root, *more)


def dump(world: World, name: str, folder: Path, *more: object) -> tuple[Any, list[bytes]]:
    done = export(world, name, folder, *more)
    assert done.code == 0, done.err
    return contents(folder)


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories)
def test_a_complete_dump_and_differences_give_the_next_complete_dump(
    history: list[Operation],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "store")
        states: list[tuple[int, str, dict[str, dict[str, Any]]]] = []
        apply(world, ("ingest", list(range(8)), 0, "a"))
        for step, operation in enumerate(history):
            apply(world, operation)
            now = world.newest()
            complete = {}
            for spec in SETS:
                which = ["--set", spec] if spec else []
                place = Path(folder) / f"{step}-{spec.replace(':', '-')}"
                _, parts = dump(world, "jsonl", place, *which)
                complete[spec] = merge({}, lines(parts))
                assert shown(complete[spec]) == live(world, spec)
                if not states:
                    continue
                number, stamp, before = states[(step * 7 + len(spec)) % len(states)]
                for since in (number, stamp):
                    to = place.with_name(f"{place.name}-{since}".replace(":", ""))
                    told, parts = dump(world, "jsonl", to, "--since", since, *which)
                    assert merge(before[spec], lines(parts)) == complete[spec]
                    assert told["since"] == (number if since == number else None)
                    assert told["snapshot"] == now.snapshot
                oai = place.with_name(f"{place.name}-oai")
                _, parts = dump(world, "oai", oai, "--since", number, *which)
                assert merge(brief(before[spec]), headers(parts)) == brief(complete[spec])
                _, parts = dump(world, "oai", oai.with_name(f"{oai.name}-all"), *which)
                assert merge({}, headers(parts)) == brief(complete[spec])
            states.append((now.snapshot, instant.to_text(now.effective), complete))
        world.close()


def test_parts_are_bounded_and_the_same_each_time(filled: World, tmp_path: Path) -> None:
    for name in ("jsonl", "oai"):
        _, (whole,) = dump(filled, name, tmp_path / name)
        told, parts = dump(filled, name, tmp_path / f"{name}-1", "--part-records", 700)
        assert [part["records"] for part in told["parts"]] == [700, 700, 700, 700, 201]
        dump(filled, name, tmp_path / f"{name}-2", "--part-records", 700)
        for path in (tmp_path / f"{name}-1").iterdir():
            assert path.read_bytes() == (tmp_path / f"{name}-2" / path.name).read_bytes()
        _, small = dump(filled, name, tmp_path / f"{name}-3", "--part-bytes", 100_000)
        assert len(small) > 3
        read = lines if name == "jsonl" else headers
        assert read(parts) == read(small) == read([whole])
        assert all(len(part) < 101_000 for part in small)
        _, packed = dump(filled, name, tmp_path / f"{name}-4", "--compression", "gzip")
        assert packed == [whole]


def test_lines_have_the_fields_of_their_kind_in_order(filled: World, tmp_path: Path) -> None:
    told, parts = dump(filled, "jsonl", tmp_path / "all")
    found = lines(parts)
    assert told["records"] == len(found) == 3_001
    for record in found:
        check_keys(record)
    assert {record["kind"] for record in found} == {"capture", "collection"}
    assert len([r for r in found if r.get("title") == "žluť \u2028 </a>"]) == 1_000
    assert "žluť".encode() in parts[0]
    assert not {column.name for row in KINDS.values() for column in row.columns} & {*KEYS}


def test_each_part_is_a_valid_answer(filled: World, tmp_path: Path) -> None:
    for prefix, count in (("oai_dc", 3_001), ("mods", 3_000)):
        more = ("--format", prefix, "--part-records", 2_000)
        told, parts = dump(filled, "oai", tmp_path / prefix, *more)
        assert told["records"] == count
        for part in parts:
            valid(part)
    told, _ = dump(filled, "oai", tmp_path / "since", "--since", 1)
    assert told["records"] == 1_000


def test_what_cannot_be_exported_is_one_line(world: World, tmp_path: Path) -> None:
    assert "there is no such folder" in export(world, "jsonl", tmp_path / "a").err
    world.add([capture(1)])
    for more, text in (
        (("--since", 0), "there was no such snapshot"),
        (("--since", 9), "the newest is 1"),
        (("--since", "soon"), "expected the number of a snapshot, or a date"),
        (("--set", "mime:none"), "there is no such set"),
        (("--part-records", 0), "expected numbers from 1"),
        (("--kind", "template", "--format", "mods"), "these items have no format mods"),
        (("--format", "jsonl"), "sheaf export jsonl"),
        (("--format", "marc"), "known: jsonl, oai_dc"),
    ):
        done = export(world, "oai", tmp_path / "a", *more)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert text in done.err
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine").touch()
    assert "is not an empty folder" in export(world, "jsonl", tmp_path / "a").err


def test_since_a_date_has_what_was_published_from_then_on(world: World, tmp_path: Path) -> None:
    stamps = []
    for number in range(3):
        world.add([capture(number)])
        stamps.append(instant.to_text(world.newest().effective))
        world.clock.sleep(100)
    assert len(lines(dump(world, "jsonl", tmp_path / "a", "--since", stamps[1])[1])) == 2
    assert len(lines(dump(world, "jsonl", tmp_path / "b", "--since", stamps[0][:10])[1])) == 3


def test_after_a_retired_snapshot_nothing_is_missing_although_numbers_were_skipped(
    world: World, tmp_path: Path
) -> None:
    for number in range(4):
        if number == 1:  # an interrupted publish took the number 2
            stray = world.root / "snapshots" / "2" / "manifest.json"
            stray.parent.mkdir()
            stray.write_bytes((world.root / "snapshots" / "1" / "manifest.json").read_bytes())
        world.add([capture(number)])
    assert world.newest().snapshot == 5
    world.clock.sleep(120)
    world.expire()
    for since, count in ((1, 3), (3, 2), (4, 1)):
        _, parts = dump(world, "jsonl", tmp_path / str(since), "--since", since)
        assert len(lines(parts)) == count


def test_an_interrupted_export_leaves_nothing(
    filled: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(staging, "sync", fail)
        done = export(filled, "jsonl", tmp_path / "out")
    assert done.code == 2
    assert list(tmp_path.iterdir()) == []
    dump(filled, "jsonl", tmp_path / "out")


def test_an_empty_difference_has_no_part(filled: World, tmp_path: Path) -> None:
    for name in ("jsonl", "oai"):
        told, parts = dump(filled, name, tmp_path / name, "--since", 2)
        assert (told["records"], parts) == (0, [])
