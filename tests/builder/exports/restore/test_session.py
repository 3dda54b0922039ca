"""Sessions: what is planned is on the disk in the end, whole and once, and the rest is told."""

import hashlib
import io
import os
import re
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from builder import progress
from builder.exports.restore import captures
from builder.exports.restore.captures import CaptureFilter, MissingError
from builder.exports.restore.folder import RestoreFolder
from builder.exports.restore.manifest import ManifestEntries, RestoreReport
from builder.exports.restore.plan import Plan
from builder.exports.restore.session import RestoreJob, RestoreSession
from builder.progress import PartsProgress
from functions.snapshot.errors import SheafError, StoreUnavailable
from tests.builder.exports.restore.holding import Breaking, Holding, held
from tests.builder.exports.restore.shelf import lines, tree

ALL = CaptureFilter(None, (), captures.LAST_SECOND)


def restore(
    source: Holding, target: Path, order: RestoreJob | None = None, **told: Any
) -> RestoreReport:
    """Restore all that a source has."""
    order = order or RestoreJob(jobs=2)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory()))
        plan = stack.enter_context(
            closing(Plan(scratch, captures.accept_statuses(captures.USUAL_STATUSES)))
        )
        plan.add(source.captures(told.pop("choice", ALL)))
        plan.settle(extended=order.converted)
        folder = stack.enter_context(closing(RestoreFolder(target)))
        entries = stack.enter_context(closing(ManifestEntries(scratch)))
        return RestoreSession(source, plan, folder, entries, order, **told).restore()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "site"


@pytest.fixture
def source() -> Holding:
    found = Holding()
    found.add(held("http://a.cz/"), b"<a href=/x>")
    found.add(held("http://a.cz/x"), b"x", last_modified="Thu, 01 Nov 2007 10:00:00 GMT")
    found.add(held("http://a.cz/x/y", media_type="image/gif"), b"GIF")
    found.add(held("http://a.cz/r", status=302, redirect="/x/y"))
    return found


def test_each_url_has_its_file_and_its_line(source: Holding, target: Path) -> None:
    account = restore(source, target)
    assert tree(target) == {
        "a.cz/index.html": b"<a href=/x>",
        "a.cz/x/index.html": b"x",
        "a.cz/x/y": b"GIF",
    }
    assert (account.restored, account.redirects, account.bytes) == (3, 1, 15)
    assert account.renamed == {"folder": 1}
    first, second, third, fourth = lines(target)
    assert first == {
        "url": "http://a.cz/",
        "identifier": "oai:b.cz:20071105120000:http://a.cz/",
        "timestamp": "20071105120000",
        "path": "a.cz/index.html",
        "status": 200,
        "media_type": "text/html",
        "size": 11,
        "mtime": 1194264000,
        "sha256": hashlib.sha256(b"<a href=/x>").hexdigest(),
    }
    assert (second["renamed"], second["mtime"]) == ("folder", 1193911200)
    assert (target / "a.cz/x/index.html").stat().st_mtime == 1193911200
    assert third["path"] == "a.cz/x/y"
    assert fourth["redirect"] == "http://a.cz/x/y"
    assert fourth["path"] == "a.cz/x/y"


def test_again_only_what_was_changed_or_lost_on_the_disk_is_fetched(
    source: Holding, target: Path
) -> None:
    restore(source, target)
    whole, before = tree(target), (target / "manifest.jsonl").read_bytes()
    source.asked.clear()
    account = restore(source, target)
    assert (account.restored, account.kept) == (0, 3)
    assert not source.asked
    assert (target / "manifest.jsonl").read_bytes() == before
    (target / "a.cz/index.html").write_text("changed")
    (target / "a.cz/x/y").unlink()
    os.utime(target / "a.cz/x/index.html", (1, 1))
    assert restore(source, target).restored == 3
    assert tree(target) == whole
    source.add(held("http://z.cz/"), StoreUnavailable("nobody answers"))
    with pytest.raises(SheafError, match="nobody answers"):
        restore(source, target)
    source.found.pop()
    assert restore(source, target).kept == 3


def test_a_later_capture_takes_the_place_of_the_earlier(source: Holding, target: Path) -> None:
    restore(source, target)
    source.add(held("https://a.cz/x/y", "2010", media_type="image/gif"), b"newer")
    account = restore(source, target)
    assert (account.restored, account.kept, account.removed) == (1, 2, 0)
    assert tree(target)["a.cz/x/y"] == b"newer"
    early = replace(ALL, until="2008")
    assert restore(source, target, choice=early).restored == 1
    assert tree(target)["a.cz/x/y"] == b"GIF"


