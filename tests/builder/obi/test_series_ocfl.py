"""An obi store as OCFL objects of whole series and archives, judged by ocfl-py."""

import json
from pathlib import Path

import pytest

from builder.exports import obi_source
from builder.exports.obi_source import open_obi
from builder.exports.ocfl import root as ocfl_root
from builder.exports.ocfl import series_objects
from builder.exports.ocfl.inventory import place
from builder.exports.ocfl.root import ForeignRoot, Rooted
from builder.exports.ocfl.series_objects import ARCHIVE, ROWS, SERIES
from builder.obi import key
from functions.snapshot.store import Writer
from tests.builder.obi.kept import ODD, PAPER, RAW, Kept, texts, three, three_in
from tests.builder.obi.test_ocfl import USER, held, valid
from tests.e2e.conftest import Home, make_home

RAW_PART = "RePEc-file:."
NAMES = {identifier: f"{key.name(identifier)}.rdf" for identifier in (PAPER, ODD)}


def exported(store: Writer, target: Path, by: str = SERIES) -> Rooted:
    with open_obi(store, 1024, 2) as (_, connection):
        objects = list(series_objects.list_sources(store, connection, by))
        assert len(objects) == series_objects.count_objects(connection, by)
        return ocfl_root.export(objects, target, USER, lambda n: None)


def test_a_series_is_an_object_whose_versions_are_runs(kept: Kept, tmp_path: Path) -> None:
    target = tmp_path / "root"
    done = exported(kept.store, target)
    assert (done.objects, done.versions, done.there) == (2, 7, 0)
    assert valid(target) == 2
    versions = held(target, "RePEc:aaa:ssssss")
    for number, files in enumerate(versions[:3], 1):
        assert files.keys() == {*NAMES.values(), ROWS}
        for identifier, name in NAMES.items():
            assert files[name] == texts(number)[identifier]
        rows = [json.loads(line) for line in files[ROWS].splitlines()]
        assert {row["id"] for row in rows} == {PAPER, ODD}
    assert versions[3].keys() == {NAMES[ODD], ROWS}  # the paper was lost
    assert [files[key.name("aaa/ssssss/papers.rdf")] for files in held(target, RAW_PART)] == [
        texts(number)[RAW] for number in (1, 2, 3)
    ]


def test_what_is_new_is_added_and_the_object_of_another_store_left_alone(
    kept: Kept, tmp_path: Path
) -> None:
    target = tmp_path / "root"
    exported(kept.store, target, ARCHIVE)
    # The third version of the paper is the first again: its bytes are not stored twice.
    files = (target / place("RePEc:aaa")).rglob(NAMES[PAPER])
    assert sorted(path.parts[-3] for path in files) == ["v1", "v2"]
    target = tmp_path / "series"
    exported(kept.store, target)
    other = three_in(tmp_path / "other")
    kept.run(kept.tists[-1] + 1000, {PAPER: b"Template-Type: back\n"})
    done = exported(kept.store, target)
    assert (done.objects, done.versions, done.there) == (0, 1, 1)
    assert valid(target) == 2
    assert held(target, "RePEc:aaa:ssssss")[4][NAMES[PAPER]] == b"Template-Type: back\n"
    assert exported(kept.store, target).versions == 0
    other.run(other.tists[-1] + 10, {ODD: b"Template-Type: other\n"})
    with pytest.raises(ForeignRoot, match="RePEc:aaa:ssssss"):
        exported(other.store, target)


def test_the_command_exports_files_behind_urls_one_by_one(kept: Kept, tmp_path: Path) -> None:
    home: Home = make_home(tmp_path / "home")
    (home.folder / "store").mkdir(exist_ok=True)
    three(type(kept.store)(home.folder / "store"))  # type: ignore[call-arg]
    done = home("export", "ocfl", tmp_path / "root", "--by", "archive", "--json")
    assert done.code == 0, done.err
    with open_obi(kept.store, 1024, 2) as (_, connection):
        files = obi_source.count_objects(connection, ("fobi",))
    assert done.json["objects"] == 2 + files
    assert valid(tmp_path / "root") == 2 + files
