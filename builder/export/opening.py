"""Opening an obi store for an export: its runs, and what their logs come to."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from builder.obi.replay import fold
from builder.obi.run import Committed, history
from functions.database import engine
from functions.snapshot.errors import NothingPublished
from functions.snapshot.store import Writer

Opened = tuple[Sequence[Committed], engine.Connection]


@contextmanager
def open_obi(store: Writer, memory_megabytes: int, threads: int) -> Iterator[Opened]:
    """Give the committed runs, ascending, and a connection with the tables of their fold.

    What does not fit into memory lies in a folder that goes with the context. Raises
    NothingPublished where there is no run, DamagedStore and StoreError.
    """
    runs = history(store)
    if not runs:
        raise NothingPublished(
            f"{store.address}: no templates or files are in this store yet: run `sheaf ingest`"
        )
    with tempfile.TemporaryDirectory(prefix="sheaf-export-") as folder:
        made = engine.connect(
            threads=threads, memory_megabytes=memory_megabytes, scratch=Path(folder)
        )
        with closing(made) as connection:
            fold(connection, store, runs, Path(folder))
            yield runs, connection