def test_what_is_there_no_more_is_removed_unless_somebody_changed_it(
    source: Holding, target: Path
) -> None:
    """What becomes a folder makes place for it, and is a file again afterwards."""
    source.add(held("http://b.cz/gone"), b"gone")
    source.add(held("http://b.cz/changed"), b"gone")
    blog = source.add(held("http://c.cz/blog"), b"blog")
    restore(source, target)
    assert tree(target)["c.cz/blog"] == b"blog"
    source.add(held("http://c.cz/blog/1"), b"1")
    restore(source, target)
    assert {name: data for name, data in tree(target).items() if name.startswith("c.")} == {
        "c.cz/blog/1": b"1",
        "c.cz/blog/index.html": b"blog",
    }
    (target / "b.cz/changed").write_text("mine")
    source.found = [*source.found[:4], blog]
    assert restore(source, target).removed >= 1
    left = tree(target)
    assert left["c.cz/blog"] == b"blog"
    assert not {"b.cz/gone", "c.cz/blog/1"} & left.keys()
    assert left["b.cz/changed"] == b"mine"
    assert "//b.cz" not in (target / "manifest.jsonl").read_text()


def test_a_strangers_file_stays_and_is_told_of_each_time(source: Holding, target: Path) -> None:
    """So does a link, which leads nowhere."""
    (target / "a.cz").mkdir(parents=True)
    (target / "a.cz/index.html").write_text("theirs")
    outside = target.parent / "outside"
    outside.mkdir()
    (target / "b.cz").symlink_to(outside)
    source.add(held("http://b.cz/"), b"b")
    for _ in range(2):
        account = restore(source, target)
        assert account.missing == {"in-the-way": 2}
        assert tree(target)["a.cz/index.html"] == b"theirs"
        assert lines(target)[0]["missing"] == "in-the-way"
        assert list(outside.iterdir()) == []
    (target / "a.cz/index.html").unlink()
    (target / "b.cz").unlink()
    assert not restore(source, target).missing
    assert tree(target)["a.cz/index.html"] == b"<a href=/x>"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (MissingError("damaged", "other bytes"), "damaged"),
        (MissingError("not-at-hand", "no such file"), "not-at-hand"),
        (lambda: Breaking(b"half of it"), "damaged"),
    ],
)
def test_what_cannot_be_had_is_told_and_leaves_nothing(
    source: Holding, target: Path, body: object, code: str
) -> None:
    whole = held("http://a.cz/bad")
    source.add(whole, body)
    account = restore(source, target)
    assert (account.restored, account.missing) == (3, {code: 1})
    assert not (target / "a.cz/bad").exists()
    (line,) = [one for one in lines(target) if one["url"] == "http://a.cz/bad"]
    assert line["missing"] == code
    assert "size" not in line
    source.bodies[whole.identifier] = b"mended"
    (target / "a.cz/bad").write_bytes(b"put there by a person")
    assert restore(source, target).missing == {"in-the-way": 1}
    assert (target / "a.cz/bad").read_bytes() == b"put there by a person"
    (target / "a.cz/bad").unlink()
    assert restore(source, target).restored == 1
    assert (target / "a.cz/bad").read_bytes() == b"mended"


def test_what_was_had_before_makes_place_after_a_failure(source: Holding, target: Path) -> None:
    restore(source, target)
    later = held("https://a.cz/x/y", "2010", media_type="image/gif")
    source.add(later, MissingError("not-at-hand", "no such file"))
    for _ in range(2):
        assert restore(source, target).missing == {"not-at-hand": 1}
        assert tree(target)["a.cz/x/y"] == b"GIF"
    source.bodies[later.identifier] = b"newer"
    assert restore(source, target).restored == 1
    assert tree(target)["a.cz/x/y"] == b"newer"


class Endless(io.RawIOBase):
    """Bytes without end, of which it counts how many were taken."""

    taken = 0

    def read(self, size: int = -1, /) -> bytes:
        Endless.taken += size
        return b"x" * size


def test_ten_gigabytes_are_neither_believed_nor_written(source: Holding, target: Path) -> None:
    declared = source.add(held("http://a.cz/declared", length=10 << 30), b"few")
    source.sizes[declared.identifier] = 10 << 30
    source.add(held("http://a.cz/endless"), Endless)
    Endless.taken = 0
    lying = source.add(held("http://a.cz/lying", length=10 << 30), b"few")
    source.sizes[lying.identifier] = 3
    account = restore(source, target, RestoreJob(jobs=1, largest=1 << 20))
    assert account.missing == {"too-large": 2}
    assert Endless.taken <= 2 << 20
    assert tree(target)["a.cz/lying"] == b"few"


def test_files_with_the_same_bytes_are_one_where_that_is_wanted(
    source: Holding, target: Path
) -> None:
    source.add(held("http://b.cz/logo"), b"GIF")
    account = restore(source, target, RestoreJob(jobs=1, linked=True))
    assert account.linked == 1
    assert (target / "a.cz/x/y").samefile(target / "b.cz/logo")
    assert restore(source, target, RestoreJob(jobs=1, linked=True)).kept == 4


