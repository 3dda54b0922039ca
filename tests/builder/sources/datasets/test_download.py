"""Files come whole and verified, or not at all, whatever servers and lines do."""

import gzip
import hashlib
import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from builder.http.limits import Limits
from builder.sources.datasets.download import download
from builder.sources.datasets.item import GIT, REPLICAS
from builder.sources.datasets.protocols import FilesetError, Received
from tests.builder.sources.datasets.body import Body, Generated, digest, whole
from tests.builder.sources.datasets.server import (
    DATE,
    Answer,
    Exchange,
    Server,
    endless,
    html,
    login,
    redirect,
    served,
    silent,
    status,
    then,
)
from tests.builder.sources.datasets.world import QUICK, World, manifest_file, world

pytestmark = pytest.mark.shared(2)

MODIFIED, LATER = "Mon, 02 Nov 2026 10:00:00 GMT", "Tue, 03 Nov 2026 10:00:00 GMT"
URL = "https://data.example.org/files/a.bin"
BODY = Generated(3_000_000, seed=5)


def got(there: World, body: Body = BODY, limit: int = 1 << 30, **more: object) -> Received:
    """Fetch a file, and see that it came whole and once."""
    file = manifest_file(URL, body, **more)
    received = there.downloader().download(file, limit, there.sink)
    assert there.kept == [whole(body)]
    there.kept.clear()
    return received


def failed(there: World, body: Body | None = BODY, limit: int = 1 << 30, **more: object) -> str:
    file = manifest_file(URL, body, **more)
    with pytest.raises(FilesetError) as error:
        there.downloader().download(file, limit, there.sink)
    assert not there.kept
    return error.value.status


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 200_000])
def test_a_file_comes_as_it_is(there: World, size: int, chunked: bool) -> None:
    body = Generated(size)
    there.server.add(URL, served(body, chunked=chunked))
    found = got(there, body, digests="md5 sha512")
    assert found.verified == "sha512"
    assert found.size == size
    for name in ("md5", "sha1", "sha256", "sha512", "crc32"):
        assert getattr(found, name) == digest(name, body)
    assert (found.last.url, found.last.status, found.last.reason) == (URL, 200, "OK")
    assert found.media_type == "application/octet-stream"
    assert ("Accept-Ranges", "bytes") in found.last.headers
    assert len(found.last.at) == 14
    (asked,) = there.server.asked()
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["user-agent"].startswith("Sheaf/")


def test_what_is_cut_is_gone_on_with(there: World) -> None:
    """Scenario 18: the server sends less than half as much again as the file has."""
    there.server.add(URL, then(served(BODY, cut=1_800_000), served(BODY)))
    got(there)
    assert not there.thrown
    first, second = there.server.asked(URL)
    assert second.headers["range"].startswith("bytes=1")
    assert second.headers["if-range"].startswith('"')
    assert first.sent + second.sent < 1.5 * BODY.size


