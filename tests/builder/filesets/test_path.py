"""The one rule for paths, of manifests and of zips."""

import unicodedata
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.filesets.item import FilesetManifestFile
from builder.filesets.protocols import FilesetError
from builder.filesets.strategies.keys import make_paths_safe, safe_path

UNSAFE = {
    "": "empty",
    "/etc/passwd": "absolute",
    "C:\\x": "drive",
    "c:x": "drive",
    "a\\b": "backslash",
    "../evil": "..",
    "a/../../evil": "..",
    "a/./b": "part that is .",
    "a//b": "empty",
    "folder/": "empty",
    "a\0b": "U+0000",
    "a\nb": "U+000A",
    "a\x7fb": "U+007F",
    "a\u2028b": "U+2028",
    "a\ud800b": "U+D800",
    "nul": "Windows",
    "data/CON.txt": "Windows",
    "com1 .csv": "Windows",
    "LPT\u00b9": "Windows",
    "a/" + "ž" * 128: "255 bytes",
    "a/" * 100 + "b": "100 parts",
    "/".join(["x" * 100] * 41): "4,096 bytes",
}


@pytest.mark.parametrize("raw", UNSAFE, ids=[f"{n}" for n in range(len(UNSAFE))])
def test_an_unsafe_path_is_refused_with_its_reason(raw: str) -> None:
    with pytest.raises(FilesetError) as caught:
        safe_path(raw)
    assert caught.value.status == "unsafe-path"
    assert UNSAFE[raw] in caught.value.detail
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "path",
    [
        "a.csv",
        "a/b c/d.csv",
        "...",
        "ab:c",
        "conical",
        "console.log",
        "ž" * 127,
        "x" * 255,
        ".hidden",
    ],
)
def test_what_is_odd_and_safe_stays_as_it_is(path: str) -> None:
    assert safe_path(path) == path


@given(st.text(st.sampled_from("abC:./\\\0é\u0301 \u212b"), max_size=12) | st.text(max_size=30))
def test_a_path_that_passes_stays_below_its_folder_everywhere(raw: str) -> None:
    try:
        path = safe_path(raw)
    except FilesetError:
        return
    assert path == unicodedata.normalize("NFC", path) == safe_path(path)
    assert PurePosixPath(path).parts == tuple(path.split("/"))
    there = PureWindowsPath(path)
    assert not there.is_absolute()
    assert not there.drive
    assert not there.root
    assert ".." not in there.parts
    path.encode()


def files(*paths: str) -> list[FilesetManifestFile]:
    return [FilesetManifestFile(path=path) for path in paths]


def test_a_path_is_normalised_and_what_the_platform_wrote_is_kept() -> None:
    (file,) = make_paths_safe(files("me\u0301d.csv"))
    assert file.path == "m\u00e9d.csv"
    assert file.extra["raw_path"] == "me\u0301d.csv"


def test_two_spellings_of_one_path_are_one_path() -> None:
    with pytest.raises(FilesetError, match="is listed twice") as caught:
        make_paths_safe(files("m\u00e9d.csv", "b", "me\u0301d.csv"))
    assert caught.value.status == "duplicate-path"
    assert [f.status for f in caught.value.manifest] == [None, None, "duplicate-path"]


def test_all_files_at_fault_are_marked_and_the_first_is_told() -> None:
    with pytest.raises(
        FilesetError, match=r"'\.\./a' has a part that is \.\., and 1 more"
    ) as caught:
        make_paths_safe(files("ok", "../a", "/b"))
    assert [f.status for f in caught.value.manifest] == [None, "unsafe-path", "unsafe-path"]


def test_a_file_is_no_folder() -> None:
    with pytest.raises(FilesetError, match="'a/b/c' is inside 'a/b', which is a file") as caught:
        make_paths_safe(files("a/b/c", "a/b"))
    assert caught.value.status == "unsafe-path"


def test_of_very_many_twins_a_few_are_told() -> None:
    forms = ["".join(c.upper() if n >> at & 1 else c for at, c in enumerate("abcdefghijkl"))
             for n in range(4096)]  # fmt: skip
    found = make_paths_safe(FilesetManifestFile(path=form) for form in forms)
    assert {len(file.extra["twins"]) for file in found} == {10}
    assert found[0].path not in found[0].extra["twins"]


def test_twins_are_told_of_each_other_and_pass() -> None:
    found = make_paths_safe(files("Data/A.csv", "data/a.csv", "ﬁle", "file", "other"))
    assert [f.path for f in found] == ["Data/A.csv", "data/a.csv", "ﬁle", "file", "other"]
    assert [f.extra.get("twins") for f in found] == [
        ["data/a.csv"],
        ["Data/A.csv"],
        ["file"],
        ["ﬁle"],
        None,
    ]