def test_links_are_rewritten_where_that_is_wanted(source: Holding, target: Path) -> None:
    account = restore(source, target, RestoreJob(converted=True))
    assert tree(target)["a.cz/index.html"] == b'<a href="x.html">'
    assert account.converted == 2
    assert restore(source, target, RestoreJob(converted=True)).kept == 3
    source.add(held("http://a.cz/more"), b"more")
    again = restore(source, target, RestoreJob(converted=True))
    assert (again.restored, again.kept) == (3, 1)  # of another plan links may lead elsewhere
    assert restore(source, target).restored == 4 - 1
    assert tree(target)["a.cz/index.html"] == b"<a href=/x>"


class Ended(Exception):
    """The process is ended."""


def ending(at: int) -> Callable[[int], None]:
    left = iter(range(at))

    def advance(many: int) -> None:
        if next(left, None) is None:
            raise Ended

    return advance


@pytest.mark.parametrize("at", range(4))
def test_what_was_ended_goes_on(source: Holding, target: Path, at: int) -> None:
    for number in range(4):
        source.add(held(f"http://b.cz/{number}"), str(number).encode())
    undisturbed = target.parent / "undisturbed"
    restore(source, undisturbed)
    with pytest.raises(Ended):
        restore(source, target, RestoreJob(jobs=1), advance=ending(at))
    source.asked.clear()
    account = restore(source, target)
    assert account.kept >= at
    assert account.restored == 7 - account.kept == source.asked.total()
    assert tree(target) == tree(undisturbed)
    assert (target / "manifest.jsonl").read_bytes() == (undisturbed / "manifest.jsonl").read_bytes()


def test_a_journal_may_end_in_the_midst_of_a_line(source: Holding, target: Path) -> None:
    restore(source, target)
    whole = (target / "manifest.jsonl").read_bytes()
    for cut in (1, len(whole) // 2, len(whole) - 1):
        (target / "manifest.jsonl").write_bytes(whole[:cut])
        stale = restore(source, target)
        lost = stale.missing["in-the-way"]
        assert stale.kept + lost == 3
        for path in [line["path"] for line in lines(target) if line.get("missing")]:
            (target / path).unlink()
        restore(source, target)
        assert (target / "manifest.jsonl").read_bytes() == whole


@pytest.mark.parametrize(
    "line",
    [
        b"no JSON",
        b"[]",
        b'{"url": 1}',
        b'{"url": "x", "identifier": "x", "timestamp": "x", "path": "../../outside", "mtime": 1}',
        b'{"url": "x", "identifier": "x", "timestamp": "x", "path": "/etc/passwd", "size": "1"}',
        b'{"url": "x", "identifier": "x", "timestamp": "x", "path": "a\\u0000b", "mtime": 1}',
        b'{"url": "x", "identifier": "x", "timestamp": "x", "path": "\\ud800", "mtime": 1}',
        b'{"url": "x", "identifier": "x", "timestamp": "x", "path": "%s", "mtime": 1}'
        % (b"x" * 300),
        b'{"url": "x", "identifier": "x", "timestamp": "x", "path": "a", "sha256": ["x"]}',
        b'{"url": "x", "identifier": "x", "timestamp": "x", "path": "a", "mtime": 1%s}'
        % (b"0" * 30),
        b"[" * 200_000,
    ],
)
def test_a_manifest_may_be_a_strangers(source: Holding, target: Path, line: bytes) -> None:
    target.mkdir()
    (target.parent / "outside").write_text("x")
    os.utime(target.parent / "outside", (1, 1))
    (target / "manifest.jsonl").write_bytes(line + b"\n")
    assert restore(source, target).restored == 3
    assert (target.parent / "outside").exists()
    assert len(lines(target)) == 4


def test_a_large_file_is_told_by_its_bytes(
    source: Holding, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its declared length may be wrong, and what is there already is nothing to wait for."""
    monkeypatch.setattr(progress, "EVERY", 1.0)
    restore(source, target)
    source.add(held("http://a.cz/large", length=1_000_000), b"x" * 2_000_000)
    out, ticks = io.StringIO(), iter(range(1_000_000))
    with PartsProgress("files", 4, 1_000_012, out, lambda: next(ticks)) as bar:
        restore(source, target, RestoreJob(jobs=1), advance=bar.end_part, part=bar.part)
        shown = out.getvalue().splitlines()
        assert len(shown) == 8  # of 256 KB each
        assert all(re.match(r"[0-3] of 4 files, [012] of [12] MB", line) for line in shown)
        bar.expect(0)
        bar(0)
    assert out.getvalue().splitlines()[-1].startswith("4 of 4 files, 2 of 2 MB")
