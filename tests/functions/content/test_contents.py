"""Contents of captures that are not simply there: revisits, what was taken down, odd names."""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from functions.content import archived_payload
from functions.content.archives import WITHIN, PlacedArchives
from functions.content.capture_row import CaptureRow
from functions.content.protocols import STATUSES, ContentError
from functions.reading.repository import PublishedRecord
from functions.store.slice import FolderSlices
from tests.builder.sources.webarchives.containers import PAGE, http, members, sha1, warc
from tests.functions.content.stored import NONE, Stored

DIGEST = b"WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
PACKED = gzip.compress(PAGE, mtime=0)


def revisit(block: bytes = b"") -> bytes:
    return warc(block, DIGEST, kind=b"revisit", date=b"2009-01-01T00:00:00Z")


def refused(stored: Stored, record: PublishedRecord) -> str:
    with pytest.raises(ContentError) as error:
        stored.contents().find(NONE, record)
    assert error.value.status == STATUSES[error.value.code]
    assert str(stored.folder) not in str(error.value)
    return error.value.code


def linked(stored: Stored, block: bytes) -> PublishedRecord:
    """List a capture and a revisit of it in another file, and return the revisit."""
    head = (b"Content-Type: text/html", b"Content-Encoding: gzip", b"Date: then")
    stored.put("a.warc.gz", members([warc(http(PACKED, *head))]))
    stored.put("b.warc.gz", members([revisit(block)]))
    original, again = stored.records
    return stored.refer(again, original)


def test_a_revisit_has_its_own_head_and_the_payload_of_its_original(stored: Stored) -> None:
    head = http(b"", b"Content-Type: text/plain", b"Date: now")
    again = linked(stored, head)
    found = stored.contents().find(NONE, again)
    assert found.headers == (("Content-Type", "text/plain"), ("Date", "now"))
    assert found.media_type == "text/plain"
    assert stored.read(warc_filename="b.warc.gz") == PAGE
    assert stored.read(warc_filename="b.warc.gz", coded=True) == PACKED
    assert found.original is not None
    assert found.original.filename == "a.warc.gz"
    assert found.digest == stored.found(warc_filename="a.warc.gz").digest


def test_a_revisit_that_was_not_modified_has_the_status_and_type_of_its_original(
    stored: Stored,
) -> None:
    again = linked(stored, http(b"", b"Date: now", status=b"HTTP/1.1 304 Not Modified"))
    found = stored.contents().find(NONE, again)
    assert again.fields["fetch_status"] == 304
    assert (found.status, found.media_type) == (200, "text/html")
    assert found.headers == (("Date", "now"),)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_revisit_without_a_head_has_that_of_its_original(stored: Stored, is_there: bool) -> None:
    again = linked(stored, b"")
    if not is_there:
        (stored.folder / "b.warc.gz").unlink()
    found = stored.contents().find(NONE, again)
    assert ("Date", "then") in found.headers
    assert stored.read(warc_filename="b.warc.gz") == PAGE


def test_a_revisit_has_no_bytes_without_its_original(stored: Stored) -> None:
    again = linked(stored, b"")
    original = stored.one(warc_filename="a.warc.gz")
    assert refused(stored, replace(again, fields={**again.fields, "refers_to": None})) == (
        "unresolved"
    )
    (stored.folder / "a.warc.gz").rename(stored.folder / "c")
    assert refused(stored, again) == "not-at-hand"
    (stored.folder / "c").rename(stored.folder / "a.warc.gz")
    gone = stored.withdraw(original)
    assert refused(stored, again) == "unresolved"
    stored.records.remove(gone)
    assert refused(stored, again) == "unresolved"


def test_a_revisit_of_a_revisit_has_no_bytes(stored: Stored) -> None:
    stored.put("a.warc.gz", members([revisit()]))
    stored.put("b.warc.gz", members([revisit()]))
    first, second = stored.records
    assert refused(stored, stored.refer(second, first)) == "unresolved"


