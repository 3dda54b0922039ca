"""Exports in the players of the field: every capture loads, with the bytes that were archived.

`make clients` installs the players (tests/builder/exports/wacz/replay/install.sh).
"""

import gzip
import hashlib
import json
import random
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from builder.zip import PART
from tests.builder.exports.wacz.test_command import (
    EARLY,
    REVISIT,
    ROOT,
    digest,
    exported,
    published,
)
from tests.builder.sources.webarchives.containers import arc, filedesc, http, members, warc
from tests.e2e.conftest import ARCHIVES, make_home

REPLAY = Path(__file__).parent / "replay"
SECONDS = 120
WABAC, PYWB = ROOT / ".npm-wabac", ROOT / ".venv-pywb" / "bin" / "python"

Asked = Sequence[tuple[str, str]]
"""Date in 14 digits and URL of each capture."""


def replayed(command: Sequence[object], path: Path, asked: Asked) -> list[dict[str, Any]]:
    """Return what a player answers for each capture of a WACZ file."""
    done = subprocess.run(
        [*map(str, command), str(path)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def by_wabac(path: Path, asked: Asked) -> list[dict[str, Any]]:
    node = shutil.which("node")
    if node is None or not (WABAC / "node_modules").is_dir():
        pytest.skip("wabac.js is not installed: `make clients` installs it where node is")
    return replayed([node, REPLAY / "with_wabac.mjs", WABAC], path, asked)


def by_pywb(path: Path, asked: Asked) -> list[dict[str, Any]]:
    if not PYWB.exists():
        pytest.skip("pywb is not installed: `make clients` installs it")
    return replayed([PYWB, REPLAY / "with_pywb.py"], path, asked)


Player = Callable[[Path, Asked], list[dict[str, Any]]]
PLAYERS = pytest.mark.parametrize("player", [by_wabac, by_pywb])

HOME, CSS = b"<title>Home</title>", b"p {}" * 99
CODED = gzip.compress(CSS, mtime=0)
CHUNKED = b"5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n"
SCRIPT = (b"Content-Type: text/javascript",)
PAGES: dict[str, tuple[bytes, int, bytes]] = {
    # URL: the archived response, its status, its body
    "http://www.a.cz/": (http(HOME), 200, HOME),
    "http://www.a.cz/style.css": (
        http(CODED, b"Content-Type: text/css", b"Content-Encoding: gzip"),
        200,
        CSS,
    ),
    "http://www.a.cz/a.js": (
        http(CHUNKED, *SCRIPT, b"Transfer-Encoding: chunked"),
        200,
        b"firstsecond",
    ),
    "http://www.a.cz/no?x=1": (http(b"gone", status=b"HTTP/1.1 404 No"), 404, b"gone"),
}


@pytest.fixture(scope="module", params=["small", "large"])
def archive(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[tuple[str, str], tuple[int, bytes]]]:
    """A WACZ file, and the status and body of each capture. A large one has a streamed member."""
    pages = dict(PAGES)
    if request.param == "large":
        data = random.Random(1).randbytes(PART + 1)
        pages["http://www.a.cz/data"] = (http(data, b"Content-Type: video/mp4"), 200, data)
    date = "20080430204826"
    wanted = {(date, url): (status, body) for url, (_, status, body) in pages.items()}
    records = [warc(block, url=url.encode(), date=EARLY) for url, (block, *_) in pages.items()]
    files = {
        "one.warc.gz": members(records),
        "two.warc": REVISIT,
        "three.arc": filedesc() + arc(http(b"<title>ARC</title>"), url=b"http://b.org/x"),
    }
    assert digest(HOME) in REVISIT
    wanted["20090101000000", "http://www.a.cz/"] = (200, HOME)
    wanted["20080430204826", "http://b.org/x"] = (200, b"<title>ARC</title>")
    home = published(make_home(tmp_path_factory.mktemp("home")), files)
    path = home.folder / "export.wacz"
    assert exported(home, "wacz", path)["captures"] == len(wanted)
    return path, wanted


@pytest.mark.sampled(3)
@PLAYERS
def test_every_capture_replays(
    archive: tuple[Path, dict[tuple[str, str], tuple[int, bytes]]], player: Player
) -> None:
    path, wanted = archive
    answers = player(path, [*wanted])
    expected = [
        {"status": status, "sha1": hashlib.sha1(body).hexdigest()}
        for status, body in wanted.values()
    ]
    assert answers == expected


def payloads(path: Path) -> dict[tuple[str, str], set[str]]:
    """Return SHA-1s of the bodies in a WACZ file, by warcio, which does not undo brotli.

    Left out are heads without fields: wabac.js takes what follows for the head.
    """
    found: dict[tuple[str, str], set[str]] = {}
    with zipfile.ZipFile(path) as archive, archive.open("archive/data-00001.warc.gz") as stream:
        for record in ArchiveIterator(stream):
            headers = record.http_headers
            if not (headers and headers.headers) or "br" in headers.get_header(
                "Content-Encoding", ""
            ).split(", "):
                continue
            date = record.rec_headers.get_header("WARC-Date")
            key = "".join(filter(str.isdigit, date))[:14], record.rec_headers["WARC-Target-URI"]
            sha1 = hashlib.sha1(record.content_stream().read()).hexdigest()
            found.setdefault(key, set()).add(sha1)
    return found


@pytest.mark.thorough
@PLAYERS
def test_real_archives_replay(player: Player, tmp_path: Path) -> None:
    """The players refuse a few odd URLs and lead on from a few: 1 capture in 50 at most."""
    if not ARCHIVES.is_dir():
        pytest.skip(f"no real archives at {ARCHIVES}")
    home, extra = make_home(tmp_path), tmp_path / "extra.warc.gz"
    body = random.Random(2).randbytes(PART)
    extra.write_bytes(members([warc(http(body), url=b"http://extra.cz/", date=EARLY)]))
    assert home("ingest", "--jobs", "1", extra, ARCHIVES / "core").code == 0
    assert home("publish").code == 0
    path = tmp_path / "core.wacz"
    exported(home, "wacz", path, "--where", "warc_record_type = 'response'")
    wanted = payloads(path)
    asked = [*wanted]
    answers = player(path, asked)
    loaded = [answer["status"] == 200 for answer in answers]
    same = [answer["sha1"] in wanted[key] for key, answer in zip(asked, answers, strict=True)]
    assert len(asked) > 600
    assert sum(loaded) >= 0.98 * len(asked), (sum(loaded), len(asked))
    assert sum(same) >= 0.98 * len(asked), (sum(same), len(asked))
