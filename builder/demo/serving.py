"""The demo's stall: a store and its content, served on this machine by a thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from builder.runtime import Clock
from builder.serve.server import LocalServer
from builder.store.folder import FolderStore
from functions.config.configuration import Configuration
from functions.content import assembly
from functions.oai.handler import Application
from functions.oai.repository_duckdb.repository import DuckRepository


@contextmanager
def served(
    store: FolderStore, settings: Configuration, clock: Clock, port: int
) -> Iterator[tuple[str, threading.Thread]]:
    """Serve the store while the block runs; gives the address and the thread that serves.

    The configuration names the places of archive files by absolute paths. Raises UsageError for a
    port that is taken.
    """
    repository = DuckRepository(store)
    metadata = Application(repository, settings, clock)
    content = assembly.application(repository, store.address, store.root, settings, {}, clock)

    def answer(event: dict[str, Any]) -> dict[str, Any]:
        return (content if content.takes(event) else metadata).unpacked(event)

    server = LocalServer(answer, "127.0.0.1", port, threads=4)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server.url, thread
    finally:
        server.close()
        thread.join()
        repository.close()
