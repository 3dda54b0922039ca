"""Damage and hostility: whatever an archive file has, it gives bytes or one of the codes."""

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.intake.captures import Capture
from functions.content.archives import PlacedArchives
from functions.content.contents import ArchivedContents
from functions.content.protocols import ContentError
from functions.reading.repository import PublishedRecord
from functions.store.slice import FolderSlices
from tests.builder.sources.webarchives.containers import (
    archived,
    captures,
    frames,
    http,
    members,
    warc,
)
from tests.functions.content.stored import NONE, Stored
from tests.functions.content.test_record import FORMS
from tests.memory import at_most

SMALL = {name: FORMS[name]() for name in FORMS}
FOUND = {name: captures(data, name=name) for name, data in SMALL.items()}


def listed(folder: Path, found: list[Capture]) -> Stored:
    made = Stored(folder, FolderSlices(folder))
    made.list(found)
    return made


def refused(contents: ArchivedContents, one: PublishedRecord) -> str:
    """Return the code with which bytes are refused; "" if they come, as many as there were."""
    try:
        with contents.open_content(contents.find(NONE, one), coded=True) as stream:
            assert len(stream.read()) == one.fields["content_length"]
    except ContentError as error:
        return error.code
    return ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damage")


@given(
    st.sampled_from(sorted(FORMS)),
    st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=12)), max_size=4),
    st.floats(0, 1),
    st.booleans(),
)
def test_a_damaged_file_gives_sound_bytes_or_says_that_it_is_damaged(
    folder: Path, name: str, changes: list[tuple[float, bytes]], end: float, unknown: bool
) -> None:
    data = bytearray(SMALL[name])
    for where, patch in changes:
        at = int(where * len(data))
        data[at : at + len(patch)] = patch
    (folder / name).write_bytes(data[: int((0.5 + end) * len(data))])
    stored = listed(folder, FOUND[name])
    if unknown:  # as of an index
        for one in stored.records:
            one.fields["warc_record_length"] = None  # type: ignore[index]
    contents = stored.contents()
    for one in stored.records:
        assert refused(contents, one) in ("", "damaged", "not-at-hand")


PLACES = {one.warc_record_offset for one in FOUND["a.warc"]}


@given(st.integers(0, 1 << 70), st.one_of(st.none(), st.integers(0, 1 << 70)))
def test_any_place_gives_bytes_or_a_code(folder: Path, offset: int, length: int | None) -> None:
    (folder / "a.warc").write_bytes(SMALL["a.warc"])
    stored = listed(folder, FOUND["a.warc"][:1])
    (one,) = stored.records
    one.fields["warc_record_offset"] = offset  # type: ignore[index]
    one.fields["warc_record_length"] = length  # type: ignore[index]
    if any(0 <= place - offset <= 4 for place in PLACES):
        return  # the record itself, or the newlines before it
    with pytest.raises(ContentError) as error:
        stored.read()
    assert error.value.code == "damaged"


HUGE = 32 << 20


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["gz", "zst", "wacz", "coded"])
def test_a_large_payload_is_read_in_little_memory(stored: Stored, form: str) -> None:
    """However small it lies there."""
    if form == "coded":
        packed = members([bytes(HUGE)])
        data = members([warc(http(packed, b"Content-Encoding: gzip"))])
    else:
        block = [warc(http(bytes(HUGE)))]
        data = frames(block) if form == "zst" else members(block)
    name = {"zst": "a.warc.zst", "wacz": "a.wacz"}.get(form, "a.warc.gz")
    if form == "wacz":
        data = archived(("archive/a.warc.gz", data), method=zipfile.ZIP_DEFLATED)
    stored.put(name, data)
    contents = stored.contents()
    found = contents.find(NONE, stored.one())
    del data, form
    count = 0
    with at_most(12 << 20), contents.open_content(found) as stream:
        while piece := stream.read(1 << 16):
            count += len(piece)
    assert count == HUGE


READ: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: data[:-22],
    lambda data: data[:-30] + bytes(30),
    lambda data: data.replace(b"PK\3\4", b"PK\3\5"),
    lambda data: data.replace(b"archive/one", b"Archive/one", 1),
    lambda data: b"Archive/one".join(data.rsplit(b"archive/one", 1)),
    lambda data: data[:-10] + b"\xff\xff\xff\x7f" + data[-6:],
    lambda data: data[:-6] + b"\xff\xff\xff\xff" + data[-2:],
)
LOST: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: b"PK\3\4" + bytes(500),
    lambda data: data.replace(b"archive/one.warc.gz", b"archive/two.warc.gz"),
    lambda data: data[: data.index(b"archive/one")],
)


