"""The one rule for paths, of manifests and of zips."""

import unicodedata
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources.datasets.item import FilesetManifestFile
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies.paths import make_paths_safe, safe_path

UNSAFE = {
    "": "empty",
    "/etc/passwd": "absolute",
    "C:\\x": "drive",
    "c:x": "drive",
    "../evil": "..",
    "a/../../evil": "..",
    "a/./b": "part that is .",
    "a//b": "empty",
    "folder/": "empty",
    "a\0b": "U+0000",
    "\\\\server\\x": "empty",
    "a\\..\\b": "..",
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


ODD = {
    "aux.csv": "%61ux.csv",
    "data/con.txt": "data/%63on.txt",
    "com1 .csv": "%63om1 .csv",
    "LPT\u00b9": "%4CPT\u00b9",
    "100%\t.csv": "100%25%09.csv",
    "a\\b": "a%5Cb",
    "why?.csv": "why%3F.csv",
    'a<b>:"|*/c': "a%3Cb%3E%3A%22%7C%2A/c",
    "...": "..%2E",
    "ab:c": "ab%3Ac",
    "100%. /b.": "100%25.%20/b%2E",
    "a\u2028b": "a%E2%80%A8b",
    "a\ud800b": "a%ED%A0%80b",
}


@pytest.mark.parametrize("raw", ODD, ids=ascii)
def test_an_invalid_name_is_escaped_reversibly(raw: str) -> None:
    assert safe_path(raw) == ODD[raw] == safe_path(ODD[raw])
    assert unquote_to_bytes(ODD[raw]) == raw.encode("utf-8", "surrogatepass")
    (file,) = make_paths_safe(files(raw))
    assert (file.path, file.extra["raw_path"]) == (ODD[raw], raw)


def test_a_long_name_keeps_its_beginning_and_its_ending() -> None:
    one, other = (safe_path(f"a/{'ž' * 200}{n}.tar.gz") for n in (1, 2))
    assert one != other
    assert one.startswith("a/žžž")
    assert one.endswith(".gz")
    assert len(one.encode()) - 2 in (254, 255)


@pytest.mark.parametrize("order", [1, -1])
def test_files_with_one_path_get_distinct_ones(order: int) -> None:
    given = [
        *files("m\u00e9d.csv", "me\u0301d.csv", "b/c", "b", "data~2.csv", "aux", "%61ux"),
        *(FilesetManifestFile(path="data.csv", platform_url=f"http://a/{n}") for n in (1, 2, 3)),
    ]
    found = make_paths_safe(given[::order])[::order]
    assert [file.path for file in found] == [
        *("m\u00e9d.csv", "me%CC%81d.csv", "b/c", "b~2", "data~2.csv", "%61ux~2", "%61ux"),
        *("data.csv", "data~3.csv", "data~4.csv"),
    ]
    assert [file.extra.get("raw_path", file.path) for file in found] == [f.path for f in given]


def test_a_file_that_cannot_be_kept_fails_alone_if_it_may() -> None:
    found = make_paths_safe(files("../a", "b"), partial=True)
    assert [(f.path, f.status) for f in found] == [("../a", "unsafe-path"), ("b", None)]
    with pytest.raises(FilesetError):
        make_paths_safe(files("../a", "/b"), partial=True)


def test_all_files_at_fault_are_marked_and_the_first_is_told() -> None:
    with pytest.raises(
        FilesetError, match=r"'\.\./a' has a part that is \.\., and 1 more"
    ) as caught:
        make_paths_safe(files("ok", "../a", "/b"))
    assert [f.status for f in caught.value.manifest] == [None, "unsafe-path", "unsafe-path"]


@given(st.lists(st.text("aAé\u0301e~2./\\%\t", min_size=1, max_size=6), max_size=8))
def test_paths_are_distinct_and_none_is_inside_a_file(raw: list[str]) -> None:
    try:
        found = make_paths_safe(files(*raw), partial=True)
    except FilesetError:
        return
    paths = [file.path for file in found if file.status is None]
    assert len(set(paths)) == len(paths)
    assert not {parent for p in paths for parent in map(str, PurePosixPath(p).parents)} & set(paths)
    assert paths == [safe_path(path) for path in paths]
    assert [file.extra.get("raw_path", file.path) for file in found] == raw


def test_paths_that_differ_only_in_case_or_compatible_characters_pass() -> None:
    paths = ["Data/A.csv", "data/a.csv", "ﬁle", "file", "other"]
    assert [f.path for f in make_paths_safe(files(*paths))] == paths
