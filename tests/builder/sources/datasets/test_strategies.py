"""What holds of every strategy: files archived once, present again, missing, altered, faulty."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from builder.sources.datasets.item import FilesetManifestFile, FilesetPlatformItem
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies.strategy import ArchivingStrategy
from builder.store.folder import FolderStore
from functions.snapshot.store import Writer
from tests.builder.sources.datasets.body import digest, whole, zipped
from tests.builder.sources.datasets.ias3 import KEYS, Internet, internet
from tests.builder.sources.datasets.server import Server, endless, html, served, status
from tests.builder.sources.datasets.test_bundled import ALL, SMALL, foreign
from tests.builder.sources.datasets.test_s3 import BODIES, HOST, item_of
from tests.builder.sources.datasets.world import open_store, world
from tests.builder.store.test_creating import dangling

pytestmark = pytest.mark.shared(3)

START = 1_800_000_000.0
APART = ("s3-fileset", "archiveorg-fileset")
"""Strategies that keep each file for itself; the others keep all of them together or none."""
PLACES = [
    *(("s3-fileset", store) for store in ("folder", "moto", "weed")),
    *(
        (f"{name}", store)
        for name in ("s3-fileset-bundled", "web-fileset")
        for store in ("folder", "moto")
    ),
    ("archiveorg-fileset", "folder"),
    ("archiveorg-fileset-bundled", "folder"),
]


@dataclass
class Bench:
    """A strategy, the platform, and all places where it keeps files."""

    server: Server
    store: Writer
    site: Internet
    folder: Path
    name: str

    def strategy(
        self, name: str = "", go_on: Callable[[], None] = lambda: None, **settings: Any
    ) -> ArchivingStrategy:
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        there = world(
            self.server, scratch, wall=lambda: START, http__tries=settings.pop("tries", 3)
        )
        return there.strategy(name or self.name, self.store, go_on, KEYS, **settings)

    def kept(self) -> dict[str, bytes]:
        """Return all that is kept, by its place."""
        items = self.site.items
        uploads = {f"{item}/{path}": data for item in items for path, data in items[item].items()}
        return {key: self.store.read(key) for key in self.store.keys("")} | uploads

    def place(self, file: FilesetManifestFile) -> str:
        """Return the place of a file's bytes."""
        path = file.path if file.offset is None else "bundle.zip"
        return file.key or f"{next(iter(self.site.items))}/{path}"

    def put(self, place: str, data: bytes | None) -> None:
        """Have other bytes at a place, or none."""
        item, _, path = place.partition("/")
        if item in self.site.items:
            del self.site.items[item][path]
            self.site.items[item] |= {path: data} if data is not None else {}
            return
        self.store.remove(place)
        if data is not None:
            self.store.create(place, data)

    def refuse(self, strategy: ArchivingStrategy, item: FilesetPlatformItem) -> FilesetError:
        with pytest.raises(FilesetError) as caught:
            strategy.process(item)
        return caught.value


def bench_of(server: Server, folder: Path, name: str, store: Writer | None = None) -> Bench:
    store = store or FolderStore(folder / "store")
    return Bench(server, store, internet(server), folder, name)


