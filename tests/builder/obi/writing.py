"""What a child process writes of an obi store until it is killed."""

import tempfile
from pathlib import Path

from builder.obi.content import FILE, Redirect, Row
from builder.obi.run import Committed, ObiRuntime, Purpose, claim
from builder.store.folder import FolderStore
from tests.builder.conftest import Clock
from tests.builder.obi.holding import HANDLE, LONG, URL, Store
from tests.builder.obi.logs import commit, describe, put
from tests.interleaving.killer import Killer

PURPOSE = Purpose("ingest", "RePEc", "RePEc, in the midst of which it ends")


def written(store: Store, runtime: ObiRuntime) -> Committed:
    """Write a run with objects of every sort; the same again is the same run, or the next one."""
    run = claim(store, PURPOSE, runtime)
    run.turn()
    templates = {f"{HANDLE}-{n}": f"Template {n}\n".encode() for n in range(2)}
    rows: list[Row] = []
    for handle, data in templates.items():
        rows.append(describe(put(run, handle, data), data, handle))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "large").write_bytes(b"large" * 1000)
        rows.append(describe(run.put_file(URL, Path(folder) / "large"), b"large" * 1000, URL, FILE))
    rows.append(describe(put(run, LONG, b"long"), b"long", LONG, FILE))
    told = run.redirect(URL + "?", URL, 301, None)
    rows.append(Redirect(origin=URL + "?", target=URL, status=301, key=told))
    return commit(run, rows, ((handle, [], {"handle": handle}) for handle in templates))


def work(root: Path, start: Clock, at: int, counted: Path, every: bool) -> None:
    """Write a run, to be killed at change `at`; else `counted` is given the number of changes."""
    killer = Killer(str(root), at, every, really=True)
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        killer.watch()
        written(FolderStore(root), ObiRuntime(start, start.sleep, lambda text: None))
    counted.write_text(str(killer.count))
