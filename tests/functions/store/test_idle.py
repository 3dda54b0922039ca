"""Connections that were idle: what lies between client and server may have forgotten them."""

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from builder.store.client import S3Client
from functions.snapshot.errors import StoreUnavailable
from functions.snapshot.layout import StoreAddress
from functions.store.client import Client
from functions.store.connection import BucketConnection, ObjectClient
from tests.patience import in_real_time

ANSWER = (
    b'HTTP/1.1 200 OK\r\nETag: "t"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n'
    b"Content-Length: 5\r\n\r\nhello"
)
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": "/nowhere"}


@dataclass
class Forgetful:
    """A server that answers the first request of each connection, and says nothing to others."""

    listener: socket.socket
    connections: list[socket.socket] = field(default_factory=list)

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += connection.recv(65_536)
            connection.sendall(ANSWER)

    def client(self, idle: float, kind: type[Client] | type[S3Client] = Client) -> ObjectClient:
        endpoint = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        connection = BucketConnection(endpoint=endpoint, retry_seconds=0, timeout=1, idle=idle)
        return kind(StoreAddress("bucket"), connection, KEYS)


@pytest.fixture
def forgetful() -> Iterator[Forgetful]:
    server = Forgetful(socket.create_server(("127.0.0.1", 0)))
    thread = threading.Thread(target=server.run)
    thread.start()
    yield server
    server.listener.shutdown(socket.SHUT_RDWR)
    server.listener.close()
    thread.join()
    for connection in server.connections:
        connection.close()


@pytest.mark.parametrize("kind", [Client, S3Client])
@in_real_time
def test_a_connection_that_was_idle_is_not_used_again(
    forgetful: Forgetful, kind: type[Client] | type[S3Client]
) -> None:
    client = forgetful.client(idle=0.2, kind=kind)
    for _ in range(3):
        assert client.get("x")[0] == b"hello"
        time.sleep(0.4)
    assert len(forgetful.connections) == 3


@in_real_time
def test_as_it_would_be_of_no_use(forgetful: Forgetful) -> None:
    """What the one above keeps from happening does happen where connections are kept longer."""
    client = forgetful.client(idle=60)
    assert client.get("x")[0] == b"hello"
    time.sleep(0.4)
    with pytest.raises(StoreUnavailable, match="did not answer in time"):
        client.get("x")
    assert len(forgetful.connections) == 1
