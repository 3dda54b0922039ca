"""One very large store: its first publish, a change of 1 %, and its requests to a bucket.

    python -m bench.cold.scale --folder DIR [--captures 10000000] [--memory 1536] [--keep]

A tenth of the generated captures are revisits. Each publish is a process of its own, whose peak
memory the system measures. Scratch files are those of DuckDB and Sheaf. The store is then read as a
bucket that takes 20 ms a request (bench.cold.latency), each time by a reader with empty caches.
Baseline: the same with a tenth of the captures, so the table shows which costs are linear.
"""

import argparse
import multiprocessing
import shutil
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import add
from pathlib import Path
from urllib.parse import quote

from bench.cold.latency import BUCKET, served
from bench.generate import fill
from bench.publish import Cost, measured
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.http.http_message import Call
from functions.oai.application import Application
from functions.oai.token import Token
from functions.reading.duck_repository import DuckRepository
from functions.site.assembly import site_over
from functions.snapshot.layout import StoreAddress
from functions.snapshot.manifest import Manifest
from functions.store import engine
from functions.store.catalog import Catalogue
from functions.store.client import Client
from functions.store.connection import BucketConnection
from functions.store.store_reader import BucketReader

_NAMESPACE = "bench.example.org"
_SETTINGS = f'[repository]\nnamespace = "{_NAMESPACE}"\n[publish]\nmemory = {{}}\n'
_KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}
_THREADS = 2
_LATENCY = 0.02
"""Seconds of each request to the bucket."""


def published(root: Path, scratch: Path, memory: int) -> Cost:
    """Publish the intake of the store; the cost's bytes are those of the tables."""

    def work() -> Mapping[str, int]:
        settings = configuration.parse(_SETTINGS.format(memory), {})
        waited: list[float] = []  # the instant of effect need not be waited for here
        runtime = Runtime(lambda: datetime.now(UTC), waited.append, lambda text: None, {}, _THREADS)
        manifest = publish(FolderStore(root), settings, runtime).manifest
        assert manifest is not None
        return {name: sum(leaf.bytes for leaf in found) for name, found in manifest.tables.items()}

    return measured(scratch, work)


def once(root: Path, folder: Path, memory: int) -> Cost:
    """Publish in a process of its own."""
    scratch = folder / "scratch"
    scratch.mkdir()
    try:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(published, (root, scratch, memory))
    finally:
        shutil.rmtree(scratch)


def queries(store: FolderStore, manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    """Yield name, path and query of lists at three depths, of a record, and of pages for people."""
    size = manifest.last_position

    def at(position: int) -> str:
        token = Token(
            verb="ListRecords",
            prefix="oai_dc",
            snapshot=manifest.snapshot,
            position=position,
            cursor=position - 1,
            size=size,
            namespace=_NAMESPACE,
            store=manifest.store,
        )
        return f"verb=ListRecords&resumptionToken={quote(token.to_text())}"

    yield "first page", "/oai", "verb=ListRecords&metadataPrefix=oai_dc"
    yield "middle page", "/oai", at(size // 2)
    yield "last page", "/oai", at(max(1, size - 999))
    file = next(iter(Catalogue(store).files(manifest, "records")))
    sql = f"SELECT identifier, url, title FROM {engine.table('$file')} WHERE title != '' LIMIT 1"
    ((name, url, title),) = (
        engine.connect().execute(sql, {"file": str(store.local(file.key))}).fetchall()
    )
    yield "GetRecord", "/oai", f"verb=GetRecord&metadataPrefix=oai_dc&identifier={name}"
    yield "overview", "/", ""
    yield "a record's page", "/record", f"id={name}"
    yield "a URL's calendar", "/captures", f"match=exact&url={quote(url)}"
    yield "sets at the top", "/sets", ""
    yield "publishes", "/publishes", ""
    words = sorted({*title.split()}, key=len)[-2:]
    yield "search of two words", "/search", f"q={quote(' '.join(words))}"


def requests(root: Path) -> Iterator[str]:
    """Yield a row for each request: GETs, their KB, and milliseconds, of them of the processor."""
    store = FolderStore(root)
    entry = Catalogue(store).pointer().newest()
    assert entry is not None
    settings = configuration.parse(_SETTINGS.format(1024), {})
    with served(root, _LATENCY, 1e6) as (endpoint, counts):
        for name, path, query in queries(store, Catalogue(store).manifest(entry.snapshot)):
            address = StoreAddress(BUCKET, "")
            client = Client(address, BucketConnection(endpoint=endpoint), _KEYS)
            reader = BucketReader(address, client, 64 << 20)
            repository = DuckRepository(reader)
            # The publishes did not wait until their snapshot is in effect.
            now = partial(add, entry.effective, timedelta(seconds=1))
            application = Application(repository, settings, now, pages=site_over(repository))
            counts.taken()
            began, used = time.perf_counter(), time.process_time()
            response = application.answer(Call("GET", "http://b.cz", path, query))
            seconds, cpu = time.perf_counter() - began, time.process_time() - used
            assert response.status == 200, response.body
            found = counts.taken()
            repository.close()
            reader.close()
            kilobytes = found["bytes"] / 1000
            yield (
                f"| {name} | {found['requests']} | {kilobytes:,.0f} | {1000 * seconds:,.0f} "
                f"| {1000 * cpu:,.0f} |"
            )


def run(folder: Path, count: int, memory: int) -> None:
    """Generate, publish, change, ask, and print rows."""
    root = folder / "store"
    for name, every in (("first publish", 1), ("1 % changed", 100)):
        (folder / "parts").mkdir(parents=True)
        began = time.perf_counter()
        fill(FolderStore(root), count, folder / "parts", revisits=10, every=every)
        shutil.rmtree(folder / "parts")
        generated = time.perf_counter() - began
        cost = once(root, folder, memory)
        print(
            f"| {count:,}, {name} | {cost.seconds:,.0f} | {1e6 * cost.seconds * every / count:.2f} "
            f"| {1e6 * cost.cpu * every / count:.2f} | {cost.memory:,.0f} | {cost.scratch:,.0f} "
            f"| {sum(cost.bytes.values()) / count:.1f} | ({generated:,.0f} s to generate)",
            flush=True,
        )
    print("\n| Request | GETs | KB | ms | CPU ms |\n|---|---|---|---|---|")
    for row in requests(root):
        print(row, flush=True)
    print(flush=True)


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--captures", type=int, default=10_000_000)
    parser.add_argument("--memory", type=int, default=1536, help="publish.memory, megabytes")
    parser.add_argument("--folder", type=Path, required=True, help="about 1 GB a million captures")
    parser.add_argument("--keep", action="store_true", help="keep the larger store")
    arguments = parser.parse_args()
    print(
        "| | seconds | µs a capture | CPU µs | peak MB | scratch MB | bytes a capture |\n"
        "|---|---|---|---|---|---|---|"
    )
    for count in (arguments.captures // 10, arguments.captures):
        folder = arguments.folder / f"scale-{count}"
        run(folder, count, arguments.memory)
        if not arguments.keep or count < arguments.captures:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
