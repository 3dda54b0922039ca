"""Real history, replayed by `sheaf ingest`: the incidences are those beside the data, exactly."""

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from builder.obi import content
from builder.obi.content import DELETION, Incidence, Version
from builder.obi.history import history
from builder.obi.key import key
from tests.builder.sources.redif.samples import ARCHIVE
from tests.builder.sources.redif.test_corpus import DATA
from tests.builder.sources.redif.trees import counts, faults, ingested, rows, store_of, tree
from tests.e2e.conftest import Home, make_home

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real ReDIF at {DATA}")
TARBALLS = DATA / "tarballs"


def wanted(row: dict[str, Any]) -> tuple[int, ...]:
    return tuple(
        row[name] for name in ("appearance", "reappearance", "change", "deletion", "unchanged")
    )


def expected(name: str) -> list[dict[str, Any]]:
    rows_ = json.loads((TARBALLS / name).read_text("utf-8"))["tarballs"]
    return [{**row["recommended"], "tarball": row["tarball"]} for row in rows_]


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, list[dict[str, Any]]]:
    """A store into which all tarballs but the last were replayed, which is only read, and what
    was told of each."""
    home = make_home(tmp_path_factory.mktemp("five") / "home")
    return home, [
        ingested(home, "-f", TARBALLS / row["tarball"])
        for row in expected("expected_incidence.json")[:-1]
    ]


@pytest.fixture
def after_five(five: tuple[Home, list[dict[str, Any]]], tmp_path: Path) -> Home:
    """A copy of that store for one test alone."""
    return Home(Path(shutil.copytree(five[0].folder, tmp_path / "five")))


def test_six_tarballs_replayed_at_their_dates_give_the_expected_incidences(
    five: tuple[Home, list[dict[str, Any]]], after_five: Home
) -> None:
    *_, last = wanted_ = expected("expected_incidence.json")
    # In the last one 21 of 25 templates of an archive are gone at once: somebody has to say so.
    told = ingested(after_five, "-f", TARBALLS / last["tarball"], "--accept-loss", "cxs")
    for row, account in zip(wanted_, [*five[1], told], strict=True):
        assert counts(account) == wanted(row), row["tarball"]
        assert account["files"] == row["files"]
        assert account["templates"] == row["templates"]
        assert account["handles"] == row["distinct_handles"]
        assert account["duplicates"] == row["duplicate_occurrences"]
        assert account["no_handle"] == row["no_handle"]
    assert [run.tist for run in history(store_of(after_five))] == [
        1705017600,
        1736035200,
        1736208000,
        1739836800,
        1776297600,
        1782864000,
    ]


@pytest.mark.thorough
def test_all_six_at_once_are_replayed_in_order_and_a_second_time_not_at_all(home: Home) -> None:
    names = [row["tarball"] for row in expected("expected_incidence.json")]
    given = [part for name in reversed(names) for part in ("-f", TARBALLS / name)]
    result = home("ingest", "--json", *given, "--accept-loss", "RePEc:cxs")
    assert result.code == 0, result.err
    assert [counts(one) for one in result.json["redif"]] == [
        wanted(row) for row in expected("expected_incidence.json")
    ]
    keys = list(store_of(home).keys(""))
    again = home("ingest", "--json", *given)
    assert again.json["redif"] == []
    assert again.err.count("already ingested") == 6
    assert list(store_of(home).keys("")) == keys


def test_a_loss_of_21_of_25_templates_is_held_until_it_is_accepted(after_five: Home) -> None:
    home, last = after_five, expected("expected_incidence.json")[-1]
    held = ingested(home, "-f", TARBALLS / last["tarball"])
    assert held["held"] == {"cxs": 21}
    assert counts(held) == (78, 0, 1, 0, 570)
    assert faults(home)["loss-held"] == 1
    accepted = ingested(home, TARBALLS / last["tarball"], "--accept-loss")
    assert counts(accepted) == (0, 0, 0, 21, 649)
    gone = [r for r in rows(home) if isinstance(r, Incidence) and r.what == DELETION]
    assert len(gone) == 21
    named = {v.key: v for run in history(store_of(home)) for v in stored(home, run.tist)}
    for row in gone:  # nothing is deleted by that: the bytes lie where they lay
        assert content.read_version(store_of(home), named[row.key])


def stored(home: Home, tist: int) -> list[Version]:
    return [row for row in rows(home, tist) if isinstance(row, Version)]


@pytest.mark.thorough
def test_all_of_repec_in_2017(home: Home) -> None:
    row = json.loads((TARBALLS / "RePEc-all_expected.json").read_text("utf-8"))
    row = row["only_names_ending_rdf_or_redif"]
    account = ingested(home, "-f", TARBALLS / "RePEc-all_2017-10-25.tar.gz")
    assert counts(account) == wanted(row) == (10991, 0, 0, 0, 0)
    assert account["run"] == 1508889600
    assert account["files"] == row["files"] == 3828
    assert account["templates"] == row["templates"]
    assert (account["handles"], account["duplicates"], account["no_handle"]) == (10991, 16, 8)
    assert account["templates"] - account["invalid"] == 10891  # as the reference has it
    found = rows(home)
    told = Counter(line.code for line in found if line.row == "fault")
    assert told["empty-file"] == 9
    assert told["html"] == 23
    assert told["duplicate-handle"] == 16
    assert told["no-handle"] == 8
    files = {r.id for r in found if isinstance(r, Version) and r.kind == "redif"}
    assert len(files) == 3828
    assert "RePEc-file:all/ENVARCH.RDF" in files


SEQUENCES = {
    "awu_prova": ("awu/journl/prova.rdf", True),
    "ceu_2012_1": ("ceu/econwp/2012_1.rdf", True),
    "epo_epoarch": ("epo/epoarch.rdf", False),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", SEQUENCES)
def test_versions_of_a_file_give_the_expected_incidences(
    name: str, home: Home, tmp_path: Path
) -> None:
    place, beside = SEQUENCES[name]
    code = place[:3]
    head = {f"{code}/{code}arch.rdf": ARCHIVE.replace(b"aaa", code.encode())} if beside else {}
    if beside:  # so that what the archive's own template does is not counted
        ingested(home, tree(tmp_path / "RePEc", head), "--tist", "2000-01-01")
    folder = DATA / "sequences" / name
    for row in json.loads((folder / "expected_incidence.json").read_text("utf-8"))["recommended"]:
        absent = row["bytes"] is None  # the file was not there
        files = head if absent else {**head, place: (folder / str(row["tist"])).read_bytes()}
        source = tree(tmp_path / "RePEc", files)
        account = ingested(home, source, "--tist", row["tist"], "--accept-loss")
        own = {**row, "unchanged": row["unchanged"] + beside}
        assert counts(account) == wanted(own), row
        assert account["duplicates"] == row["duplicates"]
        assert account["no_handle"] == row["no_handle"]


def test_every_template_noted_lies_at_its_key_with_its_digest(
    five: tuple[Home, list[dict[str, Any]]],
) -> None:
    home, accounts = five
    for account in accounts:
        found = stored(home, account["run"])
        assert len(found) == account["objects"]
        for version in found:
            assert version.key == key(account["run"], version.id)
            data = content.read_version(store_of(home), version)
            assert (len(data), hashlib.sha256(data).hexdigest()) == (version.bytes, version.sha256)
            assert hashlib.md5(data).hexdigest() == version.md5
