"""The table of words: its bytes, its cost of a publish, and the requests of searches.

    python -m bench.cold.search --folder DIR [--captures 100000 1000000] [--runs 3] [--keep]

Baseline: the same publish with search.words = false. Both take turns, each in a process of its own;
figures are medians of the runs. Searches are made by readers with empty caches, in a bucket that
answers at once (bench.cold.latency). GETs include those of the pointer and the manifest.
"""

import argparse
import multiprocessing
import shutil
import statistics
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from bench.cold.latency import BUCKET, served
from bench.generate import fill
from bench.publish import Cost, measured
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.reading.duck_repository import DuckRepository
from functions.search.query import parse
from functions.search.search import WordSearch
from functions.snapshot.layout import StoreAddress
from functions.store.client import Client
from functions.store.connection import BucketConnection
from functions.store.store_reader import BucketReader

_SETTINGS = '[repository]\nnamespace = "bench.example.org"\n[publish]\nmemory = 1536\n'
_KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}
_THREADS = 2
_LIMIT = 20


def _queries(count: int) -> dict[str, str]:
    number, other = count // 3, count // 3 * 2
    return {
        "one rare word": f"{number}",
        "two words": "zpravy vrml",
        "two common words": "zpravy pdf",
        "a phrase": '"knihovna pocasi mapa"',
        "a beginning": "kniho*",
        "a rare beginning": f"{other}"[:-1] + "*",
        "a very common word": "www",
        "a word and all but a word": "sport -html",
        "nothing": "nonesuch",
    }


def _published(root: Path, scratch: Path, words: str) -> Cost:
    """Publish the intake of the store; the cost's bytes are those of the tables."""

    def work() -> Mapping[str, int]:
        settings = configuration.parse(f"{_SETTINGS}[search]\nwords = {words}\n", {})
        waited: list[float] = []  # the instant of effect need not be waited for here
        runtime = Runtime(lambda: datetime.now(UTC), waited.append, lambda text: None, {}, _THREADS)
        manifest = publish(FolderStore(root), settings, runtime).manifest
        assert manifest is not None
        tables = manifest.tables.items()
        return {name: sum(leaf.bytes for leaf in leaves) for name, leaves in tables}

    return measured(scratch, work)


def publishes(folder: Path, runs: int) -> dict[str, list[Cost]]:
    """Publish copies of the store without and with words, in turn; the last one stays."""
    costs: dict[str, list[Cost]] = {"false": [], "true": []}
    for _ in range(runs):
        for words, found in costs.items():
            shutil.rmtree(folder / "store", ignore_errors=True)
            shutil.copytree(folder / "intake", folder / "store")
            (folder / "scratch").mkdir()
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                arguments = (folder / "store", folder / "scratch", words)
                found.append(pool.apply(_published, arguments))
            shutil.rmtree(folder / "scratch")
    return costs


def searches(root: Path, count: int) -> Iterator[str]:
    """Yield a row for each search: GETs, KB, milliseconds of wall and CPU, hits."""
    with served(root, 0, 1e6) as (endpoint, counts):
        for name, text in _queries(count).items():
            client = Client(StoreAddress(BUCKET, ""), BucketConnection(endpoint=endpoint), _KEYS)
            reader = BucketReader(StoreAddress(BUCKET, ""), client, 64 << 20)
            repository = DuckRepository(reader)
            search = WordSearch(repository.catalogue, repository.files)
            counts.taken()
            began, cpu = time.perf_counter(), time.process_time()
            newest = repository.pointer().newest()
            assert newest is not None
            manifest = repository.manifest(newest.snapshot)
            page = search.find(manifest, parse(text), None, _LIMIT)
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
            found = counts.taken()
            repository.close()
            reader.close()
            more = "" if page.after is None else " and more"
            yield (
                f"| {name} | {found['requests']} | {found['bytes'] / 1000:,.0f} "
                f"| {1000 * seconds:,.0f} | {1000 * cpu:,.0f} | {len(page.hits)}{more} |"
            )


def run(folder: Path, count: int, runs: int) -> None:
    """Generate, publish in turn, search, and print rows."""
    (folder / "parts").mkdir(parents=True)
    fill(FolderStore(folder / "intake"), count, folder / "parts", revisits=10)
    shutil.rmtree(folder / "parts")
    print("| Captures | words | seconds | CPU s | peak MB | scratch MB | bytes a capture |")
    print("|---|---|---|---|---|---|---|")
    for words, costs in publishes(folder, runs).items():
        seconds, cpu, memory, scratch, size = (
            statistics.median(column)
            for column in zip(
                *((c.seconds, c.cpu, c.memory, c.scratch, c.bytes.get("words", 0)) for c in costs),
                strict=True,
            )
        )
        print(
            f"| {count:,} | {words} | {seconds:.2f} | {cpu:.2f} | {memory:,.0f} | {scratch:,.0f} "
            f"| {size / count:.2f} |",
            flush=True,
        )
    print("\n| Search | GETs | KB | ms | CPU ms | hits |\n|---|---|---|---|---|---|")
    for row in searches(folder / "store", count):
        print(row, flush=True)
    print(flush=True)


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--captures", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, required=True, help="about 1 GB a million captures")
    parser.add_argument("--keep", action="store_true", help="keep the stores")
    arguments = parser.parse_args()
    for count in arguments.captures:
        folder = arguments.folder / f"search-{count}"
        run(folder, count, arguments.runs)
        if not arguments.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