@pytest.mark.parametrize(
    ("etag", "modified", "condition"),
    [
        (None, MODIFIED, MODIFIED),
        (None, DATE, None),
        (None, None, None),
        ("weak", MODIFIED, None),
        ("weak", None, None),
    ],
)
def test_what_has_no_strong_tag_is_gone_on_with_by_date_or_digest(
    there: World, etag: str | None, modified: str | None, condition: str | None
) -> None:
    rest = served(BODY, etag=etag, modified=modified)
    there.server.add(URL, then(served(BODY, cut=2_000_000, etag=etag, modified=modified), rest))
    got(there)
    asked = there.server.asked(URL)[1]
    assert asked.headers["range"].startswith("bytes=")
    said = asked.headers.get("if-range")
    assert said == condition


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"etag": '"one"'}, {"etag": '"two"'}),
        ({"etag": '"one"'}, {"etag": None}),
        ({"etag": 'W/"one"'}, {"etag": 'W/"two"'}),
        ({"etag": 'W/"one"'}, {"etag": 'W/"one"'}),
        ({"etag": None}, {"etag": None, "modified": LATER}),
        ({"etag": None}, {"etag": None, "modified": None}),
        ({"etag": None, "modified": DATE}, {"etag": None, "modified": DATE}),
    ],
)
def test_two_versions_are_never_combined_though_if_range_is_ignored(
    there: World, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """RFC 9110, section 15.3.7.3: no digest would tell, and both versions have one size."""
    cut = served(Generated(BODY.size, seed=6), cut=1_000_000, **first)
    there.server.add(URL, then(cut, served(BODY, obeys=False, **second)))
    got(there, digests="")


def test_a_later_version_is_not_continued_with_though_a_digest_would_tell(there: World) -> None:
    old = Generated(BODY.size, seed=6)
    there.server.add(URL, then(served(old, cut=1_000_000), served(BODY, obeys=False)))
    got(there)
    assert not [asked for asked in there.server.asked(URL)[2:] if "range" in asked.headers]


def test_what_ends_with_its_connection_and_too_early_is_gone_on_with(there: World) -> None:
    there.server.add(URL, then(served(BODY, cut=1_800_000, sized=False), served(BODY)))
    got(there)
    assert not there.thrown
    there.server.add(URL, served(BODY, cut=1_800_000, sized=False, ranges=False))
    assert failed(there) == "truncated"


@pytest.mark.parametrize("tag", ['"h\u00e9"', '"a\tb"', '"' + "a" * 2000 + '"'])
def test_a_tag_that_cannot_be_sent_back_is_no_condition(there: World, tag: str) -> None:
    """What a server says goes into no header of ours unless a header can hold it."""
    odd = served(BODY, etag=tag, modified=None)
    there.server.add(URL, then(served(BODY, etag=tag, modified=None, cut=1_800_000), odd))
    got(there)
    assert "if-range" not in there.server.asked(URL)[1].headers


@pytest.mark.parametrize("total", ["3000000", "*"])
def test_a_range_that_ends_early_is_gone_on_with(there: World, total: str) -> None:
    """No digest and no size tells that some lacks: the length that was told first does."""

    def some(exchange: Exchange) -> None:
        start = int(exchange.asked.headers["range"][6:-1])
        until = min(start + 500_000, BODY.size)
        said = {"Content-Range": f"bytes {start}-{until - 1}/{total}", "ETag": '"one"'}
        exchange.head(206, said | {"Content-Length": str(until - start)})
        exchange.send(BODY.all[start:until])

    there.server.add(URL, then(served(BODY, etag='"one"', cut=2_200_000), some))
    got(there, digests="", size=None)


def test_all_bytes_of_a_length_that_lies_are_all_bytes(there: World) -> None:
    there.server.add(URL, served(BODY, length=BODY.size + 10))
    got(there, size=None)
    assert len(there.server.asked()) == 1


HALF = BODY.size // 2
BROKEN: dict[str, tuple[list[Answer], dict[str, str]]] = {
    "nothing tells that both are one": (
        [
            served(BODY, etag=None, modified=None, cut=2_000_000),
            served(BODY, etag=None, modified=None),
        ],
        {"digests": ""},
    ),
    "a range of endless digits": (
        [
            served(BODY, cut=1_000_000),
            served(BODY, code=206, headers={"Content-Range": f"bytes {'9' * 5000}-9/{'9' * 5000}"}),
            served(BODY),
        ],
        {},
    ),
    "ranges are ignored": ([served(BODY, cut=1_800_000), served(BODY, ranges=False)], {}),
    "ranges are ignored, without a tag": (
        [served(BODY, cut=1_800_000), served(BODY, ranges=False, etag=None)],
        {},
    ),
    "it is another meanwhile": (
        [served(Generated(BODY.size, seed=6), cut=1_000_000), served(BODY)],
        {"digests": ""},
    ),
    "a wrong range": (
        [
            served(BODY, cut=1_000_000),
            served(BODY.all[:2_000_000], code=206, headers={"Content-Range": "bytes 7-9/3000000"}),
            served(BODY),
        ],
        {},
    ),
    # As long as what lacks, of the very file by its tag, and no digest would tell.
    "a range of another place": (
        [
            served(BODY, etag='"one"', cut=HALF),
            served(
                BODY.all[:HALF],
                code=206,
                etag='"one"',
                headers={"Content-Range": f"bytes 0-{HALF - 1}/{BODY.size}"},
            ),
            served(BODY),
        ],
        {"digests": ""},
    ),
    "a byte was wrong once": ([served(BODY, wrong=1_234_567), served(BODY)], {}),
}


WHOLE = ("nothing tells that both are one", "a byte was wrong once")
"""Those after which no rest is asked for."""


@pytest.mark.parametrize("why", BROKEN)
def test_what_cannot_be_joined_is_begun_anew(there: World, why: str) -> None:
    answers, manifest = BROKEN[why]
    there.server.add(URL, then(*answers))
    got(there, **manifest)
    assert len(there.thrown) == 1
    _, second, *_, last = [*there.server.asked(URL), there.server.asked(URL)[-1]]
    # The rest is asked for only if a tag or a digest tells that it belongs to what is there.
    assert ("range" in second.headers) == (why not in WHOLE)
    assert "range" not in last.headers


def test_a_large_file_over_a_line_that_breaks_often_comes_in_the_end(
    there: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as enough of it comes with each try, no try is the last."""
    monkeypatch.setattr(download, "WORTH", 900_000)
    assert there.ways.http.tries < 8
    body = Generated(8 << 20)
    cuts = [served(body, cut=at << 20) for at in range(1, 8)]
    there.server.add(URL, then(*cuts, served(body)))
    got(there, body)
    assert len(there.server.asked(URL)) == 8


@pytest.mark.parametrize("name", ["md5", "sha1", "sha256", "sha512"])
def test_a_wrong_byte_is_a_mismatch(there: World, name: str) -> None:
    """Scenario 17; the same wrong bytes twice are no accident."""
    there.server.add(URL, served(BODY, wrong=1_234_567))
    assert failed(there, digests=name) == f"mismatch-{name}"
    assert len(there.server.asked(URL)) == 2


def test_the_digest_of_a_git_blob_is_compared(there: World) -> None:
    git = hashlib.sha1(b"blob %d\0%b" % (BODY.size, BODY.all)).hexdigest()
    there.server.add(URL, served(BODY))
    assert got(there, digests="", extra={GIT: git}).verified == GIT
    there.server.add(URL, served(BODY, wrong=3))
    with pytest.raises(FilesetError, match=f"mismatch-sha1: .* a git blob {git} declared"):
        got(there, digests="", extra={GIT: git})


def test_a_file_comes_from_a_replica_where_its_own_address_fails(there: World) -> None:
    replicas = ["https://arctic.example/a", "https://knb.example/a"]
    there.server.add(URL, status(404))
    there.server.add(replicas[0], served(BODY, wrong=1))
    there.server.add(replicas[1], served(BODY))
    assert got(there, digests="sha1", extra={REPLICAS: replicas}).verified == "sha1"
    there.server.add(replicas[1], status(404))
    assert failed(there, digests="sha1", extra={REPLICAS: replicas}) == "file-404"


@pytest.mark.parametrize("told", [-1, 1])
@pytest.mark.parametrize("sized", [True, False])
def test_another_size_than_told(there: World, told: int, sized: bool) -> None:
    there.server.add(URL, served(BODY, chunked=not sized))
    assert failed(there, size=BODY.size + told) == "mismatch-size"
    assert all(len(some) <= BODY.size for some in there.thrown)


@pytest.mark.parametrize("known", [False, True])
def test_what_never_ends_is_ended(there: World, known: bool) -> None:
    """Scenario 15: no more bytes are taken than may be."""
    there.server.add(URL, endless())
    if known:
        assert failed(there, digests="") == "mismatch-size"
    else:
        assert failed(there, None, limit=100_000) == "over-limit-stream"
        assert len(there.server.asked(URL)) == 1
        assert all(len(some) <= 100_000 for some in there.thrown)
        there.thrown.clear()
        there.server.add(URL, served(BODY))  # its length tells before any byte
        assert failed(there, None, limit=1_000_000) == "over-limit-stream"
        assert there.thrown == [b""]


@pytest.mark.parametrize(
    ("answer", "settings", "told"),
    [
        (served(BODY, drip=(0.05, 1)), {"limits": Limits(5, 0.3, rate=100)}, "stalled"),
        (served(BODY, drip=(0.01, 100)), {"http__total_seconds": 1}, "deadline-exceeded"),
        (served(BODY, cut=1_000_000, ranges=False), {}, "truncated"),
        (status(202), {}, "html-decoy"),
    ],
    ids=["trickles", "takes-too-long", "breaks-always", "is-being-made-ready"],
)
def test_what_does_not_come_is_given_up(
    server: Server, tmp_path: Path, answer: Answer, settings: dict[str, Any], told: str
) -> None:
    """Scenario 19."""
    there = world(server, tmp_path, **{"http__tries": 2, **settings})
    server.add(URL, answer)
    assert failed(there) == told
    assert len(server.asked(URL)) <= 3  # a try more, from the beginning


def test_what_is_ready_after_a_while_is_taken_and_who_stops_is_heard(there: World) -> None:
    there.server.add(URL, then(status(202), served(BODY)))
    got(there)
    there.server.add(URL, served(BODY, drip=(0.05, 100)))
    threading.Timer(0.3, there.stop.set).start()
    assert failed(there) == "cancelled"


def test_what_trickles_after_a_quick_beginning_is_stalled(server: Server, tmp_path: Path) -> None:
    there = world(server, tmp_path, limits=Limits(5, 0.4, rate=10_000), http__tries=2)

    def answer(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Length": str(BODY.size)})
        exchange.send(BODY.all[:2_900_000])
        for number in range(2_900_000, BODY.size, 100):
            exchange.send(BODY.all[number : number + 100])
            exchange.wait(0.05)

    server.add(URL, answer)
    assert failed(there) == "stalled"


def test_a_store_that_is_slow_is_no_fault_of_the_server(server: Server, tmp_path: Path) -> None:
    there = world(server, tmp_path, limits=Limits(10, 2, rate=1), http__tries=1)
    server.add(URL, served(BODY))

    class Slow(io.BytesIO):
        def write(self, data: Any) -> int:
            if self.tell() == 0:
                time.sleep(2.5)
            return super().write(data)

    @contextmanager
    def sink() -> Iterator[Slow]:
        with Slow() as made:
            yield made
            there.kept.append(made.getvalue())

    there.downloader().download(manifest_file(URL, BODY), 1 << 30, sink)
    assert there.kept == [BODY.all]


def test_what_never_answers_is_stalled_and_others_go_on(server: Server, tmp_path: Path) -> None:
    there = world(server, tmp_path, limits=Limits(5, 0.5, rate=100), http__tries=2)
    server.add(URL, silent())
    other = server.add("https://other.example.org/b", served(BODY))
    said: list[str] = []

    def wait() -> None:
        with pytest.raises(FilesetError) as error:
            there.downloader().download(manifest_file(URL, BODY), 1 << 30, there.sink)
        said.append(error.value.status)

    stuck = threading.Thread(target=wait)
    stuck.start()
    there.paced(QUICK).downloader().download(manifest_file(other, BODY), 1 << 30, there.sink)
    assert there.kept == [BODY.all]
    stuck.join()
    assert said == ["stalled"]


@pytest.mark.parametrize("after", ["2", "date"])
def test_retry_after_is_obeyed(server: Server, tmp_path: Path, after: str) -> None:
    """Scenario 20: asked again after the time, and not before; a date is by the server's clock."""
    there = world(server, tmp_path)
    when = "Tue, 14 Nov 2023 22:13:22 GMT" if after == "date" else after
    limited = status(429, Retry_After=when, Date="Tue, 14 Nov 2023 22:13:20 GMT")
    server.add(URL, then(limited, served(BODY)))
    got(there)
    first, second = server.asked(URL)
    assert second.at - first.at >= 1.9


def test_a_storm_of_errors_is_no_hot_loop(server: Server, tmp_path: Path) -> None:
    there = world(server, tmp_path, http__backoff_seconds=1, http__tries=3)
    server.add(URL, status(503))
    assert failed(there) == "error-platform-download"
    times = [one.at for one in server.asked(URL)]
    assert len(times) == 3
    assert times[1] - times[0] >= 0.9
    assert times[2] - times[1] >= 1.9


def test_a_rest_that_is_longer_than_there_is_time_ends_it_at_once(
    server: Server, tmp_path: Path
) -> None:
    there = world(server, tmp_path)
    server.add(URL, status(429, Retry_After="3600"))
    begun = time.monotonic()
    assert failed(there) == "error-platform-download"
    assert time.monotonic() - begun < 30
    assert len(server.asked(URL)) == 1


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (404, "file-404"),
        (410, "file-404"),
        (403, "file-forbidden"),
        (401, "file-forbidden"),
        (451, "file-forbidden"),
        (400, "error-platform-download"),
        (204, "error-platform-download"),
    ],
)
def test_what_a_server_refuses_is_asked_for_once(there: World, code: int, told: str) -> None:
    there.server.add(URL, status(code))
    assert failed(there) == told
    assert len(there.server.asked(URL)) == 1


