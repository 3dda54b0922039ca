"""What a page costs at the beginning and at the end of a list, and where its time goes.

    python -m bench.pages [--captures 1000000] [--page 1000] [--runs 15]

A snapshot of generated captures is published and served over HTTP on this machine. The baseline,
in the same run, is how such lists are commonly paged: SQLite with LIMIT and OFFSET, the same rows,
the query alone. Medians of the runs; the pages are asked for in turn, so that a slow moment of
the machine strikes all of them.
"""

import argparse
import http.client
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from wsgiref.simple_server import make_server

from bench.generate import captures, fill
from builder.intake.captures import Capture
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.http import wsgi
from functions.http.http_message import compress
from functions.oai.application import Application
from functions.oai.render.render import Renderer
from functions.oai.token import Token
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import schema
from functions.store.files import Files

_NAMESPACE = "bench.example.org"
FIRST = "verb=ListRecords&metadataPrefix=oai_dc"


@dataclass
class Timer:
    """Adds up the seconds that wrapped calls take."""

    seconds: float = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += time.perf_counter() - began

        return timed

    def taken(self) -> float:
        seconds, self.seconds = self.seconds, 0.0
        return seconds


@dataclass
class Sample:
    """Milliseconds of one request: in all, in DuckDB, in rendering, in the handler."""

    total: float
    query: float
    render: float
    inside: float


def ask(connection: http.client.HTTPConnection, query: str) -> bytes:
    connection.request("GET", f"/oai?{query}")
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, answer.status
    return body


