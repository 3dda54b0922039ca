"""Files as one zip of the store: made here and the same each time, or the platform's own."""

import io
import random
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from builder import zip
from builder.sources.datasets.item import FilesetPlatformItem
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies import record
from builder.sources.datasets.strategies.keys import place
from builder.store.folder import FolderStore
from functions.snapshot.store import Sink, Writer
from tests.bucket import Bucket, administrator
from tests.builder.sources.datasets.body import Body, Generated, digest, zipped
from tests.builder.sources.datasets.body import whole as body_of
from tests.builder.sources.datasets.server import Answer, Server, served, then
from tests.builder.sources.datasets.test_s3 import HOST, item_of, objects
from tests.builder.sources.datasets.world import World
from tests.builder.store.test_creating import dangling
from tests.memory import at_most

pytestmark = pytest.mark.shared(3)

ROOT = Path(__file__).parents[4]
OPENICPSR = ROOT.parent / "shared" / "data" / "filesets" / "openicpsr" / "bundle_132081_V1.zip"
ALL = "https://data.example.cz/all.zip"
MEGA = 1 << 20
PART = 4 * MEGA
FILM = Generated(6 * MEGA, 2)
WRONG = served(FILM, wrong=PART + 9)
BODIES: dict[str, Body] = {
    "data/med.csv": b"rok,kg\n2020,31\n",
    "mapa.tif": Generated(3 * MEGA),
    "film.mp4": FILM,
    "prázdný soubor.txt": b"",
}


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member is large, and so in two parts, with half the bytes."""
    monkeypatch.setattr(zip, "PART", PART)


def strategy(store: Writer, there: World, **settings: Any) -> Any:
    return there.strategy("s3-fileset-bundled", store, **settings)


def ranged(store: Writer, key: str, start: int, size: int) -> bytes:
    """Return bytes of an object by one request for a range, as anybody makes it."""
    if isinstance(store, Bucket):
        client = administrator(store.endpoint)
        asked = f"bytes={start}-{start + size - 1}"
        name = f"{store.uri.partition(store.bucket + '/')[2]}/{key}"
        answer = client.get_object(Bucket=store.bucket, Key=name, Range=asked)
        return bytes(answer["Body"].read())
    assert isinstance(store, FolderStore)
    with store.path(key).open("rb") as file:
        file.seek(start)
        return file.read(size)


def test_all_files_are_one_zip_and_each_is_one_range(there: World, store: Writer) -> None:
    item = item_of(there.server, BODIES)
    found = strategy(store, there).process(item)
    key = place(item) + "bundle.zip"
    assert found.location == key
    assert list(objects(store)) == [key, place(item) + "fileset.json"]
    whole = store.read(key)
    assert found.bundle_file_meta.sha256hex == digest("sha256", whole)
    assert found.bundle_file_meta.size_bytes == len(whole)
    assert found.bundle_terminal is None
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        assert archive.namelist() == sorted(BODIES)
        assert archive.testzip() is None
    for file in found.manifest:
        assert (file.key, file.compression) == (key, "stored")
        assert file.offset is not None
        data = body_of(BODIES[file.path])
        if data:
            middle = min(100, len(data) // 2)
            part = ranged(store, key, file.offset + middle, min(100, len(data) - middle))
            assert part == data[middle : middle + 100]


def test_a_large_member_that_comes_anew_begins_the_bundle_anew(there: World, store: Writer) -> None:
    item = item_of(there.server, BODIES)
    there.server.add(f"{HOST}2", then(WRONG, served(FILM)))
    found = strategy(store, there).process(item)
    assert found.status == "success"
    assert len(there.server.asked(f"{HOST}2")) == 2
    assert len(there.server.asked(f"{HOST}0")) == 2
    with zipfile.ZipFile(io.BytesIO(store.read(found.location or ""))) as archive:
        assert archive.testzip() is None
    assert not dangling(store)


def test_a_small_member_that_comes_anew_spoils_nothing(there: World, store: Writer) -> None:
    item = item_of(there.server, BODIES)
    mapa = BODIES["mapa.tif"]
    there.server.add(f"{HOST}1", then(served(mapa, wrong=9), served(mapa)))
    assert strategy(store, there).process(item).status == "success"
    assert sorted(a.url[-1] for a in there.server.asked()) == ["0", "1", "1", "2", "3"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("answers", "tries", "told"),
    [([WRONG], 3, "mismatch-md5"), ([WRONG, served(FILM)], 1, "error-platform-download")],
    ids=["wrong each time", "right too late"],
)
def test_a_large_member_that_does_not_come_right_ends_with_its_own_status(
    there: World, store: Writer, answers: list[Answer], tries: int, told: str
) -> None:
    item = item_of(there.server, BODIES)
    there.server.add(f"{HOST}2", then(*answers))
    with pytest.raises(FilesetError, match=f"{told}: film") as caught:
        strategy(store, there, tries=tries, partial=False).process(item)
    assert [f.status for f in caught.value.manifest].count(told) == 1
    assert objects(store) == {}
    assert len(there.server.asked(f"{HOST}2")) <= 3 + tries
    assert not dangling(store)


class Watched(FolderStore):
    """A store that takes bundles of any size in no room, and remembers the first bytes alone."""

    taken = 0

    @contextmanager
    def creating(self, key: str, most: int | None = None) -> Iterator[Sink]:
        yield self

    def write(self, data: bytes) -> int:
        self.taken += len(data)
        return len(data)

    def flush(self) -> None:
        pass


def test_twenty_files_are_bundled_in_little_memory_and_on_no_disk(
    there: World, tmp_path: Path
) -> None:
    item = item_of(
        there.server, {f"{n:02}.bin": Generated(3 * MEGA, n) for n in range(20)}, "sha256"
    )
    store = Watched(tmp_path / "none")
    with (
        at_most(40 * MEGA),
        pytest.raises(FilesetError, match="error-store-verify"),  # it kept nothing
    ):
        strategy(store, there).process(item)
    assert store.taken > 60 * MEGA
    assert not (tmp_path / "none").exists()


SMALL: dict[str, bytes] = {"data/med.csv": b"rok,kg\n" * 200, "mapa.tif": bytes(5000)}


def foreign(
    server: Server, data: Body, bodies: dict[str, bytes] = SMALL, **given: Any
) -> FilesetPlatformItem:
    server.add(ALL, served(data, "application/zip"))
    return item_of(server, dict(bodies), web_bundle_url=ALL, **given)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_platform_s_own_bundle_is_kept_as_it_is(
    there: World, store: Writer, method: int
) -> None:
    data = zipped({**SMALL, "MANIFEST.TXT": b"all"}, method)
    item = foreign(there.server, data)
    asked = strategy(store, there, platform_bundle=True)
    found = asked.process(item)
    assert found.status == "success"
    assert [a.url for a in there.server.asked()] == [ALL]
    assert store.read(found.location or "") == data
    assert found.bundle_terminal.terminal_url == ALL
    assert found.bundle_terminal.terminal_sha1hex == digest("sha1", data)
    assert [(f.path, f.status) for f in found.manifest] == [
        ("data/med.csv", "verified"),
        ("mapa.tif", "verified"),
        ("MANIFEST.TXT", "bundle-extra-member"),
    ]
    for file in found.manifest[:2]:
        assert file.offset is not None
        assert file.sha256 == digest("sha256", SMALL[file.path])
        if method == zipfile.ZIP_STORED:
            assert data[file.offset : file.offset + (file.size or 0)] == SMALL[file.path]
            assert file.compression == "stored"
        else:
            assert file.compression == "deflated"
            assert file.extra["packed_bytes"] < (file.size or 0)
    there.server.forget()
    assert asked.check_existing(item) == replace(found, status="success-existing")
    assert not there.server.asked()


def test_it_is_not_asked_for_unless_the_configuration_says_so(there: World, store: Writer) -> None:
    item = foreign(there.server, zipped(SMALL))
    found = strategy(store, there).process(item)
    assert found.bundle_terminal is None
    assert not there.server.asked(ALL)


def test_a_folder_around_all_members_is_none_of_the_manifest_s(there: World, store: Writer) -> None:
    item = foreign(there.server, zipped({f"med-1.0/{p}": d for p, d in SMALL.items()}))
    found = strategy(store, there, platform_bundle=True).process(item)
    assert [f.path for f in found.manifest] == list(SMALL)
    assert found.manifest[0].extra["member"] == "med-1.0/data/med.csv"


def test_a_bundle_that_a_run_left_is_read_and_taken_if_it_is_the_one(
    there: World, store: Writer
) -> None:
    item = item_of(there.server, dict(SMALL))
    store.create(place(item) + "bundle.zip", zipped(SMALL))
    found = strategy(store, there).process(item)
    assert found.status == "success"
    assert not there.server.asked()
    assert record.read(store, place(item)) is not None
    other = item_of(there.server, {"a": b"first", "b": b"other"})
    store.create(place(other) + "bundle.zip", zipped({"a": b"frist", "b": b"other"}))
    found = strategy(store, there).process(other)
    assert len(there.server.asked()) == 2
    assert [f.offset for f in found.manifest] == [31, 67]


def test_another_run_that_was_first_is_joined(there: World, tmp_path: Path) -> None:
    item = item_of(there.server, BODIES)
    plain = FolderStore(tmp_path / "store")

    class Late(FolderStore):
        done: ClassVar[list[Any]] = []

        @contextmanager
        def creating(self, key: str, most: int | None = None) -> Iterator[Sink]:
            with super().creating(key) as sink:
                yield sink
                if not self.done:
                    self.done.append(strategy(plain, there).process(item))

    mine = Late(tmp_path / "store")
    assert strategy(mine, there).process(item) == mine.done[0]


@pytest.mark.skipif(not OPENICPSR.exists(), reason="the real bundle of openICPSR is not here")
def test_a_real_bundle_of_a_platform(there: World, store: Writer) -> None:
    with zipfile.ZipFile(OPENICPSR) as archive:
        real = {i.filename: archive.read(i) for i in archive.infolist() if not i.is_dir()}
    item = foreign(there.server, OPENICPSR.read_bytes(), real)
    found = strategy(store, there, platform_bundle=True).process(item)
    assert len(found.manifest) == 15
    assert {f.status for f in found.manifest} == {"verified"}
    assert found.bundle_file_meta.size_bytes == 1_326_165
    assert [a.url for a in there.server.asked()] == [ALL]


def test_a_bundle_that_would_be_other_bytes_is_not_written_in_its_place(
    there: World, store: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = item_of(there.server, {"a": random.Random(1).randbytes(999), "b": b"x"})
    asked = strategy(store, there)
    found = asked.process(item)
    store.remove(found.location or "")
    monkeypatch.setattr(zip, "_MODE", 0o100600 << 16)
    with pytest.raises(FilesetError, match=r"mismatch-existing: .* a new bundle would differ"):
        asked.process(item)
    assert found.location not in objects(store)
