"""Cache of a bucket shared by all workers, in the process that accepts connections.

A worker requests files over one socket for each thread, and opens them itself.
"""

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from functions.snapshot.errors import SheafError, StoreError
from functions.store import s3_request
from functions.store.store_reader import ObjectCache


class CacheServer:
    """Serves a cache of this process from daemon threads."""

    def __init__(self, cache: ObjectCache) -> None:
        self._calls: dict[str, Callable[..., Any]] = {"local": cache.local, "parts": cache.parts}

    def lend(self, door: socket.socket) -> None:
        """Serve the process at the other end of `door`, until that end is closed."""
        threading.Thread(target=self._receive, args=(door,), daemon=True).start()

    def _receive(self, door: socket.socket) -> None:
        with door:
            while True:
                data, handles, *_ = socket.recv_fds(door, 1, 1)
                if not data:
                    return
                for handle in handles:
                    connection = Connection(handle)
                    threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: "Connection[Any, Any]") -> None:
        with connection, suppress(EOFError, OSError):  # the other thread or process has ended
            while True:
                name, arguments = connection.recv()
                result, failure = None, None
                with s3_request.count_requests() as cost:
                    try:
                        result = self._calls[name](*arguments)
                    except SheafError as error:
                        failure = error
                connection.send((result, failure, cost.requests, cost.bytes))


class SharedCache:
    """Implements ObjectCache by the cache of another process, connected by `door`."""

    def __init__(self, door: socket.socket) -> None:
        self._door = door
        self._threads = threading.local()

    def local(self, key: str, spans: Sequence[tuple[int, int]] | None) -> Path:
        """Return a file of an object (see ObjectCache.local)."""
        path: Path = self._ask("local", key, spans)
        return path

    def parts(self, key: str, size: int, spans: Sequence[tuple[int, int]]) -> list[Path]:
        """Return files of parts of an object (see ObjectCache.parts)."""
        paths: list[Path] = self._ask("parts", key, size, spans)
        return paths

    def close(self) -> None:
        """Close the connections."""
        self._door.close()

    def _ask(self, name: str, *arguments: object) -> Any:
        try:
            connection = self._connection()
            connection.send((name, arguments))
            result, failure, requests, size = connection.recv()
        except (EOFError, OSError) as error:
            self._threads.__dict__.clear()
            raise StoreError("the cache process of the bucket does not respond") from error
        s3_request.add_to_tally(requests, size)
        if failure is not None:
            raise failure
        return result

    def _connection(self) -> "Connection[Any, Any]":
        """Return this thread's connection to the cache."""
        if not hasattr(self._threads, "connection"):
            ours, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self._door, [b"c"], [theirs.fileno()])
            self._threads.connection = Connection(ours.detach())
        connection: Connection[Any, Any] = self._threads.connection
        return connection