@pytest.fixture(params=PLACES, ids="-".join)
def bench(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Iterator[Bench]:
    name, place = request.param
    with open_store(request, tmp_path, place) as store:
        yield bench_of(server, tmp_path, name, store)


@pytest.mark.sampled(5)
def test_the_same_request_again_fetches_nothing(bench: Bench) -> None:
    item = item_of(bench.server, BODIES)
    strategy = bench.strategy()
    assert strategy.check_existing(item) is None
    result = strategy.process(item)
    assert (result.ingest_strategy, result.status) == (bench.name, "success")
    assert [(file.path, file.status) for file in result.manifest] == [
        (path, "verified") for path in BODIES
    ]
    before = bench.kept()
    for file, body in zip(result.manifest, BODIES.values(), strict=True):
        assert (file.size, file.terminal_url) == (len(body), file.platform_url)
        assert (file.sha256, file.crc32) == (digest("sha256", body), digest("crc32", body))
        data = before[bench.place(file)][file.offset or 0 :]
        # Others read what is in a WARC (test_web).
        assert file.compression == "warc" or data[: file.size] == whole(body)
        assert file.offset is not None or len(data) == file.size
    assert sum(place.endswith("/fileset.json") for place in before) == 1
    bench.server.forget()
    bench.site.log.clear()
    for check in ("digest", "size"):
        again = bench.strategy(check=check).check_existing(item)
        assert again == replace(result, status="success-existing")
    assert strategy.process(item).manifest == result.manifest
    assert bench.strategy("s3-fileset").check_existing(item) is not None or "archive" in bench.name
    assert (bench.server.asked(HOST), bench.site.puts(), bench.kept()) == ([], [], before)
    assert not dangling(bench.store)
    assert not list((bench.folder / "scratch").iterdir())


@pytest.mark.sampled(5)
def test_what_is_missing_is_fetched_again_and_it_alone(bench: Bench) -> None:
    """Scenario 3."""
    item = item_of(bench.server, BODIES)
    strategy = bench.strategy()
    result = strategy.process(item)
    before = bench.kept()
    bench.put(bench.place(result.manifest[2]), None)
    bench.server.forget()
    assert strategy.check_existing(item) is None
    again = strategy.process(item)
    assert (again.status, again.manifest) == ("success", result.manifest)
    numbers = [2] if bench.name in APART else range(len(BODIES))
    assert sorted(asked.url for asked in bench.server.asked(HOST)) == [
        f"{HOST}{n}" for n in numbers
    ]
    assert bench.kept().keys() == before.keys()
    assert strategy.check_existing(item) == replace(result, status="success-existing")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("change", ["other bytes", "longer"])
def test_what_was_altered_is_told_and_not_written_over(bench: Bench, change: str) -> None:
    """Scenario 3: what is altered is never written over."""
    item = item_of(bench.server, BODIES)
    strategy = bench.strategy()
    result = strategy.process(item)
    place = bench.place(result.manifest[0])
    data = bench.kept()[place]
    bench.put(place, data[:-1] + b"?" if change == "other bytes" else data + b"?")
    before = bench.kept()
    bench.server.forget()
    altered = strategy.check_existing(item)
    assert altered.status == "mismatch-existing"
    assert [file.status for file in altered.manifest] == [
        "mismatch-existing" if bench.place(file) == place else "exists" for file in result.manifest
    ]
    assert place.rpartition("/")[2] in altered.detail
    if "archiveorg" not in bench.name:
        assert altered.detail.startswith(
            "altered since it was archived, not overwritten; remove it to fetch it again: "
        )
    if change == "longer" and bench.name in APART:
        assert bench.refuse(strategy, item).status == "mismatch-existing"
    with suppress(FilesetError):
        strategy.process(item)
    assert (bench.kept(), bench.server.asked(HOST)) == (before, [])


@pytest.mark.sampled(5)
def test_a_file_that_fails_ends_it_and_the_next_run_goes_on(bench: Bench) -> None:
    """Scenario 17: one wrong byte spoils the dataset, and nothing of a bundle is to be seen."""
    item = item_of(bench.server, BODIES)
    bench.server.add(f"{HOST}2", served(BODIES["mapa.tif"], wrong=2_000_000))
    strategy = bench.strategy(partial=False)
    error = bench.refuse(strategy, item)
    apart = bench.name in APART
    first = "verified" if apart else "skipped"
    assert (error.status, error.detail.partition(":")[0]) == ("mismatch-md5", "mapa.tif")
    assert [file.status for file in error.manifest] == [first, first, "mismatch-md5", "skipped"]
    if not apart:
        assert {(f.key, f.offset, f.compression, *f.extra) for f in error.manifest} == {(None,) * 3}
    assert len(bench.kept()) == (2 if apart else 0)
    assert strategy.check_existing(item) is None
    assert not dangling(bench.store)
    assert not list((bench.folder / "scratch").iterdir())
    assert len(bench.server.asked(f"{HOST}2")) == 2
    bench.server.add(f"{HOST}2", served(BODIES["mapa.tif"]))
    bench.server.forget()
    result = strategy.process(item)
    assert result.status == "success"
    assert len(bench.server.asked(HOST)) == (2 if apart else 4)
    assert result.manifest[0].md5 == digest("md5", BODIES["data/med.csv"])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["s3-file", "web-file", "archiveorg-file"])