@pytest.mark.parametrize("digests", ["md5", ""])
@pytest.mark.parametrize(
    "answer",
    [
        login(),
        html("<html><body>Not here</body></html>"),
        served(b"\n <!DOCTYPE html>\n<p>no</p>", "application/zip"),
        html(""),
    ],
    ids=["login", "page", "page that says it is a zip", "nothing"],
)
def test_a_page_in_the_place_of_a_file(there: World, answer: Answer, digests: str) -> None:
    """Scenario 26."""
    there.server.add(URL, answer)
    body = Generated(1000)
    assert failed(there, body, digests=digests, path="a.zip") == "html-decoy"


ERROR = b'{"error": "not today", "status": 200}'


@pytest.mark.parametrize(("path", "kept"), [("a.zip", 0), ("a.dat", 0), ("a.json", 1)])
def test_an_error_in_json_is_no_file(there: World, path: str, kept: int) -> None:
    there.server.add(URL, served(ERROR, "application/json"))
    file = manifest_file(URL, None, path=path)
    if kept:
        there.downloader().download(file, 1 << 30, there.sink)
    else:
        with pytest.raises(FilesetError, match=r"html-decoy.*not today"):
            there.downloader().download(file, 1 << 30, there.sink)
    assert len(there.kept) == kept


def test_json_of_the_declared_size_or_without_an_error_is_the_file(there: World) -> None:
    data = b'{"type": "FeatureCollection", "features": []}'
    there.server.add(URL, served(data, "application/geo+json"))
    got(there, data, digests="", size=None, path="a.map")
    there.server.add(URL, served(ERROR, "application/json"))
    got(there, ERROR, digests="", path="a.txt")