def test_a_declared_length_of_ten_gigabytes_takes_no_more_than_is_there(stored: Stored) -> None:
    stored.put("a.warc", warc(http(b"short"), length=b"10737418240", end=b""))
    assert stored.read() == b"short"
    found = stored.found()
    assert (found.size, found.facts) == (5, {"truncated": "unspecified"})


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        *((change, {""}) for change in READ),
        *((change, {"damaged", "not-at-hand"}) for change in LOST),
    ],
)
def test_a_wacz_with_a_damaged_directory_is_read_or_told(
    stored: Stored, change: Callable[[bytes], bytes], codes: set[str]
) -> None:
    stored.put("stored.wacz", SMALL["stored.wacz"])
    (stored.folder / "stored.wacz").write_bytes(change(SMALL["stored.wacz"]))
    contents = stored.contents()
    for one in stored.records:
        assert refused(contents, one) in codes


WITHOUT = """
import sys
for name in ("brotli", "isal", "zstandard"):
    sys.modules[name] = None
from pathlib import Path
from functions.archive import record_reader
from functions.archive.coding import ContentCodingError, decode_codings
for coding in ("br", "zstd"):
    try:
        decode_codings(iter([b""]), [coding], chunked=False)
    except ContentCodingError as error:
        print(error)
with Path(sys.argv[1]).open("rb") as stream:
    print(b"".join(record_reader.read_record(stream, 0).payload()).decode())
with Path(sys.argv[2]).open("rb") as stream:
    try:
        record_reader.read_record(stream, 0)
    except record_reader.UnreadableRecordError as error:
        print(error)
"""


def test_without_the_libraries_what_needs_none_is_read_and_the_rest_is_told(tmp_path: Path) -> None:
    """As in the function, which is deployed without them."""
    record = warc(http(b"plain"))
    (tmp_path / "gz").write_bytes(members([record]))
    (tmp_path / "zst").write_bytes(frames([record]))
    given = [sys.executable, "-c", WITHOUT, str(tmp_path / "gz"), str(tmp_path / "zst")]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "br is not decoded here: the package brotli is not installed",
        "zstd is not decoded here: the package zstandard is not installed",
        "plain",
        "zstd is not read here: the package zstandard is not installed",
    ]


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize(
    ("digest", "code"),
    [("", "damaged"), ("6JEX3BZUKFAO2W5VH6RDHK5ELYNO7XLV", ""), ("A" * 32, "damaged")],
)
def test_bytes_of_a_damaged_member_are_given_where_a_digest_proves_them(
    stored: Stored, digest: str, code: str, verified: bool
) -> None:
    told = (b"WARC-Payload-Digest: sha1:" + digest.encode(),) if digest else ()
    data = bytearray(members([warc(http(b"some bytes"), *told)]))
    data[-8] ^= 1  # of the checksum
    stored.put("a.warc.gz", bytes(data))
    contents = stored.contents()
    found = contents.find(NONE, stored.one(content_damaged="checksum"))
    assert found.facts["damaged"] == "checksum"
    said = ""
    try:
        with contents.open_content(found, verified=verified) as stream:
            assert stream.read() == b"some bytes"
    except ContentError as error:
        said = error.code
    assert said == code


@pytest.mark.parametrize("offsets", [(0, 1000), (1000, 0)])
@pytest.mark.parametrize("length", [500, None])
def test_the_order_of_requests_changes_no_bytes(
    tmp_path: Path, offsets: tuple[int, int], length: int | None
) -> None:
    """A damaged directory says 1,000 bytes of a file that has 2,000."""
    payload = bytes(range(250)) * 8
    data = bytearray(archived(("archive/a.warc", payload)))
    sizes = data.index(b"PK\1\2") + 20
    data[sizes : sizes + 8] = (1000).to_bytes(4, "little") * 2
    (tmp_path / "a.wacz").write_bytes(data)
    place = FolderSlices(tmp_path)
    archives = PlacedArchives([place], place)
    for offset in offsets:
        with archives.open(f"{place.address}/a.wacz!/archive/a.warc", offset, length) as stream:
            assert stream.read(500) == payload[offset : offset + 500]
