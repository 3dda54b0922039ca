"""The fake server does what it says: what other tests show would be worth nothing otherwise."""

import gzip
import hashlib
import threading
import zlib
from contextlib import closing, suppress

from builder.http.connections import Connections
from builder.http.errors import FetchError
from builder.http.limits import Budget, Limits
from builder.http.settings import Proxies
from tests.builder.sources.datasets.body import Generated, digest
from tests.builder.sources.datasets.names import Names
from tests.builder.sources.datasets.server import Server, bomb, redirect, served, status, then

BODY = Generated(3_000_000, seed=3)


def ask(
    server: Server, url: str, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Ask with what Sheaf asks with; what breaks off gives what came."""
    budget = Budget(Limits(5, 5, 30, 1, 1 << 40), threading.Event())
    trusted = server.authority.trusted()
    with (
        closing(Connections(Names(server), trusted, Proxies())) as connections,
        connections.send(url, headers or {}, budget) as answer,
    ):
        found = bytearray()
        with suppress(FetchError):  # cut short
            for data in answer.body:
                found += data
        return answer.status, dict(answer.headers), bytes(found)


def test_a_generated_body_is_the_same_in_pieces_and_whole() -> None:
    assert len(BODY.all) == BODY.size
    assert hashlib.md5(BODY.all).hexdigest() == BODY.digest("md5") == digest("md5", BODY.all)
    assert f"{zlib.crc32(BODY.all):08x}" == BODY.digest("crc32")
    assert b"".join(BODY.chunks(1_048_570, 1_048_590)) == BODY.all[1_048_570:1_048_590]
    assert BODY.all[:1000] != BODY.all[1 << 20 : (1 << 20) + 1000]


def test_faults_are_what_they_are_called(server: Server) -> None:
    url = "https://a.example.org/f"
    server.add(url, then(served(BODY, cut=600), served(BODY, wrong=7), served(BODY, chunked=True)))
    assert ask(server, url)[2] == BODY.all[:600]
    found = ask(server, url)[2]
    assert [n for n, (a, b) in enumerate(zip(found, BODY.all, strict=True)) if a != b] == [7]
    assert ask(server, url)[2] == BODY.all
    server.add(url, served(b"abcdef" * 1000, coding="gzip"))
    _, headers, found = ask(server, url)
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(found) == b"abcdef" * 1000
    server.add(url, served(b"abcdef", length=9))
    assert ask(server, url)[2] == b"abcdef"
    server.add(url, served(b"abcdef", ranges=False))
    assert ask(server, url, {"Range": "bytes=3-"})[2] == b"abcdef"
    server.add(url, then(status(429, Retry_After="2"), redirect("https://b.example.org/", 303)))
    assert ask(server, url)[1]["retry-after"] == "2"
    assert ask(server, url)[1]["location"] == "https://b.example.org/"


def test_a_bomb_is_small_on_the_wire(server: Server) -> None:
    url = server.add("https://a.example.org/b", bomb(1))
    found = ask(server, url)[2]
    assert len(found) < 5 << 20
    unpack = zlib.decompressobj(31)
    first = found[: len(found) // 16]
    assert len(unpack.decompress(first)) > 50 << 20
