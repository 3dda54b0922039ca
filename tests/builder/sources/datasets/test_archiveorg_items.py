"""archive.org: items, with what was put into them and without what was made of it."""

from typing import Any

import pytest

from builder.sources.datasets.item import FilesetPlatformItem, Person
from builder.sources.datasets.platforms.archiveorg import ArchiveOrg
from builder.sources.datasets.protocols import FilesetError
from tests.builder.sources.datasets import pages
from tests.builder.sources.datasets.pages import Site, cases
from tests.builder.sources.datasets.samples import ARCHIVEORG, MD5, SHA1, archiveorg

PAGE = "https://archive.org/details/honey-1903"
SITE = Site(ArchiveOrg(), PAGE, whole={ARCHIVEORG: archiveorg()})
FORMS = [
    ("https://www.archive.org/download/honey-1903/", None),
    (f"{PAGE}/page/n5/mode/2up", None),  # a book that is shown at a page
]


def item(given: Any, url: str = PAGE, api: str = ARCHIVEORG) -> FilesetPlatformItem:
    return SITE.item({api: given}, url)


@pytest.mark.parametrize(
    "url",
    [
        "https://archive.org/search?query=honey",
        "https://web.archive.org/web/2020/https://archive.org/details/honey-1903",
        "https://archive.org.example.com/details/honey-1903",
    ],
)
def test_captures_and_other_pages_are_no_items(url: str) -> None:
    assert not SITE.matches(url)


def test_what_was_put_into_an_item_is_kept_and_what_was_made_of_it_is_left() -> None:
    """Scenario 25."""
    found = SITE.item()
    first, second = found.files
    assert (first.path, first.size, first.md5, first.sha1) == ("honey/1903.csv", 120, MD5, SHA1)
    assert (first.crc32, first.mimetype) == ("0123abcd", "text/csv")
    assert first.platform_url == "https://archive.org/download/honey-1903/honey/1903.csv"
    assert (second.path, second.mimetype) == ("scan 1.tif", None)
    assert second.platform_url == "https://archive.org/download/honey-1903/scan%201.tif"
    assert second.extra == {"format": "A Format Of 2031"}
    assert found.archiveorg_item_name == found.platform_id == "honey-1903"
    assert found.archiveorg_item_meta == {"collection": ["bees"], "mediatype": "data"}


def test_an_item_is_described() -> None:
    said = SITE.item().description
    assert said.title == "Honey in 1903"
    assert said.creators == (
        Person(name="Medová, Jana", given="Jana", family="Medová"),
        Person(name="Včelař, Jan, 1870-1940"),
    )
    assert said.contributors == (Person(name="Library of Brno", role="Other"),)
    assert (said.publisher, said.published, said.type) == ("Internet Archive", "1903", "Dataset")
    assert (said.abstract, said.subjects) == ("Prices of honey.", ("honey", "bees"))
    assert (said.licences[0].spdx, said.doi) == ("CC0-1.0", "10.1234/honey.1903")


def test_torrents_of_academic_torrents_are_about_the_files_and_none_of_them() -> None:
    name = "academictorrents_" + MD5
    files = [
        {"name": f"{name}.torrent", "source": "original"},
        {"name": f"{name}.bib", "source": "original"},
        {"name": "bees.torrent", "source": "original", "size": "1"},
    ]
    found = item(
        archiveorg(files=files, files_count=3),
        f"https://archive.org/details/{name}",
        f"https://archive.org/metadata/{name}",
    )
    assert [file.path for file in found.files] == ["bees.torrent"]


REFUSED = cases(
    "given status code",
    [
        ([], "platform-404", ""),
        ({}, "platform-404", ""),
        ({"is_dark": True, "created": 1}, "platform-gone", ""),
        (archiveorg(metadata={"mediatype": "collection"}), "platform-scope", "collection"),
        (archiveorg(metadata={"mediatype": "web"}), "platform-scope", "no-dataset"),
        (archiveorg(metadata={"mediatype": "account"}), "platform-scope", "no-dataset"),
        (archiveorg(files_count=9), "incomplete-manifest", ""),
        (archiveorg(files=None), "platform-bad-response", ""),
        (archiveorg(metadata=None), "platform-bad-response", ""),
        (archiveorg(files=[{"source": "original"}], files_count=1), "platform-bad-response", ""),
    ],
    make=lambda given: {ARCHIVEORG: given},
)
REFUSED += cases(
    "url status code",
    [
        ("https://archive.org/download/honey-1903/honey/1903.csv", "platform-scope", "file-level"),
        ("https://archive.org/details/@beekeeper", "platform-scope", "no-dataset"),
        ("https://archive.org/details/honey%201903", "bad-identifier", ""),
        ("https://archive.org/about", "platform-scope", "no-dataset"),
    ],
)


def test_items_that_are_lent_and_files_that_are_private_are_withheld() -> None:
    assert item(archiveorg(nodownload=True)).platform_status == "platform-restricted"
    lent = archiveorg()
    lent["metadata"]["access-restricted-item"] = "true"
    assert item(lent).platform_status == "platform-restricted"
    private = archiveorg()
    private["files"][0]["private"] = "true"
    found = item(private)
    assert [file.path for file in found.withheld] == ["honey/1903.csv"]
    assert [file.path for file in found.files] == ["scan 1.tif"]


def test_real_items_are_read() -> None:
    def real(name: str) -> FilesetPlatformItem:
        given = pages.real(f"archiveorg/metadata_{name}.json")
        page = f"https://archive.org/details/{name}"
        return item(given, page, f"https://archive.org/metadata/{name}")

    found = real("journalofexpedit00ford")
    assert len(found.files) == 6
    assert sum(file.size or 0 for file in found.files) == 20_653_487
    assert not any(
        file.path.endswith(("_files.xml", "_meta.xml", ".torrent")) for file in found.files
    )
    with pytest.raises(FilesetError, match="collection"):
        real("nasa_collection")
    with pytest.raises(FilesetError, match="platform-404"):
        real("nonexistent")