def test_one_file_alone(server: Server, tmp_path: Path, name: str) -> None:
    bench = bench_of(server, tmp_path, name)
    item = item_of(server, {"a.csv": b"1,2\n"})
    result = bench.strategy().process(item)
    assert result.status == "success-file"
    assert result.location == result.manifest[0].key
    assert result.file_file_meta.sha256hex == digest("sha256", b"1,2\n")
    assert result.file_terminal.terminal_url == f"{HOST}0"
    assert result.file_terminal.terminal_status_code == 200
    assert bench.strategy().check_existing(item) == replace(result, status="success-existing")


@pytest.mark.sampled(4)
def test_withheld_files_make_it_partial_and_are_told(bench: Bench) -> None:
    item = item_of(bench.server, {"a": b"first", "b": b"other"})
    secret = FilesetManifestFile(path="c", size=9, status="withheld")
    item = replace(item, manifest=(item.files[0], secret, item.files[1]))
    result = bench.strategy().process(item)
    assert result.status == "success-partial"
    assert [file.status for file in result.manifest] == ["verified", "withheld", "verified"]
    assert bench.strategy().check_existing(item) == result


@pytest.mark.sampled(4)
def test_what_is_fetched_again_is_what_it_was_though_the_platform_tells_no_digest(
    bench: Bench,
) -> None:
    if bench.name == "web-fileset":
        pytest.skip("a WARC is of one request, and another one makes a new WARC")
    item = item_of(bench.server, {"a": b"first", "b": b"other"}, digests="")
    strategy = bench.strategy(partial=False)
    result = strategy.process(item)
    assert {file.status for file in result.manifest} == {"unverified"}
    place = bench.place(result.manifest[0])
    bench.put(place, None)
    bench.server.add(f"{HOST}0", served(b"frist"))
    wrong = bench.refuse(strategy, item).status
    assert wrong.startswith("mismatch-sha")
    assert place not in bench.kept()
    if bench.name in APART:
        gone = bench.strategy().process(item)
        assert (gone.status, gone.manifest[0].status) == ("success-partial", wrong)
        assert strategy.check_existing(item) is None
    bench.server.add(f"{HOST}0", served(b"first"))
    assert strategy.process(item).manifest == result.manifest


@pytest.mark.sampled(4)
def test_a_file_of_no_size_and_no_digest_may_not_be_endless(bench: Bench) -> None:
    """Scenario 15: the upload is abandoned, and no parts of it stay."""
    item = item_of(bench.server, {"a": b"first"}, digests="")
    bench.server.add(f"{HOST}1", endless(pause=0))
    more = FilesetManifestFile(path="b", platform_url=f"{HOST}1")
    item = replace(item, manifest=(*item.files, more))
    for limits in ({"max_file_bytes": 500_000}, {"max_bytes": 500_000}):
        error = bench.refuse(bench.strategy(partial=False, **limits), item)
        assert error.status == "over-limit-stream"
        assert [place[-1] for place in bench.kept()] == (["a"] if bench.name in APART else [])
        assert not dangling(bench.store)
    large = item_of(bench.server, BODIES, version="2")
    error = bench.refuse(bench.strategy(partial=False, max_bytes=2_000_000), large)
    assert error.status == "over-limit-stream"


@pytest.mark.sampled(4)
def test_it_stops_when_it_is_told_to(bench: Bench) -> None:
    item = item_of(bench.server, BODIES)
    bench.strategy().process(item)
    before = bench.kept()

    def stop() -> None:
        raise FilesetError("cancelled")

    strategy = bench.strategy(go_on=stop)
    # Items of archive.org are compared without a look at their bytes.
    step = strategy.process if "archiveorg" in bench.name else strategy.check_existing
    with pytest.raises(FilesetError, match="cancelled"):
        step(item if "archiveorg" not in bench.name else replace(item, version="2"))
    assert bench.kept() == before


