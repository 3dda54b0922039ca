"""The local server over real HTTP: its limits, and the access log."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from sickle import Sickle

from functions.oai.application import Application
from functions.snapshot.errors import StoreUnavailable
from functions.snapshot.pointer import Pointer
from tests.e2e.conftest import Home, make_home
from tests.functions.oai.client import configured
from tests.functions.oai.validity import codes, valid
from tests.functions.reading.memory import MemoryRepository, capture
from tests.serving import serving

pytestmark = pytest.mark.shared(2)

SECONDS = 20
"""How long a test waits for what should take no time."""


def filled() -> MemoryRepository:
    repository = MemoryRepository()
    hour = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    repository.publish({"oai:example.org:1": capture("http://a.cz/")}, hour)
    return repository


@contextmanager
def listening(repository: MemoryRepository, **settings: Any) -> Iterator[tuple[str, int]]:
    """Serve as `sheaf serve` does; give host and port."""
    application = Application(repository, configured(**settings), lambda: datetime.now(UTC))
    with serving(application.answer) as server:
        yield server.address


def asked(
    address: tuple[str, int], target: str, method: str = "GET", **options: Any
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(*address, timeout=SECONDS)
    try:
        connection.request(method, target, **options)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("places", [1, 4])
def test_of_slow_requests_some_wait_and_one_too_many_is_refused_at_once(places: int) -> None:
    repository, refused = filled(), threading.Event()
    pointer, running, most = repository.pointer, threading.Semaphore(places), 5 * places

    def slow() -> Pointer:
        assert running.acquire(blocking=False)
        assert refused.wait(SECONDS)
        running.release()
        return pointer()

    repository.pointer = slow  # type: ignore[method-assign]
    with listening(repository, serve_concurrent=places) as address:
        ask = lambda: asked(address, "/oai?verb=Identify")  # noqa: E731
        with ThreadPoolExecutor(most + 1) as pool:
            answers = [pool.submit(ask) for _ in range(most + 1)]
            extra, body = next(as_completed(answers, SECONDS)).result()
            refused.set()
            statuses = [answer.result()[0].status for answer in answers]
    assert (extra.status, extra.headers["Retry-After"]) == (503, "30")
    assert extra.headers["Access-Control-Allow-Origin"] == "*"
    assert b"Too many" in body
    assert sorted(statuses) == [200] * most + [503]


def test_a_harvester_asks_again_when_it_was_told_to() -> None:
    repository, times = filled(), []
    pointer = repository.pointer

    def busy() -> Pointer:
        times.append(time.monotonic())
        if len(times) < 3:
            raise StoreUnavailable("not now")
        return pointer()

    repository.pointer = busy  # type: ignore[method-assign]
    with listening(repository, serve_retry_seconds=1) as (host, port):
        records = Sickle(f"http://{host}:{port}/oai", max_retries=5, default_retry_after=60)
        assert [r.header.identifier for r in records.ListRecords(metadataPrefix="oai_dc")] == [
            "oai:example.org:1"
        ]
    # Not the default, nor at once; how much later than told depends on what else runs here.
    assert all(0.9 < b - a < 30 for a, b in pairwise(times[:3]))
    assert len(times) >= 3


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with listening(filled()) as address:
        yield address


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("length", [60_000, 70_000, 200_000])
def test_a_long_address_is_answered_by_the_protocol(address: tuple[str, int], length: int) -> None:
    response, body = asked(address, "/oai?verb=Identify&x=" + "x" * length)
    assert response.status == 200
    assert codes(valid(body)) == ["badArgument"]


@pytest.mark.parametrize("length", [60_000, 70_000, 1_000_000])
def test_a_long_form_is_answered_by_the_protocol(address: tuple[str, int], length: int) -> None:
    form = "verb=Identify&x=" + "x" * length
    response, body = asked(address, "/oai", "POST", body=form, headers=FORM)
    assert response.status == 200
    assert codes(valid(body)) == ["badArgument"]


def sent(address: tuple[str, int], parts: Iterator[bytes]) -> bytes:
    """Send bytes until the server has had enough; return what it says until it hangs up."""
    with socket.create_connection(address, timeout=SECONDS) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except OSError:
            pass  # it answered and hung up
        received = b""
        try:
            while data := connection.recv(65_536):
                received += data
        except ConnectionResetError:
            pass
    return received


START = b"POST /oai HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"


def endless(head: bytes, part: bytes) -> Callable[[], Iterator[bytes]]:
    def parts() -> Iterator[bytes]:
        yield head
        for _ in range(400):
            yield part

    return parts


BEYOND = {
    "address": endless(b"GET /oai?verb=", b"x" * 10_000),
    "header": endless(b"GET /oai HTTP/1.1\r\nX: ", b"x" * 10_000),
    "headers": endless(b"GET /oai HTTP/1.1\r\n", b"X: y\r\n" * 2_000),
    "body": endless(START + b"Content-Length: 4000000\r\n\r\n", b"x" * 10_000),
    "claim": lambda: iter([START + b"Content-Length: 99999999999\r\n\r\n"]),
    "chunks": endless(
        START + b"Transfer-Encoding: chunked\r\n\r\n", b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    ),
    "nonsense": lambda: iter([b"\x16\x03\x01\x02\x00\r\n\r\n"]),
    "length": lambda: iter([START + b"Content-Length: -1\r\n\r\n"]),
    "digits": lambda: iter([START + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n"]),
    "lengths": lambda: iter([START + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n"]),
    "host": lambda: iter([b"GET /oai HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"]),
    "same host": lambda: iter([b"GET /oai HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"]),
    "target": lambda: iter([b"GET http://[/oai HTTP/1.1\r\nHost: a\r\n\r\n"]),
    "coding": lambda: iter([START + b"Transfer-Encoding: x\r\n\r\n"]),
}


@pytest.mark.parametrize("what", BEYOND)
def test_what_the_server_does_not_take_is_refused_at_once(
    address: tuple[str, int], what: str, caplog: pytest.LogCaptureFixture
) -> None:
    started = time.monotonic()
    said = sent(address, BEYOND[what]())
    # One that is still sending when the server hangs up may lose the answer.
    assert said.split(b" ")[1:2] in ([], [b"400"], [b"413"], [b"414"], [b"431"], [b"501"])
    assert said or what in ("address", "header", "headers", "body", "chunks")
    assert b"Traceback" not in said
    assert "Traceback" not in caplog.text
    assert time.monotonic() - started < SECONDS / 2
    assert asked(address, "/oai?verb=Identify")[0].status == 200


def test_http_over_the_wire(address: tuple[str, int]) -> None:
    get, body = asked(address, "/oai?verb=Identify")
    head, nothing = asked(address, "/oai?verb=Identify", "HEAD")
    assert (head.status, nothing) == (200, b"")
    volatile = {"Date"}
    assert {k: v for k, v in head.getheaders() if k not in volatile} == {
        k: v for k, v in get.getheaders() if k not in volatile
    }
    assert get.headers["Content-Length"] == str(len(body))
    held = {"If-None-Match": get.headers["ETag"]}
    same, nothing = asked(address, "/oai?verb=Identify", headers=held)
    assert (same.status, nothing) == (304, b"")
    assert same.headers["ETag"] == get.headers["ETag"]
    asking, nothing = asked(address, "/oai", "OPTIONS")
    assert (asking.status, nothing) == (204, b"")
    assert asking.headers["Access-Control-Allow-Methods"] == "GET, HEAD, POST, OPTIONS"


def test_a_connection_outlives_answers_without_a_body(address: tuple[str, int]) -> None:
    connection = HTTPConnection(*address, timeout=SECONDS)
    statuses = []
    for method in ("OPTIONS", "HEAD", "GET", "PUT", "OPTIONS", "GET"):
        connection.request(method, "/oai?verb=Identify")
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
    connection.close()
    assert statuses == [204, 200, 200, 405, 204, 200]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = make_home(tmp_path_factory.mktemp("home"))
    path = tmp_path_factory.mktemp("crawl") / "a.warc.gz"
    home.publish_pages(path, {f"http://www.a.cz/{n}": b"<title>a</title>" for n in range(5)})
    return home


@contextmanager
def command(home: Home, *arguments: object, **environment: str) -> Iterator[tuple[str, Path]]:
    """Run `sheaf serve`; give its base URL and the file that its standard error goes to."""
    with running(home, *arguments, **environment) as (url, errors, _):
        yield url, errors


@contextmanager
def running(
    home: Home, *arguments: object, **environment: str
) -> Iterator[tuple[str, Path, subprocess.Popen[bytes]]]:
    """Run `sheaf serve` as `command` does, with one worker if nothing is said; give its process."""
    errors = home.folder / "errors.txt"
    line = [sys.executable, "-m", "builder", "serve", "--config", home.config, "--port", "0"]
    with (
        errors.open("wb") as err,
        subprocess.Popen(
            [*map(str, line), "--json", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=err,
            env={**os.environ, "SHEAF_SERVE_WORKERS": "1", **environment},
        ) as process,
    ):
        try:
            assert process.stdout is not None
            text = ""
            while not text.rstrip().endswith("}"):
                read = process.stdout.readline().decode()
                assert read, errors.read_text()
                text += read
            yield json.loads(text)["oai"], errors, process
        finally:
            process.terminate()


def entries(path: Path, count: int) -> list[dict[str, Any]]:
    """Return the lines of a log, of which there soon are so many."""
    end = time.monotonic() + SECONDS
    lines: list[str] = []
    while len(lines) < count and time.monotonic() < end:
        lines = path.read_text().splitlines() if path.exists() else []
        time.sleep(0.01)
    assert len(lines) == count
    return [json.loads(line) for line in lines]


def fetched(url: str) -> None:
    with urllib.request.urlopen(f"{url}?verb=ListSets", timeout=SECONDS) as answer:
        assert answer.status == 200


def test_a_server_waits_for_the_first_publish(tmp_path: Path) -> None:
    """A container may start before there is anything; it is not healthy until there is."""

    def health() -> tuple[int, dict[str, Any]]:
        try:
            with urllib.request.urlopen(url.replace("/oai", "/health"), timeout=SECONDS) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    home = make_home(tmp_path)
    with command(home, SHEAF_SERVE_POINTER_SECONDS="0") as (url, _):
        assert health() == (503, {"status": "nothing is published"})
        with pytest.raises(urllib.error.HTTPError, match="503"):
            fetched(url)
        home.publish_pages(tmp_path / "a.warc.gz", {"http://www.a.cz/": b"<title>a</title>"})
        end = time.monotonic() + SECONDS
        while (answer := health())[0] != 200 and time.monotonic() < end:
            time.sleep(0.1)
        assert (answer[1]["status"], answer[1]["snapshot"]) == ("ok", 1)
        assert answer[1]["age_seconds"] >= 0
        fetched(url)
        (home.folder / "store").rename(home.folder / "gone")
        assert health() == (503, {"status": "the store cannot be read"})


def test_workers_count_together_for_prometheus(published: Home) -> None:
    settings = {"SHEAF_SERVE_METRICS": "true", "SHEAF_SERVE_WORKERS": "2"}
    with command(published, **settings) as (url, _):

        def read() -> dict[str, float]:
            with urllib.request.urlopen(url.replace("/oai", "/metrics"), timeout=SECONDS) as answer:
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                lines = answer.read().decode().splitlines()
            return {
                n: float(v)
                for n, _, v in (line.rpartition(" ") for line in lines)
                if v[:1].isdigit()
            }

        for n in range(20):
            fetched(url)
            with urllib.request.urlopen(f"{url}?verb=<{n}>", timeout=SECONDS):
                pass
        counts = read()
    assert counts['sheaf_requests_total{about="ListSets",status="200"}'] == 20
    assert counts['sheaf_requests_total{about="refused",status="200"}'] == 20
    assert counts['sheaf_request_seconds_count{about="ListSets"}'] == 20
    assert (counts["sheaf_store_readable"], counts["sheaf_snapshot"]) == (1, 1)
    assert counts["sheaf_snapshot_age_seconds"] >= 0


def test_requests_are_told_on_standard_error(published: Home) -> None:
    with command(published) as (url, errors):
        fetched(url)
        (entry,) = entries(errors, 1)
    assert (entry["verb"], entry["status"], entry["snapshot"]) == ("ListSets", 200, 1)
    assert entry["rows"] > 0
    assert entry["milliseconds"] > 0


def test_requests_are_told_in_a_file_that_may_be_moved_away(
    published: Home, tmp_path: Path
) -> None:
    log, moved = tmp_path / "access.log", tmp_path / "access.log.1"
    with command(published, "--access-log", log) as (url, errors):
        fetched(url)
        entries(log, 1)
        log.rename(moved)
        fetched(url)
        entries(log, 1)
        os.truncate(log, 0)  # as logrotate's copytruncate does
        fetched(url)
        entries(log, 1)
        assert errors.read_text() == ""
    assert len(entries(moved, 1)) == 1


def test_the_configuration_names_the_file_seen_from_itself(published: Home) -> None:
    with command(published, SHEAF_SERVE_ACCESS_LOG="seen.log") as (url, _):
        fetched(url)
        entries(published.folder / "seen.log", 1)
    with command(published, SHEAF_SERVE_ACCESS_LOG="") as (url, errors):
        fetched(url)
        time.sleep(0.2)
        assert errors.read_text() == ""


def test_a_full_disk_is_told_of_and_harvests_go_on(published: Home) -> None:
    with command(published, "--access-log", "/dev/full") as (url, errors):
        for _ in range(3):
            fetched(url)
        text = errors.read_text()
    assert text.count("the access log cannot be written") == 1
    assert "No space left" in text
    assert "Traceback" not in text


@pytest.mark.thorough
def test_without_standard_error_requests_are_answered(published: Home, tmp_path: Path) -> None:
    """As `sheaf serve 2>&-` has it; what is opened next has its number, and is not written to."""
    told = tmp_path / "told"
    line = [sys.executable, "-m", "builder", "serve", "--config", published.config, "--port=0"]
    shell = f'exec {" ".join(map(str, line))} --json > "{told}" 2>&-'
    with subprocess.Popen(["sh", "-c", shell]) as process:
        try:
            end = time.monotonic() + 3 * SECONDS  # for workers to start
            while not (told.exists() and told.read_text().rstrip().endswith("}")):
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.01)
            text = told.read_text()
            for _ in range(3):
                fetched(json.loads(text)["oai"])
            assert told.read_text() == text
        finally:
            process.terminate()


def test_the_command_has_a_thread_left_to_tell_who_is_too_many(published: Home) -> None:
    """A pipe in the pointer's place holds a request up until it is written to."""
    pointer = published.folder / "store" / "current.json"
    held = pointer.with_name("held")
    settings = {"SHEAF_SERVE_CONCURRENT": "1", "SHEAF_SERVE_POINTER_SECONDS": "0"}
    with command(published, **settings) as (url, _), ThreadPoolExecutor(6) as pool:
        parts = urlsplit(url)
        address = (str(parts.hostname), int(parts.port or 0))
        pointer.rename(held)
        os.mkfifo(pointer)
        try:
            first = pool.submit(asked, address, "/oai?verb=Identify")
            pipe = waited_for(pointer)
            others = [pool.submit(asked, address, f"/oai?verb=ListSets&{n}") for n in range(5)]
            assert next(as_completed(others, SECONDS)).result()[0].status == 503
            os.write(pipe, held.read_bytes())
        finally:
            held.replace(pointer)
        os.close(pipe)
        statuses = [answer.result()[0].status for answer in (first, *others)]
        assert sorted(statuses) == [200] * 5 + [503]


def waited_for(pipe: Path) -> int:
    """Open a pipe for writing as soon as somebody reads it."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.mark.parametrize("name", ["nowhere/access.log", "."])
def test_a_log_that_cannot_be_opened_is_told_of_at_once(
    published: Home, tmp_path: Path, name: str
) -> None:
    result = published("serve", "--port", "0", "--access-log", tmp_path / name)
    assert result.code == 2
    assert f"access log {tmp_path / name}" in result.err