def requests(snapshot: int, store: str, size: int, page: int) -> Iterator[tuple[str, str]]:
    """Yield names and queries of pages at several depths of the whole list."""

    def at(cursor: int) -> str:
        token = Token(
            verb="ListRecords",
            prefix="oai_dc",
            snapshot=snapshot,
            position=cursor + 1,
            cursor=cursor,
            size=size,
            namespace=_NAMESPACE,
            store=store,
        )
        return f"verb=ListRecords&resumptionToken={quote(token.to_text())}"

    yield "first page", FIRST
    yield "second page", at(page)
    yield "in the middle", at(size // 2 // page * page)
    yield "last page", at((size - 1) // page * page)
    for spec, text in (
        ("mime:text:html", "dense set"),
        ("mime:image:png", "scattered set, 6 %"),
        ("mime:model:vrml", "rare scattered set, 1 in 10,000"),
        ("domain:cz:h7", "a domain"),
    ):
        yield f"{text}: first page", f"{FIRST}&set={spec}"


def measure(base: str, named: list[tuple[str, str]], runs: int, timers: tuple[Timer, ...]):  # type: ignore[no-untyped-def]
    connection = http.client.HTTPConnection(base.removeprefix("http://"))
    samples: dict[str, list[Sample]] = {name: [] for name, _ in named}
    sizes = {}
    for run in range(runs + 1):
        for name, query in named:
            for timer in timers:
                timer.taken()
            began = time.perf_counter()
            body = ask(connection, query)
            total = time.perf_counter() - began
            if run:  # the first round warms up
                parts = [timer.taken() * 1000 for timer in timers]
                samples[name].append(Sample(total * 1000, *parts))
            sizes[name] = (body.count(b"<record>"), len(body), len(compress(body)))
    connection.close()
    return samples, sizes


class Offset:
    """The baseline: the same records in SQLite, paged by LIMIT and OFFSET."""

    def __init__(self, path: Path, count: int) -> None:
        self._database = sqlite3.connect(path)
        # What a publish adds, of revisits, no capture has by itself.
        names = [c.name for c in schema.CAPTURE if hasattr(Capture, c.name)]
        self._database.execute(f"CREATE TABLE records (identifier, {', '.join(names)})")
        marks = ", ".join("?" * (len(names) + 1))
        self._database.executemany(
            f"INSERT INTO records VALUES ({marks})",
            ((c.identity, *(_plain(getattr(c, name)) for name in names)) for c in captures(count)),
        )
        self._database.execute("CREATE INDEX by_key ON records (url_surtkey, identifier)")
        self._database.commit()

    def page(self, offset: int, limit: int) -> float:
        """Return the milliseconds of one page's query."""
        began = time.perf_counter()
        rows = self._database.execute(
            "SELECT * FROM records ORDER BY url_surtkey, identifier LIMIT ? OFFSET ?",
            (limit, offset),
        ).fetchall()
        assert rows
        return (time.perf_counter() - began) * 1000

    def close(self) -> None:
        self._database.close()


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--page", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run(Path(name), arguments.captures, arguments.page, arguments.runs)


def run(folder: Path, count: int, page: int, runs: int) -> None:
    store = FolderStore(folder / "store")
    (folder / "run").mkdir()
    fill(store, count, folder / "run")
    text = f"[repository]\nnamespace = '{_NAMESPACE}'\n[publish]\nlead = 1\n[pages]\n"
    settings = configuration.parse(f"{text}records = {page}", {})
    began = time.perf_counter()
    runtime = Runtime(lambda: datetime.now(UTC), time.sleep, lambda text: None, {})
    manifest = publish(store, settings, runtime).manifest
    assert manifest is not None
    bytes_ = sum(leaf.bytes for leaves in manifest.tables.values() for leaf in leaves)
    print(
        f"{count:,} generated captures, {manifest.sets:,} sets: published in "
        f"{time.perf_counter() - began:.1f} s, {bytes_ / count:.0f} bytes of Parquet a capture\n"
    )
    query, render, inside = Timer(), Timer(), Timer()
    Files.rows = query.around(Files.rows)  # type: ignore[method-assign]
    Renderer._render_part = render.around(Renderer._render_part)  # type: ignore[method-assign]
    # Nothing is kept of rows: each page is one that nobody asked for lately.
    repository = DuckRepository(store, capacity=0)
    application = Application(repository, settings, lambda: datetime.now(UTC))
    server = make_server("127.0.0.1", 0, wsgi.make_application(inside.around(application.answer)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        named = list(requests(manifest.snapshot, manifest.store, count, page))
        url = f"http://127.0.0.1:{server.server_port}"
        samples, sizes = measure(url, named, runs, (query, render, inside))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        repository.close()
    table(named, samples, sizes)
    baseline(folder, count, page, runs)


def table(named, samples, sizes) -> None:  # type: ignore[no-untyped-def]
    print(
        f"{'page':40}{'ms':>7}{'to first':>10}{'DuckDB':>9}{'render':>9}{'rest':>7}{'HTTP':>7}"
        f"{'records':>9}{'KB':>7}{'gzip':>7}"
    )
    first = statistics.median(s.total for s in samples[named[0][0]])
    for name, _ in named:
        total = statistics.median(s.total for s in samples[name])

        def share(of: Callable[[Sample], float], name: str = name) -> str:
            return f"{statistics.median(of(s) / s.total for s in samples[name]):.0%}"

        records, size, packed = sizes[name]
        print(
            f"{name:40}{total:7.1f}{total / first:10.2f}"
            f"{share(lambda s: s.query):>9}{share(lambda s: s.render):>9}"
            f"{share(lambda s: s.inside - s.query - s.render):>7}"
            f"{share(lambda s: s.total - s.inside):>7}{records:9,}{size / 1000:7.0f}"
            f"{packed / 1000:7.0f}"
        )


def baseline(folder: Path, count: int, page: int, runs: int) -> None:
    offset = Offset(folder / "baseline.sqlite", count)
    print("\nbaseline: SQLite, LIMIT and OFFSET over the same records, the query alone")
    times: dict[int, list[float]] = {}
    for _ in range(runs):
        for start in (0, count // 2 // page * page, (count - 1) // page * page):
            times.setdefault(start, []).append(offset.page(start, page))
    first = statistics.median(times[0])
    for start, taken in times.items():
        middle = statistics.median(taken)
        print(f"{f'  at record {start:,}':40}{middle:7.1f}{middle / first:10.2f}")
    offset.close()


if __name__ == "__main__":
    main()
