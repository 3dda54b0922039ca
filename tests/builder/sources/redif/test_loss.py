"""Losses: what is absent is lost only where that is proven, and many only where it is accepted."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.builder.sources.redif.trees import (
    archive,
    counts,
    events,
    faults,
    ingested,
    paper,
    papers,
    rows,
    tarball,
    tree,
)
from tests.e2e.conftest import Home

pytestmark = pytest.mark.shared(3)

PAPERS = "aaa/wpaper/p.rdf"


def whole(many: int) -> dict[str, bytes]:
    return {**archive(), PAPERS: papers(many)}


LINK = Path("nowhere")
"""In place of bytes: a file that cannot be read."""
HTML = b"<!DOCTYPE html><title>Not found</title>"
BOTH = {**whole(30), **archive("bbb")}
BBB = archive("bbb")
SMALL = {"all/aaaarch.rdf": archive()["aaa/aaaarch.rdf"], "all/p.rdf": papers(2)}
ACCEPTED = ("--accept-loss",)
STRAY = {**archive(), "p.rdf": papers(2), "q.rdf": paper(3)}
OTHERS = {**whole(3), "aaa/wpaper/q.rdf": paper(7), **BBB, "bbb/wpaper/x.rdf": paper(9)}
TEXTS = [paper(1, title) for title in ("On Rugs", "On Rags", "On Rugs")]
AGAIN, GONE = ("RePEc:aaa:wpaper:3", "appearance", True), ("RePEc:aaa:wpaper:3", "deletion", False)
Step = tuple[Mapping[str, bytes | Path], tuple[str, ...], dict[str, Any]]
STEPS: dict[str, list[Step]] = {
    # the files of the tree, options of the ingest, and what is told of it, step by step
    "lost, and back as it was, and with another text": [
        (whole(4), (), {"counts": (6, 0, 0, 0, 0)}),
        (whole(3), (), {"counts": (0, 0, 0, 1, 5), "events": [GONE]}),
        (whole(3), (), {"counts": (0, 0, 0, 0, 5)}),
        (
            whole(4),
            (),
            {
                "counts": (0, 1, 0, 0, 5),  # an appearance again without a version
                "events": [AGAIN],
                "versions": [f"RePEc-file:{PAPERS}"],
            },
        ),
        (whole(3), (), {"counts": (0, 0, 0, 1, 5)}),
        (
            {**whole(3), "aaa/wpaper/q.rdf": paper(3, "On Other Rugs")},
            (),
            {
                "counts": (0, 1, 0, 0, 5),
                "events": [AGAIN],
                "versions": ["RePEc-file:aaa/wpaper/q.rdf", "RePEc:aaa:wpaper:3"],
            },
        ),
    ],
    "there and back is two changes, stored twice": [
        ({**archive(), PAPERS: TEXTS[0]}, (), {"counts": (3, 0, 0, 0, 0), "objects": 6}),
        ({**archive(), PAPERS: TEXTS[1]}, (), {"counts": (0, 0, 1, 0, 2), "objects": 2}),
        ({**archive(), PAPERS: TEXTS[2]}, (), {"counts": (0, 0, 1, 0, 2), "objects": 2}),
    ],
    "an archive that is not there": [
        (BOTH, (), {}),
        (
            BBB,
            (),
            {
                "counts": (0, 0, 0, 0, 2),
                "incomplete": {},
                "absent": {"aaa": 32},
                "acceptable": ["aaa"],
            },
        ),
        # The papers' folder is there, aaaarch.rdf is not.
        (
            {**BBB, PAPERS: papers(3)},
            (),
            {
                "counts": (0, 0, 0, 0, 5),
                "incomplete": {"aaa": 29},
                "faults": {"archive-incomplete": 1},
            },
        ),
    ],
    "an archive that is gone for good": [
        (BOTH, (), {}),
        (BBB, ACCEPTED, {"deletions": 0}),  # that is of all that are proven
        (BBB, (*ACCEPTED, "bbb"), {"deletions": 0}),
        (BBB, (*ACCEPTED, "RePEc:aaa"), {"deletions": 32}),
    ],
    "its own file is a page of HTML": [
        (whole(5), (), {}),
        ({**whole(3), "aaa/aaaarch.rdf": HTML}, ACCEPTED, {"deletions": 0}),
    ],
    "it has no file of its own": [
        (SMALL, (), {}),
        ({**SMALL, "all/p.rdf": papers(1)}, (), {"deletions": 0}),
        ({**SMALL, "all/p.rdf": papers(1)}, (*ACCEPTED, "all"), {"deletions": 1}),
    ],
    "what lay in no folder, and a fault hides": [
        (STRAY, (), {}),
        ({**archive(), "q.rdf": HTML}, ACCEPTED, {"stray": 1, "deletions": 2}),
        ({**archive(), "q.rdf": LINK}, ACCEPTED, {"stray": 1, "deletions": 0}),
    ],
    "a file that cannot be read keeps its archive from losses": [
        (OTHERS, (), {}),
        (
            {**archive(), "aaa/wpaper/q.rdf": LINK, **BBB},
            (),
            {
                "events": [("RePEc:aaa:wpaper:9", "deletion", False)],
                "incomplete": {"aaa": 4},
                "link-outside": 1,
            },
        ),
    ],
    "what moved to another archive is lost by that one": [
        ({**whole(3), **BBB}, (), {}),
        (
            {**archive(), **BBB, "bbb/wpaper/p.rdf": papers(3)},
            (),
            {
                "counts": (0, 0, 0, 0, 7),
                "seen": {(f"RePEc:aaa:wpaper:{n}", "bbb", "bbb/wpaper/p.rdf") for n in range(3)},
            },
        ),
        ({**archive(), **BBB}, (), {"deletions": 3}),
    ],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STEPS)
def test_what_is_lost(home: Home, root: Path, name: str) -> None:
    for files, options, expected in STEPS[name]:
        tree(root, {path: data for path, data in files.items() if isinstance(data, bytes)})
        for path in (path for path, data in files.items() if data is LINK):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(LINK)
        account = ingested(home, root, *options)
        logged = rows(home)
        found = {
            **account,
            **faults(home),
            "counts": counts(account),
            "events": events(home),
            "faults": dict(faults(home)),
            "versions": sorted(row.id for row in logged if row.row == "version"),
            "seen": {(row.id, row.home, row.source) for row in logged if row.row == "seen"},
        }
        assert {name: found[name] for name in expected} == expected


def test_what_is_back_as_it_was_lies_where_it_lay(home: Home, root: Path) -> None:
    first = ingested(home, tree(root, whole(4)))
    for many in (3, 4):
        ingested(home, tree(root, whole(many)))
    (again,) = [r for r in rows(home) if r.row == "incidence"]
    tist = str(first["run"])[::-1]
    assert again.key.startswith(f"obi/{tist[:3]}/{tist[3:6]}/{tist[6:]}/")


def test_archives_that_are_not_there_are_named_with_the_remedy(home: Home, root: Path) -> None:
    files = {**archive("zzz")}
    for code in [f"a{letter}b" for letter in "bcdefghijklm"]:
        files |= archive(code)
    ingested(home, tree(root, files))
    told = home("ingest", tree(root, archive("zzz"))).out
    assert "12 archives are missing, of which nothing is deleted: RePEc:abb" in told
    assert "RePEc:akb (2 templates), and 2 more; --accept-loss abb deletes" in told
    left = {name: data for name, data in archive("abb").items() if "seri" in name}
    told = home("ingest", tree(root, archive("zzz") | left)).out
    assert "RePEc:abb has no archive template in abbarch.rdf" in told
    assert "--accept-loss abb deletes them" in told
    assert home("ingest", root, "--json", "--accept-loss", "abb").json["redif"][0]["deletions"] == 1


def test_names_of_folders_are_told_without_control_characters(home: Home, root: Path) -> None:
    files = {**archive(), "a\x1b[2Jb/p.rdf": papers(2)}
    ingested(home, tree(root, files))
    told = home("ingest", tree(root, archive())).out
    assert "\x1b" not in told
    assert r"RePEc:a\x1b[2jb (2 templates)" in told
    assert "--accept-loss" not in told  # it cannot be named


def test_a_source_that_cannot_be_looked_into_is_one_line(home: Home, root: Path) -> None:
    tree(root, archive())
    told = home("ingest", f"{root}{'/../RePEc' * ((4095 - len(str(root))) // 9)}")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "cannot be read: File name too long" in told.err


def test_of_an_archive_that_a_fault_hides_no_remedy_is_told(home: Home, root: Path) -> None:
    ingested(home, tree(root, {**whole(3), **BBB}))
    path = tarball(root.parent / "cut.tar", BBB.items(), "")
    path.write_bytes(path.read_bytes()[:2048])
    told = home("ingest", path).out
    assert "1 archive is missing, of which nothing is deleted: RePEc:aaa" in told
    assert "--accept-loss" not in told
    # Nor is one lost whose folder cannot be read.
    tree(root, {**whole(3), **BBB})
    (root / "aaa").rename(root.parent / "away")
    (root / "aaa").symlink_to("../away")
    account = ingested(home, root, "--accept-loss", "aaa")
    assert (account["absent"], account["acceptable"]) == ({"aaa": 5}, [])
    assert events(home) == []


def test_what_lay_in_no_folder_is_told_and_lost_if_all_is_accepted(home: Home, root: Path) -> None:
    ingested(home, tree(root, {**archive(), "p.rdf": papers(12)}))
    gone = tree(root, {**archive(), "p.rdf": papers(1)})
    told = home("ingest", gone)
    assert "11 templates outside of archives' folders not seen and not deleted" in told.out
    assert events(home) == []
    again = ingested(home, gone, "--accept-loss", "aaa")
    assert (again["stray"], again["deletions"], again["absent"]) == (11, 0, {})
    accepted = ingested(home, gone, "--accept-loss")
    assert (accepted["stray"], accepted["deletions"]) == (0, 11)
    assert ingested(home, gone)["stray"] == 0


def test_templates_whose_file_became_a_page_of_html_are_not_lost(home: Home, root: Path) -> None:
    files = {**whole(2), "aaa/wpaper/q.rdf": paper(7), "aaa/wpaper/r.rdf": paper(8)}
    ingested(home, tree(root, files))
    files["aaa/wpaper/q.rdf"] = b"<!DOCTYPE html><title>Not found</title>"
    del files["aaa/wpaper/r.rdf"]
    ingested(home, tree(root, files))
    assert events(home) == [("RePEc:aaa:wpaper:8", "deletion", False)]
    assert faults(home)["archive-incomplete"] == faults(home)["file-incomplete"] == 1
    details = {r.code: r.detail for r in rows(home) if r.row == "fault"}
    assert details["file-incomplete"] == "mend the file, or --accept-loss aaa (templates: 1)"
    assert "mend aaaarch.rdf and what other faults name" in details["archive-incomplete"]
    files["aaa/wpaper/q.rdf"] = paper(7)
    assert counts(ingested(home, tree(root, files))) == (0, 0, 0, 0, 5)
    files["aaa/wpaper/q.rdf"] = b""
    assert counts(ingested(home, tree(root, files), "--accept-loss"))[3] == 0
    assert counts(ingested(home, tree(root, files), "--accept-loss", "aaa"))[3] == 1


def test_nine_tenths_of_an_archive_gone_are_held_until_accepted(home: Home, root: Path) -> None:
    ingested(home, tree(root, whole(40)))
    few = tree(root, whole(4))
    held = home("ingest", few)
    assert "36 templates of RePEc:aaa disappeared at once" in held.out
    assert "--accept-loss aaa" in held.out
    assert events(home) == []
    (row,) = [r for r in rows(home) if r.row == "archive"]
    assert (row.complete, row.held, row.templates) == (True, 36, 6)
    (fault,) = [r for r in rows(home) if r.row == "fault"]
    told = "not deleted: upload them again, or --accept-loss aaa (templates: 36)"
    assert (fault.code, fault.detail) == ("loss-held", told)
    other = ingested(home, few, "--accept-loss", "bbb")
    assert counts(other) == (0, 0, 0, 0, 6)
    assert other["held"] == {"aaa": 36}
    assert counts(ingested(home, few, "--accept-loss", "aaa")) == (0, 0, 0, 36, 6)
    assert counts(ingested(home, few)) == (0, 0, 0, 0, 6)


def test_more_than_ten_and_more_than_a_fifth_are_held(home: Home, root: Path) -> None:
    """An archive has two templates besides: its own and that of the series."""
    archives = {
        # code: papers before and after, and how many are lost
        "aaa": (48, 38, 10),
        "bbb": (48, 37, 0),
        "ccc": (58, 46, 12),
        "ddd": (98, 78, 20),
        "eee": (98, 77, 0),
        "fff": (8, 0, 8),
        "ggg": (9, 0, 9),
    }
    for moment in (0, 1):
        files: dict[str, bytes] = {}
        for code, many in archives.items():
            files |= archive(code)
            if many[moment]:
                files[f"{code}/wpaper/p.rdf"] = papers(many[moment], archive=code)
        told = ingested(home, tree(root, files))
    gone = Counter(name.split(":")[1] for name, what, _ in events(home) if what == "deletion")
    assert gone == {code: lost for code, (_, _, lost) in archives.items() if lost}
    assert told["held"] == {"bbb": 11, "eee": 21}


def test_a_tarball_that_is_cut_off_loses_nothing(home: Home, tmp_path: Path) -> None:
    files = {f"RePEc/{name}": data for name, data in whole(3).items()}
    path = tarball(tmp_path / "RePEc_2025-01-05.tar.gz", files.items())
    ingested(home, "-f", path)
    files["RePEc/zzz/zzzarch.rdf"] = b"#" * 1_000_000
    del files[f"RePEc/{PAPERS}"]
    cut = tmp_path / "RePEc_2025-01-06.tar"
    tarball(cut, files.items(), "")
    cut.write_bytes(cut.read_bytes()[:-600_000])
    assert counts(ingested(home, "-f", cut)) == (0, 0, 0, 0, 2)
    assert faults(home)["tarball-damaged"] == 1
    again = ingested(home, cut, "--accept-loss", "aaa")
    assert counts(again)[3] == 0  # nobody can know what would have come


def test_a_held_loss_of_a_tarball_is_accepted_at_its_own_date(home: Home, tmp_path: Path) -> None:
    old = tarball(tmp_path / "RePEc_2025-01-05.tgz", whole(40).items())
    new = tarball(tmp_path / "RePEc_2025-01-07.tgz", whole(4).items())
    first, held = ingested(home, "-f", old), ingested(home, "-f", new)
    assert (counts(held)[3], held["held"]) == (0, {"aaa": 36})
    assert home("ingest", "-f", new, "--accept-loss", "bbb").err.count("already ingested") == 1
    accepted = ingested(home, "-f", new, "--accept-loss", "aaa")
    assert (accepted["run"], counts(accepted)[3]) == (held["run"] + 1, 36)
    for loss in ((), ("--accept-loss",)):
        assert "already ingested" in home("ingest", "-f", new, *loss).err
    assert first["run"] + 2 * 86_400 == held["run"]
