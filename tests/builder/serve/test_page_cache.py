"""The folder of kept pages: what was kept comes back whole or not at all, within a bound."""

import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.serve.page_cache import KeptPage, PageCache
from tests.extent import examples

HEADERS, ENTRY = {"ETag": 'W/"1-gzip"'}, {"status": 200}


def body_of(page: KeptPage | None) -> bytes | None:
    body = page.open() if page else None
    return None if body is None else os.pread(body.file.fileno(), body.size, body.offset)


def keep(cache: PageCache, name: str, body: bytes, snapshot: int = 1) -> None:
    cache.store(snapshot, name, HEADERS, ENTRY, body)


def test_another_worker_reads_what_one_kept(tmp_path: Path) -> None:
    one, two = PageCache(tmp_path, 1 << 20, 2), PageCache(tmp_path, 1 << 20, 2)
    keep(one, "a", b"page")
    keep(two, "a", b"page")
    page = two.load(1, "a")
    assert page is not None
    assert (page.headers, page.entry, page.snapshot) == (HEADERS, ENTRY, 1)
    assert body_of(page) == b"page"
    assert one.load(2, "a") is one.load(1, "b") is None
    assert len(list(tmp_path.iterdir())) == 1


def test_workers_that_render_the_same_page_give_it_whole(tmp_path: Path) -> None:
    """Each answer is of one worker, whoever stores the page meanwhile, or there is none yet."""
    caches = [PageCache(tmp_path, 1 << 24, 2, number) for number in range(2)]
    bodies = {b"1" * 70_000, b"2" * 50_000}  # as of different seconds

    def render(cache: PageCache, body: bytes) -> None:
        for _ in range(60):
            keep(cache, "a", body)

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(render, *both) for both in zip(caches, bodies, strict=True)]
        found = set()
        while not all(one.done() for one in running):
            found |= {body_of(cache.load(1, "a")) for cache in caches}
    assert found - {None} <= bodies
    assert body_of(caches[0].load(1, "a")) in bodies
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_with_any_bit_flipped_is_not_a_page(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = PageCache(tmp_path, 1 << 20)
    keep(cache, "a", b"page")
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        assert cache.load(1, "a") is None
        assert not path.exists()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert cache.load(1, "a") is None
    assert "is damaged: the page is rendered again" in caplog.text
    path.write_bytes(whole)
    assert body_of(cache.load(1, "a")) == b"page"


def test_a_page_that_changes_after_it_was_verified_is_not_sent(tmp_path: Path) -> None:
    cache = PageCache(tmp_path, 1 << 20)
    keep(cache, "a", b"page")
    page = cache.load(1, "a")
    (path,) = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert body_of(page) is None
    assert cache.load(1, "a") is None


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(1, 9000)), max_size=80))
def test_the_folder_stays_within_its_bound(
    tmp_path_factory: pytest.TempPathFactory, stored: list[tuple[bool, int, int]]
) -> None:
    folder, most = tmp_path_factory.mktemp("pages"), 20_000
    caches = [PageCache(folder, most, 2) for _ in range(2)]
    for which, number, size in stored:
        body = number.to_bytes() * size
        keep(caches[which], str(number), body)
        found = body_of(caches[not which].load(1, str(number)))
        assert found is None or set(found) == {number}
        assert sum(path.stat().st_size for path in folder.iterdir()) <= most


def test_the_pages_that_were_not_used_go_first(tmp_path: Path) -> None:
    cache = PageCache(tmp_path, 10_000)
    for number in range(8):
        keep(cache, str(number), b"x" * 1000)
        os.utime(tmp_path / f"1-{number}", ns=(number, number))
    used = cache.load(1, "0")
    assert used is not None
    for number in range(8, 12):
        keep(cache, str(number), b"x" * 1000)
    assert (tmp_path / "1-0").exists()
    assert not (tmp_path / "1-1").exists()


def test_pages_of_gone_snapshots_are_removed(tmp_path: Path) -> None:
    cache = PageCache(tmp_path, 1 << 20)
    for snapshot in (1, 2, 3):
        keep(cache, "a", b"page", snapshot)
    (tmp_path / ".writing").touch()
    cache.forget(lambda snapshot: snapshot < 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".writing", "3-a"]


def test_a_worker_removes_what_the_one_before_it_did_not_finish(tmp_path: Path) -> None:
    for name in (".0-7", ".1-3", "1-a"):
        (tmp_path / name).touch()
    PageCache(tmp_path, 1 << 20, 2, number=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".0-7", "1-a"]


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="this system limits no files")
def test_on_a_full_disk_nothing_is_kept_and_that_is_told_once(tmp_path: Path) -> None:
    program = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from builder.serve.page_cache import PageCache\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "cache = PageCache(Path(sys.argv[1]), 1 << 20)\n"
        "for name in 'abc': cache.store(1, name, {}, {}, bytes(5000))\n"
        "assert cache.load(1, 'a') is None\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("pages cannot be kept") == 1
    assert list(tmp_path.iterdir()) == []