def test_a_collection_and_what_was_taken_down_have_no_bytes(stored: Stored) -> None:
    stored.put("a.warc", warc(http(PAGE)))
    assert refused(stored, replace(stored.one(), kind="collection")) == "no-content"
    assert refused(stored, stored.withdraw(stored.one())) == "withdrawn"


@pytest.mark.parametrize(
    "name",
    [
        "../outside.warc",
        "..",
        ".",
        "",
        "/etc/passwd",
        "a/../../outside.warc",
        "a.wacz/../outside.warc",
        "..\\outside.warc",
        "a.wacz//outside.warc",
        "outside.warc\0",
        "outside.warc\n",
        f"x{WITHIN}../outside.warc",
        "x" * 300,
        "folder",
        "link/outside.warc",
        "a.warc/b.warc",
    ],
)
def test_a_name_leads_nowhere_else(stored: Stored, name: str) -> None:
    """Even where it comes out of an index that somebody made for it."""
    runtime = warc(http(PAGE))
    (stored.folder.parent / "outside.warc").write_bytes(runtime)
    (stored.folder / "folder").mkdir()
    (stored.folder / "link").symlink_to(stored.folder.parent)
    stored.put("a.warc", runtime)
    listed = stored.one()
    led = replace(listed, fields={**listed.fields, "warc_filename": name})
    assert refused(stored, led) in ("not-at-hand", "unplaced", "damaged")


def placed(*folders: Path, store: Path, recorded: Sequence[str] = ()) -> PlacedArchives:
    places = [FolderSlices(folder) for folder in folders]
    return PlacedArchives(
        places, FolderSlices(store), lambda name: recorded, lambda at: FolderSlices(Path(at))
    )


def of(stored: Stored) -> CaptureRow:
    one = stored.one()
    return CaptureRow.of(one.identifier, 1, (), one.fields)


def unopened(archives: PlacedArchives, stored: Stored) -> ContentError:
    """Return why the one record cannot be opened."""
    with pytest.raises(ContentError) as error, archived_payload.open_record(archives, of(stored)):
        pass
    return error.value


def addresses(archives: PlacedArchives, name: str, folder: Path) -> list[str]:
    return [address.removeprefix(f"{folder}/") for address in archives.candidates(name)]


def test_places_are_tried_in_order_and_what_is_not_the_file_is_passed_over(
    stored: Stored, tmp_path: Path
) -> None:
    stored.put("a.warc", warc(http(PAGE)))
    first, second, store = tmp_path / "first", tmp_path / "second", tmp_path / "store"
    archives = placed(first, second, stored.folder, store=store)
    assert addresses(archives, "a.warc", tmp_path) == [
        "first/a.warc",
        "second/a.warc",
        "archives/a.warc",
        "store/warcs/a.warc",
    ]
    second.mkdir()
    (second / "a.warc").write_bytes(warc(http(b"other"), url=b"http://b.cz/"))
    with archived_payload.open_record(archives, of(stored)) as found:
        assert found.address == str(stored.folder / "a.warc")
    (stored.folder / "a.warc").unlink()
    assert "has another URL" in str(unopened(archives, stored))


