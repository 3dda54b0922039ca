"""Many harvesters at one server: kept pages with several workers, and with nginx in front."""

import gzip
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.clock import CLOCK
from tests.e2e.conftest import Home, make_home
from tests.e2e.test_server import SECONDS, running
from tests.e2e.test_workers import TWO, children
from tests.listening import free_port

RULES = Path(__file__).parents[2] / "infra" / "nginx.conf"
FIRST = "/oai?verb=ListRecords&metadataPrefix=oai_dc"
_TOKEN = re.compile(rb"<resumptionToken[^>]*>([^<]+)<")
_DATE = re.compile(rb"<responseDate>[^<]*<")
BASE = {"SHEAF_REPOSITORY_BASE_URL": "http://archive.example.org/oai"}
PAGES = {"SHEAF_PAGES_RECORDS": "5"}
POINTER = 2.1
"""Seconds after which a worker has read the pointer again (serve.pointer_seconds)."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Give a store of two snapshots."""
    folder = tmp_path_factory.mktemp("crowd")
    home = make_home(folder / "home")
    for part in range(2):
        pages = {f"http://a.cz/{part}/{n}": f"<title>{n}</title>".encode() for n in range(40)}
        home.publish_pages(folder / f"{part}.warc.gz", pages)
    return home


def ask(connection: HTTPConnection, target: str) -> tuple[int, bytes]:
    connection.request("GET", target, headers={"Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def plain(body: bytes) -> bytes:
    return _DATE.sub(b"", gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)


def walk(url: str) -> Iterator[tuple[str, bytes]]:
    """Yield the requests of a list and their answers' bodies."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=SECONDS)
    target = FIRST
    while target:
        status, body = ask(connection, target)
        assert status == 200
        yield target, body
        match = _TOKEN.search(gzip.decompress(body))
        token = match and match[1].decode()
        target = f"/oai?verb=ListRecords&resumptionToken={token}" if token else ""
    connection.close()


def kept_files(folder: Path) -> list[Path]:
    return sorted((folder / "tmp").glob("sheaf-cache-*/[0-9]*-*"))


def body_of(path: Path) -> bytes:
    data = path.read_bytes()
    return data[data.index(b"\x1f\x8b\x08") :]


def test_a_harvest_goes_on_over_kept_pages_while_there_is_a_publish_and_an_expiry(
    published: Home, tmp_path: Path
) -> None:
    with running(published, **PAGES, **TWO) as (url, _, _):
        seen = [target for target, _ in walk(url)]
        again = dict(walk(url))
        pages = {"http://b.cz/": b"<title>New</title>"}
        published.publish_pages(tmp_path / "new.warc.gz", pages)
        old = HTTPConnection(urlsplit(url).netloc, timeout=SECONDS)
        for target in seen[1:-1]:  # tokens of the snapshot before
            assert ask(old, target) == (200, again[target])
        CLOCK.sleep(100)  # the pointer names the snapshot before for a minute
        assert published("expire", "--keep", "1", "--older-than", "0m").code == 0
        time.sleep(POINTER)
        for target in seen[1:-1]:  # the list goes on in the snapshot in effect, by position
            status, body = ask(old, target)
            assert (status, body == again[target]) == (200, False)
        old.close()
        found = b"".join(gzip.decompress(body) for _, body in walk(url))
        assert found.count(b"<identifier>") == 81


@pytest.mark.thorough
def test_a_purge_reaches_the_kept_pages_of_all_workers(published: Home, tmp_path: Path) -> None:
    secret = b"http://a.cz/0/17<"
    (tmp_path / "tmp").mkdir()
    with running(published, **PAGES, **TWO, TMPDIR=str(tmp_path / "tmp")) as (url, _, _):
        targets = [target for target, _ in walk(url)]
        clients = [HTTPConnection(urlsplit(url).netloc, timeout=SECONDS) for _ in range(4)]
        for _ in range(2):  # each worker learns the pages
            found = [gzip.decompress(ask(c, target)[1]) for c in clients for target in targets]
            assert sum(secret in body for body in found) == len(clients)
        assert any(secret in gzip.decompress(body_of(path)) for path in kept_files(tmp_path))
        prefix = ("--url-prefix", secret[:-1].decode())
        done = published("withdraw", *prefix, "--reason", "a court", "--purge")
        assert done.code == 0, done.err
        time.sleep(POINTER)
        for client in clients:
            for target in targets:
                assert secret not in gzip.decompress(ask(client, target)[1])
            client.close()
        left = kept_files(tmp_path)
        assert not any(secret in gzip.decompress(body_of(path)) for path in left)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Give a folder with a small file system of its own."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a file system here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


@pytest.mark.thorough
def test_on_a_full_disk_the_server_goes_on(original: Home, tmp_path: Path, disk: Path) -> None:
    settings = {**PAGES, **TWO, "TMPDIR": str(disk)}
    with running(original, "--access-log", "/dev/null", **settings) as (url, errors, process):
        assert len(children(process.pid)) == 2
        with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        walks = [{target: plain(body) for target, body in walk(url)} for _ in range(4)]
        assert walks == [walks[0]] * 4
        assert kept_files(tmp_path) == []
        lines = errors.read_text().splitlines()
        assert 1 <= len(lines) <= 2  # one of each worker
        assert all("pages cannot be kept" in line for line in lines)


@contextmanager
def nginx(folder: Path, port: int) -> Iterator[int]:
    """Run nginx by its rules in front of a server; give its port."""
    moved = {
        "/var/cache/nginx-sheaf": str(folder / "cache"),
        "127.0.0.1:8080": f"127.0.0.1:{port}",
        "listen [::]:80;": "",
    }
    with proxy("nginx", folder, RULES.read_text("utf-8"), moved) as own:
        yield own


@contextmanager
def proxy(kind: str, folder: Path, text: str, moved: Mapping[str, str]) -> Iterator[int]:
    """Run nginx or caddy by rules, in which texts are replaced; give its port."""
    program = shutil.which(kind, path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(f"{kind} is not installed: apt-get install {kind}")
    own = free_port()
    listens = {
        "nginx": ("listen 80", f"listen 127.0.0.1:{own}"),
        "caddy": (":80", f"http://127.0.0.1:{own}"),
    }
    for old, new in (*moved.items(), listens[kind]):
        assert old in text
        text = text.replace(old, new)
    places = "".join(
        f"{name}_temp_path {folder / name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root; " if os.geteuid() == 0 else ""
    file = folder / "rules"
    line = [program, "run", "--config", file, "--adapter", "caddyfile"]
    if kind == "nginx":
        text = (
            f"{user}daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
            f"http {{ access_log off; {places}\n{text} }}"
        )
        line = [program, "-p", folder, "-c", file, "-e", "stderr"]
    file.write_text(text if kind == "nginx" else "{\n admin off\n}\n" + text)
    own_home = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    process = subprocess.Popen(line, env={**os.environ, **own_home}, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + SECONDS
        while True:
            try:
                HTTPConnection("127.0.0.1", own, timeout=SECONDS).connect()
                break
            except OSError:
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < end
                time.sleep(0.05)
        yield own
    finally:
        process.terminate()
        process.wait(SECONDS)


def test_nginx_answers_pages_within_lists_without_the_server(
    original: Home, tmp_path: Path
) -> None:
    with (
        running(original, **PAGES) as (url, _, process),
        nginx(tmp_path, int(urlsplit(url).port or 0)) as port,
    ):
        first = dict(walk(f"http://127.0.0.1:{port}"))
        process.terminate()
        process.wait(SECONDS)
        connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        statuses = []
        for target, body in first.items():
            status, found = ask(connection, target)
            statuses.append(status)
            assert status != 200 or found == body
        connection.close()
    # The first and the last page must be revalidated, which needs the server.
    assert statuses == [502, *[200] * (len(first) - 2), 502]