FAILURES = {"file-404": status(404), "file-forbidden": status(403), "over-limit-stream": endless()}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("state", FAILURES)
@pytest.mark.parametrize("name", dict.fromkeys(name for name, _ in PLACES))
def test_a_file_that_cannot_be_had_fails_alone(
    server: Server, tmp_path: Path, name: str, state: str
) -> None:
    bench = bench_of(server, tmp_path, name)
    item = item_of(server, {"a": b"first", "b": b"", "c": b"other"})
    server.add(f"{HOST}1", FAILURES[state])
    unknown = FilesetManifestFile(path="b", platform_url=f"{HOST}1")
    item = replace(item, manifest=(item.files[0], unknown, item.files[2]))
    strategy = bench.strategy(max_file_bytes=500_000)
    result = strategy.process(item)
    assert result.status == "success-partial"
    assert [file.status for file in result.manifest] == ["verified", state, "verified"]
    assert [file.sha256 is None for file in result.manifest] == [False, True, False]
    assert result.manifest[1].key is None
    assert strategy.check_existing(item) is None  # what failed is asked for again
    bench.put(bench.place(result.manifest[0]), None)
    again = strategy.process(item)  # and stays left out when another file is restored
    assert [file.status for file in again.manifest] == ["verified", state, "verified"]
    nothing = replace(item, version="2", manifest=(unknown,))
    assert bench.refuse(strategy, nothing).status == state  # nothing would be kept


PLATFORM_BUNDLES: dict[str, tuple[str, Any]] = {
    "lacks-a-large-file": ("bundle-missing-member", zipped({"mapa.tif": SMALL["mapa.tif"]})),
    "has-a-table-in-another-form": ("mismatch-size", zipped({**SMALL, "mapa.tif": b"tab"})),
    "has-other-bytes": ("mismatch-md5", zipped({**SMALL, "mapa.tif": b"x" + bytes(4999)})),
    "is-cut": ("bundle-unreadable", zipped(SMALL)[:-40]),
    "is-a-page": ("html-decoy", html("<title>Log in</title>")),
    "is-not-there": ("file-404", status(404)),
}
bundlers = pytest.mark.parametrize("name", ["s3-fileset-bundled", "web-fileset-bundled"])


@pytest.mark.sampled(5)
@bundlers
@pytest.mark.parametrize("defect", PLATFORM_BUNDLES)
def test_a_bundle_of_the_platform_that_is_not_as_listed_is_not_kept(
    server: Server, tmp_path: Path, name: str, defect: str
) -> None:
    expected, answer = PLATFORM_BUNDLES[defect]
    bench = bench_of(server, tmp_path, name)
    item = foreign(server, answer if isinstance(answer, bytes) else b"")
    if not isinstance(answer, bytes):
        server.add(ALL, answer)
    strategy = bench.strategy(platform_bundle=True, max_bytes=2_000_000, partial=False)
    error = bench.refuse(strategy, item)
    assert (error.status, bench.kept()) == (expected, {})
    assert not dangling(bench.store)


@bundlers
def test_which_files_a_bundle_of_the_platform_lacks_is_told(
    server: Server, tmp_path: Path, name: str
) -> None:
    bench = bench_of(server, tmp_path, name)
    item = foreign(server, zipped({"mapa.tif": SMALL["mapa.tif"]}))
    error = bench.refuse(bench.strategy(platform_bundle=True, partial=False), item)
    assert error.detail.endswith(
        "1 of 2 files are missing from the bundle or differ listed: data/med.csv"
    )
    assert [file.status for file in error.manifest] == ["bundle-missing-member", "skipped"]
    assert {file.key for file in error.manifest} == {None}
    result = bench.strategy(platform_bundle=True).process(item)
    assert result.status == "success-partial"
    assert [file.status for file in result.manifest] == ["bundle-missing-member", "verified"]


@bundlers
def test_a_bundle_of_the_platform_may_lack_a_file_that_is_withheld(
    server: Server, tmp_path: Path, name: str
) -> None:
    bench = bench_of(server, tmp_path, name)
    item = foreign(server, zipped(SMALL))
    secret = FilesetManifestFile(path="a-secret", status="withheld")
    item = replace(item, manifest=(secret, *item.files))
    result = bench.strategy(platform_bundle=True).process(item)
    assert result.status == "success-partial"
    assert [file.status for file in result.manifest] == ["withheld", "verified", "verified"]