def test_files_of_one_name_are_told_apart_by_date_and_digest(
    stored: Stored, tmp_path: Path
) -> None:
    digest = b"WARC-Payload-Digest: sha1:" + sha1(PAGE).encode()
    stored.put("a.warc", warc(http(PAGE), digest))
    for name, other in (
        ("date", warc(http(b"later"), date=b"2020-01-02T03:04:05Z")),
        ("digest", warc(http(b"other"), digest.replace(sha1(PAGE).encode(), b"A" * 32))),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.warc").write_bytes(other)
        archives = placed(tmp_path / name, stored.folder, store=tmp_path / "store")
        with archived_payload.open_record(archives, of(stored)) as record:
            assert record.address == str(stored.folder / "a.warc")
    lonely = placed(tmp_path / "date", store=tmp_path / "store")
    assert "has another date" in str(unopened(lonely, stored))


def test_without_places_files_are_where_they_were_ingested_or_in_the_store(
    stored: Stored, tmp_path: Path
) -> None:
    stored.put("a.warc", warc(http(PAGE)))
    store = tmp_path / "store"
    recorded = (str(stored.folder / "a.warc"), str(stored.folder / "b.warc"), "-")
    archives = placed(store=store, recorded=recorded)
    assert addresses(archives, "a.warc", tmp_path) == ["archives/a.warc", "store/warcs/a.warc"]
    with archived_payload.open_record(archives, of(stored)) as found:
        assert b"".join(found.document.payload()) == PAGE
    (store / "warcs").mkdir(parents=True)
    (stored.folder / "a.warc").rename(store / "warcs" / "a.warc")
    with archived_payload.open_record(archives, of(stored)) as found:
        assert found.address == str(store / "warcs" / "a.warc")
    # Places are searched before the others, with their subfolders.
    assert addresses(placed(tmp_path, store=store, recorded=recorded), "a.warc", tmp_path) == [
        "a.warc",
        "store/warcs/a.warc",
        "archives/a.warc",
    ]


def test_a_file_that_was_moved_is_found_once_it_is_ingested_there(
    stored: Stored, tmp_path: Path
) -> None:
    stored.put("a.warc", warc(http(PAGE)))
    recorded = [str(tmp_path / "nowhere" / "a.warc")]
    archives = placed(store=tmp_path / "store", recorded=recorded)
    assert unopened(archives, stored).code == "not-at-hand"
    recorded[:] = [str(stored.folder / "a.warc")]
    with archived_payload.open_record(archives, of(stored)) as found:
        assert found.address == recorded[0]


@pytest.mark.parametrize(
    ("places", "path", "candidates"),
    [
        ((), "s3://b/up/a.warc", ["s3://b/up/a.warc"]),
        ((), "s3://b/u?p#/a.warc", ["s3://b/u?p#/a.warc"]),
        ((), "s3://b/up//a.warc", []),
        (("s3://b/up",), "s3://b/up/x/a.warc", ["s3://b/up/a.warc", "s3://b/up/x/a.warc"]),
        (("s3://b/up",), "s3://b/up/a.warc", ["s3://b/up/a.warc"]),
        (("s3://b",), "s3://b/up/x/a.warc", ["s3://b/a.warc", "s3://b/up/x/a.warc"]),
        (("s3://b/up",), "s3://c/up/a.warc", ["s3://b/up/a.warc", "s3://c/up/a.warc"]),
        (("s3://b/up",), "/srv/a.warc", ["s3://b/up/a.warc", "/srv/a.warc"]),
    ],
)
def test_files_are_also_looked_for_where_they_were_ingested(
    places: tuple[str, ...], path: str, candidates: list[str], tmp_path: Path
) -> None:
    class Bucket(FolderSlices):
        def __init__(self, address: str) -> None:
            super().__init__(tmp_path)
            self._address = address

        @property
        def address(self) -> str:
            return self._address

        def bucket(self, key: str) -> tuple[str, str]:
            return "b", key

    store = FolderSlices(tmp_path)
    archives = PlacedArchives([*map(Bucket, places)], store, lambda name: (path,), Bucket)
    assert archives.candidates("a.warc") == [*candidates, f"{tmp_path}/warcs/a.warc"]


@pytest.mark.parametrize(
    "address",
    [
        "/etc/passwd",
        "a.warc",
        "{folder}/../outside.warc",
        "{folder}/b/a.warc",
        "{store}/current.json",
        "{store}/obi/../current.json",
        "{store}/intake/run/captures.parquet",
        "{store}/",
        "",
    ],
)
def test_an_address_that_is_no_candidate_is_not_opened(
    stored: Stored, tmp_path: Path, address: str
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "current.json").write_bytes(b"{}")
    archives = placed(stored.folder, store=store)
    with pytest.raises(ContentError) as error:
        archives.open(address.format(folder=stored.folder, store=store), 0, None)
    assert error.value.code == "not-at-hand"