def test_a_page_that_is_the_file_is_taken(there: World) -> None:
    page = b"<!DOCTYPE html><p>data</p>"
    there.server.add(URL, served(page, "text/html"))
    got(there, page, digests="", path="a.html")
    got(there, page, digests="", mimetype="text/html; charset=utf-8")
    got(there, page, digests="md5", path="a.dat")


def test_nothing_where_nothing_is_told_is_no_file(there: World) -> None:
    there.server.add(URL, served(b""))
    assert failed(there, None) == "html-decoy"
    there.server.add(URL, served(b""))
    got(there, b"", digests="")


TABLE = b"a,b\n" + b"1,2\n" * 5000


@pytest.mark.parametrize("digests", ["md5", ""])
@pytest.mark.parametrize("path", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("kept", ["packed", "plain"])
def test_a_content_coding_is_kept_or_taken_off_as_the_manifest_tells(
    there: World, digests: str, path: str, kept: str
) -> None:
    """Scenario 22: with a digest, or a size, it is known which bytes are meant."""
    body = gzip.compress(TABLE, mtime=0) if kept == "packed" else TABLE
    there.server.add(URL, served(TABLE, "text/csv", coding="gzip"))
    got(there, body, digests=digests, path=path)


@pytest.mark.parametrize(
    ("body", "size", "told"),
    [
        (None, None, "encoding-ambiguous"),
        (None, 17, "encoding-ambiguous"),
        (BODY, BODY.size, "mismatch-size"),
        (BODY, None, "mismatch-md5"),
    ],
)
def test_a_content_coding_that_nothing_fits(
    there: World, body: Body | None, size: int | None, told: str
) -> None:
    there.server.add(URL, served(TABLE, "text/csv", coding="gzip"))
    assert failed(there, body, size=size) == told


def test_a_bomb_in_the_place_of_a_file_is_ended(there: World) -> None:
    body = gzip.compress(b"\0" * 50_000_000)
    there.server.add(URL, served(body, headers={"Content-Encoding": "gzip"}))
    assert failed(there, None, limit=1_000_000, md5="0" * 32) in {
        "over-limit-stream",
        "mismatch-md5",
    }
    assert all(len(some) <= 1_000_000 for some in there.thrown)


def test_redirects_lead_to_object_stores_and_tokens_do_not(server: Server, tmp_path: Path) -> None:
    there = world(server, tmp_path, fileset__tokens={"data.example.org": "secret"})
    store = "https://store.example.net/bucket/a.bin?X-Amz-Signature=abc%2Fdef"
    server.add(URL, redirect(store, 303))
    server.add(store, served(BODY))
    found = got(there)
    assert found.last.url == store.partition("?")[0]  # the signature is nobody else's
    assert server.asked(store)
    first, second = server.asked()
    assert first.headers["authorization"] == "Bearer secret"
    assert "authorization" not in second.headers
    assert not server.asked(method="HEAD")


def test_no_token_goes_over_a_line_that_others_read(server: Server, tmp_path: Path) -> None:
    there = world(server, tmp_path, fileset__tokens={"data.example.org": "secret"})
    plain = server.add(URL.replace("https", "http"), served(BODY))
    there.downloader().download(manifest_file(plain, BODY), 1 << 30, there.sink)
    assert "authorization" not in server.asked()[0].headers


@pytest.mark.parametrize(
    "target",
    [
        "http://2130706433/x",
        "http://inside.example.org/x",
        "https://data.example.org:8443/x",
    ],
)
def test_no_redirect_leads_into_our_own_network(
    server: Server, tmp_path: Path, target: str
) -> None:
    there = world(server, tmp_path, elsewhere={"inside.example.org": "10.0.0.7"})
    server.add(URL, redirect(target))
    assert failed(there) == "blocked-address"
    assert len(server.asked()) == 1


def test_urls_that_cannot_be_asked_for(there: World) -> None:
    for url in ("file:///etc/passwd", "nonsense", None, "http://user:pw@data.example.org/x"):
        with pytest.raises(FilesetError) as error:
            there.downloader().download(manifest_file(url or "", BODY), 1 << 30, there.sink)
        assert error.value.status == "error-platform-download"
    assert not there.server.asked()
