"""Where a dataset lies in the store."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from builder.sources.datasets.item import FilesetManifestFile, FilesetPlatformItem
from builder.sources.datasets.strategies import keys as place

ITEM = FilesetPlatformItem(
    platform_name="invenio",
    platform_domain="data.example.cz",
    platform_id="doi:10.1234/AB CD",
    version="2",
    manifest=(
        FilesetManifestFile(path="a.csv", size=3, md5="0" * 32),
        FilesetManifestFile(path="b.csv", size=4),
    ),
)


def test_a_place_is_named_by_what_it_is_of() -> None:
    base = place.place(ITEM)
    assert re.fullmatch(
        r"filesets/invenio/data\.example\.cz/doi%3A10\.1234%2FAB%20CD/2\.[0-9a-f]{12}/", base
    )
    assert place.prefix_of(base + "fileset.json") == base
    assert place.prefix_of(base + "files/a/b/c") == base
    assert place.prefix_of("filesets/stray") is None
    assert place.prefix_of("records/a/b/c/d.0123456789ab/e") is None


def test_the_order_of_files_is_no_matter_and_each_thing_that_is_told_of_their_bytes_is() -> None:
    first, second = ITEM.files
    base = place.place(ITEM)
    assert place.place(replace(ITEM, manifest=(second, first))) == base
    assert place.place(replace(ITEM, manifest=(replace(first, mimetype="x/y"), second))) == base
    withheld = FilesetManifestFile(path="c", status="withheld")
    assert place.place(replace(ITEM, manifest=(first, second, withheld))) == base
    others = [
        replace(first, **change)
        for change in (
            {"path": "A.csv"},
            {"size": 4},
            {"size": None},
            {"md5": "1" * 32},
            {"sha1": "0" * 40},
            {"sha256": "0" * 64},
            {"sha512": "0" * 128},
        )
    ]
    places = {place.place(replace(ITEM, manifest=(other, second))) for other in others}
    assert len(places) == len(others)
    assert base not in places


def test_what_is_missing_or_leads_elsewhere_has_a_name_as_well() -> None:
    for name in ("", ".", ".."):
        base = place.place(replace(ITEM, platform_id=name, version=None))
        assert re.search(r"/%[0-9A-F%]+/0\.[0-9a-f]{12}/$", base)


@given(
    st.lists(st.text(min_size=1, max_size=400), min_size=1, max_size=6, unique=True),
    st.text(max_size=300),
    st.text(max_size=300),
)
def test_keys_are_plain_short_and_all_different_on_any_disk(
    paths: list[str], name: str, version: str
) -> None:
    item = replace(ITEM, platform_domain=name, platform_id=name, version=version)
    base = place.place(item)
    keys = place.file_keys(base, paths)
    assert list(keys) == paths
    for key in [*keys.values(), place.warc_key(item, "20261122000000")]:
        assert re.fullmatch(r"[A-Za-z0-9._~+=@%/-]+", key)
        assert len(key) <= 1000
        for part in key.split("/"):
            assert 0 < len(part) <= 255
            assert part not in (".", "..")
    lower = [key.lower() for key in keys.values()]
    assert len(set(lower)) == len(lower)
    for one in lower:
        assert not any(other.startswith(one + "/") for other in lower)


def test_paths_that_differ_by_case_alone_and_files_that_are_folders_there_lie_apart() -> None:
    keys = place.file_keys("x/", ["A.csv", "a.csv", "b", "B/c", "plain/d"])
    assert keys["plain/d"] == "x/files/plain/d"
    assert keys["B/c"] == "x/files/B/c"
    for path in ("A.csv", "a.csv", "b"):
        assert re.fullmatch(rf"x/files/%7E[0-9a-f]{{32}}/{re.escape(path)}", keys[path])


def test_two_long_names_that_begin_alike_are_two() -> None:
    one, other = place.part("ž" * 100 + "a"), place.part("ž" * 100 + "b")
    assert one != other
    assert len(one) <= 200
    assert not re.search(r"%(?![0-9A-F]{2})", one)


def test_a_warc_is_named_by_the_dataset_and_the_instant() -> None:
    assert re.fullmatch(
        r"warcs/invenio-data\.example\.cz-doi%3A10\.1234%2FAB%20CD-[0-9a-f]{12}-20261122101112"
        r"\.warc\.gz",
        place.warc_key(ITEM, "20261122101112"),
    )
