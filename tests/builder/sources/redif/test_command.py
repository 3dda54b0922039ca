"""`sheaf redif`."""

import base64
import gzip
import hashlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builder.sources.redif.samples import ARCHIVE, BOOK, PAPER, SERIES, without
from tests.builder.sources.redif.trees import tarball
from tests.builder.sources.redif.trees import tree as make_tree
from tests.e2e.conftest import Result, sheaf
from tests.e2e.test_commands import one_line


def tree(folder: Path) -> Path:
    """Write an archive, with files that are none of ReDIF's."""
    files = {
        "aaa/aaaarch.rdf": ARCHIVE,
        "aaa/aaaseri.RDF": SERIES,
        "aaa/wpaper/1.redif": PAPER + b"\n" + without("Title"),
        "aaa/wpaper/1.rdf~": PAPER,
        "aaa/wpaper/.hidden.rdf": PAPER,
        "aaa/wpaper/404.rdf": b"<html>",
        "aaa/wpaper/empty.rdf": b"",
        "aaa/index.html": b"<html>",
    }
    return make_tree(folder, files)


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


def test_a_line_a_template_and_a_summary_of_faults(tmp_path: Path) -> None:
    folder = tree(tmp_path)
    result = sheaf("redif", folder)
    assert result.code == 0
    found = lines(result)
    assert [(Path(line["file"]).name, line["handle"]) for line in found] == [
        ("aaaarch.rdf", "RePEc:aaa"),
        ("aaaseri.RDF", "RePEc:aaa:wpaper"),
        *[("1.redif", "RePEc:aaa:wpaper:98-01")] * 2,
    ]
    paper = found[2]
    assert paper["text"] == PAPER.decode().rstrip()
    assert paper["structure"]["author"][0]["workplace"] == [{"name": ["Bowling Alley"]}]
    assert paper["attributes"][5] == {"name": "Title", "line": 6, "value": "On Rugs"}
    assert (paper["valid"], paper["diagnostics"]) == (True, [])
    digest = hashlib.md5(PAPER).digest()
    assert paper["md5"] == digest.hex()
    assert paper["reference_md5sum"] == base64.b64encode(digest).decode().rstrip("=")
    assert [line["code"] for line in found[3]["diagnostics"]] == [
        "required-absent",
        "repeated-handle",
    ]
    assert f"{folder}/aaa/wpaper/404.rdf: the file is a page of HTML (html)" in result.err
    assert f"{folder}/aaa/wpaper/empty.rdf: the file is empty (empty-file)" in result.err
    assert "4 templates in 5 files, 1 with errors; 3 handles" in result.err
    assert "1 error required-absent: a template lacks a required attribute" in result.err


def test_with_json_the_summary_is_the_last_line_and_nothing_is_said(tmp_path: Path) -> None:
    result = sheaf("redif", tree(tmp_path), "--json")
    assert result.err == ""
    summary = lines(result)[-1]
    assert {key: summary[key] for key in ("files", "templates", "invalid", "handles")} == {
        "files": 5,
        "templates": 4,
        "invalid": 1,
        "handles": 3,
    }
    assert {line["code"] for line in summary["codes"]} == {
        "html",
        "empty-file",
        "required-absent",
        "repeated-handle",
    }
    assert [line["code"] for line in summary["of_files"]] == ["html", "empty-file"]


def test_strict_forbids_errors_but_not_warnings(tmp_path: Path) -> None:
    good, warned, wrong = (tmp_path / f"{name}.txt" for name in ("good", "warned", "wrong"))
    good.write_bytes(PAPER)
    warned.write_bytes(PAPER.replace(b"On Rugs", b"."))
    wrong.write_bytes(without("Title"))
    assert sheaf("redif", "--strict", good).code == 0
    assert sheaf("redif", "--strict", warned).code == 0
    assert sheaf("redif", "--strict", wrong).code == 1
    assert sheaf("redif", wrong).code == 0
    assert sheaf("redif", "--strict", good, warned).code == 1  # the same handle twice


def test_a_file_that_cannot_be_read_is_told_of_and_the_others_are_read(tmp_path: Path) -> None:
    first, second = tmp_path / "a.rdf", tmp_path / "b.rdf"
    first.symlink_to(tmp_path / "nowhere")
    second.write_bytes(PAPER)
    result = sheaf("redif", tmp_path, "--strict")
    assert result.code == 1
    assert len(lines(result)) == 1
    assert f"{first}: No such file or directory (unreadable)" in result.err


def test_plain_values_have_no_html_and_the_raw_ones_are_beside(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(
        BOOK.replace(b"All Rugs", b"<i>All</i> Rugs &amp; more").replace(b"Maude", b"&Eacute;ve")
    )
    for options, title, name in (
        ((), "<i>All</i> Rugs &amp; more", "Lebowski, &Eacute;ve"),
        (("--plain",), "All Rugs & more", "Lebowski, Ève".replace("È", "É")),
    ):
        (found,) = lines(sheaf("redif", path, *options))
        assert found["structure"]["title"] == [title]
        assert found["structure"]["editor"] == [{"name": [name]}]
        assert found["attributes"][1]["value"] == "<i>All</i> Rugs &amp; more"


def test_a_limit_cuts_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(PAPER + b"Note: a\n" * 2000)
    (found,) = lines(sheaf("redif", path, "--limit", 1024))
    assert found["length"] <= 1024
    assert [line["code"] for line in found["diagnostics"]] == ["template-too-large"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PAPER)))
    (found,) = lines(sheaf("redif", "-", "--limit", 1024))
    assert (found["file"], found["handle"]) == ("-", "RePEc:aaa:wpaper:98-01")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        (["x" * 300], "cannot be read: File name too long"),
        (["."], ". is an empty folder"),
        (["html"], "html has no .rdf or .redif file"),
        (["html/a.html", "--limit", "7"], "--limit 7: expected a number from 1,024"),
        (["s3://bucket/a.rdf"], "expected a file, a folder"),
    ],
)
def test_faults_of_usage_are_one_line(
    arguments: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments != ["."]:
        (tmp_path / "html").mkdir()
        (tmp_path / "html" / "a.html").write_text("<html>")
    result = sheaf("redif", *arguments)
    assert result.code == 2
    assert problem in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("mode", ["", "gz", "bz2", "xz"])
def test_a_tarball_is_one_line_that_says_what_reads_it(tmp_path: Path, mode: str) -> None:
    path = tarball(tmp_path / "RePEc.tar", [("RePEc/aaa/aaaarch.rdf", ARCHIVE)], mode)
    result = sheaf("redif", path)
    assert (result.code, result.out) == (2, "")
    assert "is a tarball" in one_line(result.err)
    assert "`sheaf ingest -f`" in result.err
    (tmp_path / "a.rdf").write_bytes(gzip.compress(PAPER))
    result = sheaf("redif", tmp_path / "a.rdf")
    assert (result.code, result.out) == (2, "")
    assert "is compressed" in one_line(result.err)
