"""Requests that are signed and not made by obstore, to a server that breaks off."""

import socket
import threading
from pathlib import Path

import pytest

from functions.store import signed


@pytest.mark.parametrize(
    ("head", "told"), [(b"503 Slow Down", "status: 503"), (b"200 OK", "kind: Request")]
)
def test_an_answer_that_ends_too_early_is_an_error_of_the_line(
    tmp_path: Path, head: bytes, told: str
) -> None:
    """A refusal too, whose text is only read to tell what it says: what breaks is told the same."""
    path = tmp_path / "file"
    path.write_bytes(b"bytes")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 " + head + b"\r\nContent-Length: 100\r\n\r\n<Err")

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/key?X-Amz-Signature=secret"
        with pytest.raises(OSError, match=told) as error:
            signed.upload(address, path, signed.digest(path), 5)
        thread.join()
    assert "secret" not in str(error.value)
