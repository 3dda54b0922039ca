"""Weeks of broken uploads and their repair: nothing that comes back is deleted."""

import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase

import pytest

from tests.builder.sources.redif.samples import ARCHIVE
from tests.builder.sources.redif.trees import archive, events, ingested, paper, rows, tree
from tests.e2e.conftest import Home

pytestmark = pytest.mark.shared(3)

BOM = b"\xef\xbb\xbf"
A, B = "aaa/wpaper/a.rdf", "aaa/wpaper/b.rdf"
LAST = 17


def early(number: int) -> bytes:
    """Return a paper whose handle comes before all but its type."""
    first, *lines, handle = paper(number).splitlines(keepends=True)
    return b"".join([first, handle, *lines])


def whole(last: int) -> dict[str, bytes]:
    a = b"\n".join(map(paper, range(10, last + 1)))
    return {**archive(), A: a, B: b"\n".join(map(early, range(20, 24)))}


def broken(last: int) -> dict[str, dict[str, bytes | None]]:
    """Return what differs in the tree after each broken upload; None for a file that is gone."""
    files = whole(last)
    a, b = files[A], files[B]
    each = [paper(number) for number in range(10, last + 1)]
    half, behind = a[: a.index(b"aaa:wpaper:13")], b.index(b"Jeffrey", b.index(b"wpaper:22"))
    return {
        "no bytes": {A: b""},
        "a server's text": {A: b"503 Service Unavailable\n"},
        "a packed file": {A: b"PK\x03\x04" + bytes(40)},
        "files with marks, joined": {A: b"".join(BOM + text for text in each)},
        "marks and blank lines": {A: b"".join(BOM + b"\r\n" + text for text in each)},
        "marks and no line ends": {A: b"".join(BOM + text.strip() for text in each)},
        "no line ends between files": {A: b"".join(text.strip() for text in each)},
        "cut": {A: half[:-100]},
        "cut in a handle": {A: half + b"aaa:wpaper:1"},
        "cut before the code": {A: half + b"a"},
        "cut behind a handle": {B: b[:behind]},
        "another version, cut": {A: paper(10, "On Rags") + a[len(paper(10)) : len(half) + 12]},
        "a beginning that is lost": {A: a[5:]},
        "a line end that is lost": {A: a.replace(b"\nHandle", b"Handle", 2)},
        "a line end behind a handle": {A: a.replace(b":12\n", b":12", 1).replace(b"\nT", b"T", 3)},
        "two templates in one": {A: a.replace(b"\nTemplate-Type: ReDIF-Paper 1.0", b"", 1)},
        "zeros": {A: half[:-100] + bytes(512) + a[len(half) :]},
        "the archive's file too": {A: half, "aaa/aaaarch.rdf": ARCHIVE[:30]},
        "another name, and cut": {A: None, "aaa/wpaper/new.rdf": half},
        "another name, and cut in a title": {A: None, "aaa/wpaper/new.rdf": half[:-100]},
        "no folder": dict.fromkeys(files),
    }


def upload(home: Home, root: Path, files: Mapping[str, bytes | None]) -> list[tuple[str, str]]:
    """Ingest a tree, and return its incidences but changes. Unchanged files have their old time."""
    tree(root, {name: data for name, data in files.items() if data is not None})
    for path in root.rglob("*.rdf"):
        seconds = zlib.crc32(path.read_bytes()) % 10**9
        os.utime(path, (seconds, seconds))
    ingested(home, root)
    return sorted((name, what) for name, what, _ in events(home) if what != "change")


def test_no_template_that_comes_back_is_deleted(home: Home, root: Path) -> None:
    """As many archives as there are ways to break one; each is broken in ten of the ways."""
    codes = [f"a{letter}z" for letter in ascii_lowercase[: len(broken(LAST))]]
    last = LAST

    def spread(uploads: Sequence[Mapping[str, bytes | None]]) -> dict[str, bytes | None]:
        return {
            name.replace("aaa", code): data and data.replace(b"aaa", code.encode())
            for code, files in zip(codes, uploads, strict=True)
            for name, data in (whole(last) | files).items()
        }

    upload(home, root, spread([{}] * len(codes)))
    for day in range(10):
        ways = list(broken(last).values())
        for _ in range(1 + day % 2):  # the second time, known files are not read
            assert upload(home, root, spread([*ways[day:], *ways[:day]])) == []
        # What is taken from a file that is whole is deleted at once.
        gone = [(f"RePEc:{code}:wpaper:{last}", "deletion") for code in codes] if day == 6 else []
        last -= bool(gone)
        assert upload(home, root, spread([{}] * len(codes))) == gone


def test_what_contradicts_another_file_is_a_fault_with_a_remedy(home: Home, root: Path) -> None:
    article, first = paper(3).replace(b"ReDIF-Paper", b"ReDIF-Article"), paper(1)
    of_bbb = [paper(number, archive="bbb") for number in (1, 2)]
    of_others = [paper(number, series="others") for number in (1, 2)]
    files = {**archive(), A: b"".join([first, article, *of_bbb]), B: b"".join(of_others)}
    files |= {name.replace("ddd", "ccc"): data for name, data in archive("ddd").items()}
    ingested(home, tree(root, files))
    differs = "ReDIF-Article 1.0, but RePEc:aaa:wpaper has ReDIF-Paper: correct them, or Type in "
    other = "of archive bbb: move them to its folder, or correct the handles (templates: 2)"
    of_ddd = other.replace("bbb", "ddd").replace("2", "1")
    absent, at = "has no template: add one to", len(first + article)
    assert [
        (row.source, row.place, row.code, row.detail) for row in rows(home) if row.row == "fault"
    ] == [
        (A, len(first), "series-type", f"{differs}aaa/aaaseri.rdf (templates: 1)"),
        (A, at, "other-archive", other),
        (A, at, "series-absent", f"RePEc:bbb:wpaper {absent} bbbseri.rdf (templates: 2)"),
        (B, 0, "series-absent", f"RePEc:aaa:others {absent} aaaseri.rdf (templates: 2)"),
        *((f"ccc/ccc{kind}.rdf", 0, "other-archive", of_ddd) for kind in ("arch", "seri")),
    ]
