"""PANGAEA: a table, files, or a list of files, told by JSON-LD; a series is no dataset."""

from typing import Any

import pytest

from builder.sources.datasets.item import Person, Related
from builder.sources.datasets.platforms.pangaea import Pangaea
from tests.builder.sources.datasets.pages import Site, cases, real
from tests.builder.sources.datasets.samples import MD5, PANGAEA, pangaea

METADATA = f"{PANGAEA}?format=metadata_jsonld"
TABLE = f"{PANGAEA}?format=textfile"
FILES = [{"name": "Binary Object"}, {"name": "Binary Object (File Size)"}]
SITE = Site(Pangaea(), PANGAEA, whole={METADATA: pangaea()})
item, refused = SITE.item, SITE.refused
FORMS = [
    ("https://doi.pangaea.de/10.1594%2FPANGAEA.4711", None),
    ("https://doi.org/10.1594/pangaea.4711", "10.1594/pangaea.4711"),
]


def test_a_table_is_one_file_whose_size_nothing_tells() -> None:
    found = item()
    (file,) = found.files
    assert (file.path, file.size, file.md5) == ("PANGAEA.4711.tab", None, None)
    assert (file.platform_url, file.mimetype) == (TABLE, "text/tab-separated-values")
    assert (found.platform_domain, found.platform_id) == ("doi.pangaea.de", "4711")


def test_a_dataset_is_described() -> None:
    said = item().description
    assert (said.title, said.abstract) == ("Honey of the Arctic", "Whole text.")
    assert said.creators == (
        Person(name="Medová, Jana", given="Jana", family="Medová", orcid="0000-0002-1825-0097"),
        Person(name="Bee Institute", organisation=True),
    )
    assert (said.publisher, said.published, said.language) == ("PANGAEA", "2019-06-21", "en")
    assert (said.subjects, said.doi) == (("honey", "bees"), "10.1594/pangaea.4711")
    assert said.licences[0].spdx == "CC-BY-4.0"
    assert said.related == (Related("10.1234/paper", "DOI", "References"),)


@pytest.mark.parametrize("measured", [FILES, None], ids=["told", "not told"])
def test_a_table_of_files_is_the_list_of_them(measured: Any) -> None:
    table = (
        "/* DATA DESCRIPTION:\nCitation:\tMedová, Jana\n*/\n"
        "Binary\tBinary (Size) [Bytes]\tBinary (Hash)\n"
        f"hive 1.nc\t100\t{MD5}\n"
        "hive2.nc\t100\tunknown\n\n"
    ).encode()
    found = item({METADATA: pangaea(variableMeasured=measured), TABLE: table})
    assert [(file.path, file.md5) for file in found.files] == [
        ("hive 1.nc", MD5),
        ("hive2.nc", None),
    ]
    assert found.files[0].platform_url == (
        "https://download.pangaea.de/dataset/4711/files/hive%201.nc"
    )


def test_a_table_may_list_two_files_a_row_and_lack_cells_at_the_end() -> None:
    head = "Event\tBinary\tBinary (Hash)\tBinary\tBinary (Hash)\tNote\n"
    rows = f"E1\u2028x\ta.nc\t{MD5}\tb.nc\t{MD5}\tn\r\nE2\tc.nc\t{MD5}\t\t\n"
    table = (head + rows).encode()
    found = item({METADATA: pangaea(variableMeasured=FILES), TABLE: table})
    assert [file.path for file in found.files] == ["a.nc", "b.nc", "c.nc"]
    assert {file.md5 for file in found.files} == {MD5}
    cut = {METADATA: pangaea(variableMeasured=FILES), TABLE: table + b"E3\td.nc\n"}
    assert refused(cut)[0] == "incomplete-manifest"


@pytest.mark.parametrize(
    "table",
    [b"Depth [m]\tTemp\n1\t2\n", b"/* never ends\nBinary\tBinary (Hash)\n", b""],
    ids=["of values", "comment without an end", "empty"],
)
def test_a_table_of_values_is_the_file_itself(table: bytes) -> None:
    found = item({METADATA: pangaea(variableMeasured=FILES), TABLE: table})
    assert [file.path for file in found.files] == ["PANGAEA.4711.tab"]


def test_a_file_is_given_as_it_is() -> None:
    url = "https://store.pangaea.de/Publications/Medova/honey%20map.tif"
    one = {"encodingFormat": "image/tiff", "contentUrl": url}
    (file,) = item({METADATA: pangaea(distribution=one)}).files
    assert (file.path, file.mimetype, file.platform_url) == ("honey map.tif", "image/tiff", url)
    zipped = {"contentUrl": f"{PANGAEA}?format=zip", "encodingFormat": "application/zip"}
    assert [file.path for file in item({METADATA: pangaea(distribution=zipped)}).files] == [
        "PANGAEA.4711.zip"
    ]
    assert item({METADATA: pangaea(distribution=None)}).files == ()


CLOSED = cases(
    "given",
    [({"isAccessibleForFree": False},), ({"conditionsOfAccess": "access rights needed"},)],
    status="platform-restricted",
    make=lambda given: {METADATA: pangaea(**given)},
)
REFUSED = cases(
    "url documents code",
    [
        (PANGAEA, {METADATA: pangaea(size={"value": 41, "unitText": "datasets"})}, "collection"),
        ("https://www.pangaea.de/about", {}, "no-dataset"),
    ],
    status="platform-scope",
)
REFUSED += cases(
    "documents status",
    [
        ({METADATA: pangaea(identifier="https://doi.org/10.1594/PANGAEA.1")}, "platform-error"),
        ({METADATA: []}, "platform-bad-response"),
        ({METADATA: b"<html>"}, "platform-bad-response"),
        ({METADATA: 404}, "platform-404"),
        ({METADATA: pangaea(variableMeasured=FILES)}, "incomplete-manifest"),
        ({METADATA: pangaea(variableMeasured=FILES), TABLE: 403}, "platform-restricted"),
    ],
)


def test_a_real_series_is_told_and_read_without_its_unit() -> None:
    given = real("pangaea/902845_jsonld.json")
    page = "https://doi.pangaea.de/10.1594/PANGAEA.902845"
    url = f"{page}?format=metadata_jsonld"
    assert refused({url: given}, page) == ("platform-scope", "collection")
    found = item({url: given | {"size": None}}, page)
    assert [file.path for file in found.files] == ["PANGAEA.902845.zip"]
    assert len(found.description.creators) == 9
    assert len(found.description.related) == 3
