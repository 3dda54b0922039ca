"""The fake server does what it says: what other tests show would be worth nothing otherwise."""

import hashlib
import threading
import zlib
from contextlib import closing

from builder.http.connections import Connections
from builder.http.limits import Budget, Limits
from builder.http.settings import Proxies
from tests.builder.sources.datasets.body import Generated, digest
from tests.builder.sources.datasets.names import Names
from tests.builder.sources.datasets.server import Server, bomb

BODY = Generated(3_000_000, seed=3)


def test_a_generated_body_is_the_same_in_pieces_and_whole() -> None:
    assert len(BODY.all) == BODY.size
    assert hashlib.md5(BODY.all).hexdigest() == BODY.digest("md5") == digest("md5", BODY.all)
    assert f"{zlib.crc32(BODY.all):08x}" == BODY.digest("crc32")
    assert b"".join(BODY.chunks(1_048_570, 1_048_590)) == BODY.all[1_048_570:1_048_590]
    assert BODY.all[:1000] != BODY.all[1 << 20 : (1 << 20) + 1000]


def test_a_bomb_is_small_on_the_wire(server: Server) -> None:
    url = server.add("https://a.example.org/b", bomb(1))
    budget = Budget(Limits(5, 5, 30, 1, 1 << 40), threading.Event())
    names, trusted = Names(server), server.authority.trusted()
    with (
        closing(Connections(names, trusted, Proxies())) as connections,
        connections.send(url, {}, budget) as answer,
    ):
        packed = b"".join(answer.body)
    assert len(packed) < 5 << 20
    assert len(zlib.decompressobj(31).decompress(packed[: len(packed) // 16])) > 50 << 20
