"""A whole harvest through `sheaf serve`, beside PyPI's `oaipmh` under gunicorn, one worker each.

    python -m bench.harvest [--captures 10000000] [--baseline 1000000] [--pages 0] [--runs 5]
        [--store FOLDER]

Generated captures are published (or a FOLDER with a store is taken) and served by the command
itself. A client in a process of its own asks for 1,000 records a page: the whole list or, with
--pages, so many pages from each of five depths. The baseline has the first records of the same
store in SQLite (see bench.baseline). It has no gzip; its pages are plain in both comparisons. All
that is compared is measured in turn, and medians of the runs are shown; CPU is that of the server.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from oaipmh.server import encodeResumptionToken

from bench import baseline
from bench.client import follow
from bench.generate import fill
from bench.server import CONFIGURATION, FIRST, NAMESPACE, Server, gunicorn, sheaf
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.oai.token import Token
from functions.reading.duck_repository import DuckRepository
from functions.reading.repository import PublishedRecord, RecordSelection
from functions.snapshot.manifest import Manifest, Span

_PAGE = 1000
_RARE = "mime:model:vrml"
_DEPTHS = ("first", "a quarter in", "half in", "three quarters in", "last")


def published(folder: Path, count: int, *, has_sets: bool = True) -> Path:
    store = FolderStore(folder / "store")
    (folder / "run").mkdir()
    fill(store, count, folder / "run", has_sets=has_sets)
    runtime = Runtime(lambda: datetime.now(UTC), time.sleep, lambda text: None, {})
    publish(store, configuration.parse(CONFIGURATION, {}), runtime)
    return folder / "store"


def rows(repository: DuckRepository, manifest: Manifest, count: int) -> Iterator[tuple[Any, ...]]:
    """Yield the first captures of a store as the baseline has them."""
    first, left = 1, count
    while left > 0:
        span = Span(first, manifest.last_position)
        page = repository.page(
            manifest, RecordSelection(("capture",), span), min(left, 4000), headers=False
        )
        if not page:
            return
        yield from (_row(record) for record in page)
        first, left = page[-1].position + 1, left - len(page)


def _row(record: PublishedRecord) -> tuple[Any, ...]:
    header = (
        record.identifier,
        record.datestamp.replace(tzinfo=None).isoformat(),
        " ".join(record.sets),
    )
    return (*header, *(record.fields[name] for name in baseline.COLUMNS[len(header) :]))


def token(manifest: Manifest, size: int, cursor: int) -> str:
    """Return the query of the page that begins behind so many records."""
    if not cursor:
        return FIRST
    text = Token(
        verb="ListRecords",
        prefix="oai_dc",
        snapshot=manifest.snapshot,
        position=cursor + 1,
        cursor=cursor,
        size=size,
        namespace=NAMESPACE,
        store=manifest.store,
    ).to_text()
    return f"verb=ListRecords&resumptionToken={quote(text)}"


def baseline_token(cursor: int) -> str:
    if not cursor:
        return FIRST
    text = encodeResumptionToken({"metadataPrefix": "oai_dc"}, cursor)
    return f"verb=ListRecords&resumptionToken={quote(text)}"


def depths(size: int, pages: int) -> list[int]:
    """Return the cursors at which walks begin, the last of which ends with the list."""
    last = max(0, -(-size // _PAGE) - pages)
    return [last * part // 4 * _PAGE for part in range(5)]


@dataclass
class Walks:
    """What the walks of one kind took, run by run: records a second, CPU, and pages by depth."""

    rates: list[float]
    cpus: list[float]
    times: list[list[float]]

    def line(self, name: str, against: "Walks | None" = None) -> str:
        rate, cpu = statistics.median(self.rates), statistics.median(self.cpus)
        ratio = less = ""
        if against is not None:
            ratio = f"{rate / statistics.median(against.rates):.2f}"
            less = f"{statistics.median(against.cpus) / cpu:.2f}"
        first, last = (statistics.median(self.times[n]) for n in (0, -1))
        return (
            f"| {name} | {rate:,.0f} | {ratio} | {cpu * 1000:.1f} | {less} "
            f"| {first:.1f} | {last:.1f} | {last / first:.2f} |"
        )


def harvest(
    server: Server, start: Callable[[int], str], size: int, pages: int, *, compressed: bool
) -> tuple[float, float, list[list[float]]]:
    """Walk once: return records a second, CPU seconds for 1,000 records, and times by depth."""
    if not pages:
        told, cpu = server.walk(FIRST, 0, compressed=compressed)
        few = min(100, max(1, len(told["times"]) // 5))
        parts = [told["times"][:few], told["times"][-few:]]
        assert told["records"] == size, (told["records"], size)
        return told["records"] / told["seconds"], cpu / told["records"] * 1000, parts
    records, seconds, total, times = 0, 0.0, 0.0, []
    for cursor in depths(size, pages):
        told, cpu = server.walk(start(cursor), pages, compressed=compressed)
        records, seconds, total = records + told["records"], seconds + told["seconds"], total + cpu
        times.append(told["times"])
    return records / seconds, total / records * 1000, times


def compare(
    ours: Server,
    theirs: tuple[Server, Server],
    manifest: Manifest,
    sizes: tuple[int, int],
    pages: int,
    runs: int,
) -> None:
    size, small = sizes
    found = {name: Walks([], [], [[] for _ in range(5 if pages else 2)]) for name in range(4)}
    asked: list[tuple[Server, Callable[[int], str], int, bool]] = [
        (theirs[0], baseline_token, small, False),
        (theirs[1], baseline_token, small, False),
        (ours, lambda cursor: token(manifest, size, cursor), size, False),
        (ours, lambda cursor: token(manifest, size, cursor), size, True),
    ]
    for _ in range(runs):
        for number, (server, start, count, compressed) in enumerate(asked):
            rate, cpu, times = harvest(server, start, count, pages, compressed=compressed)
            found[number].rates.append(rate)
            found[number].cpus.append(cpu)
            for kept, new in zip(found[number].times, times, strict=True):
                kept += new
    print(
        "| harvest | records/s | ratio | server's CPU, ms per 1,000 | ratio | first pages, ms "
        "| last pages, ms | last to first |\n|---|---|---|---|---|---|---|---|"
    )
    print(found[0].line(f"oaipmh, gunicorn, {small:,} in SQLite, by OFFSET, plain"))
    print(found[1].line("the same, by a key without gaps, plain", found[0]))
    print(found[2].line(f"sheaf serve, {size:,}, plain", found[0]))
    print(found[3].line(f"sheaf serve, {size:,}, gzip (baseline plain)", found[0]))
    print(f"\npeak memory of sheaf serve: {ours.peak()} MB")
    if pages:
        shown = [f"{statistics.median(times):.1f}" for times in found[2].times]
        print(
            "\npages by depth, plain, ms: "
            + ", ".join(f"{name} {text}" for name, text in zip(_DEPTHS, shown, strict=True))
        )


def singles(ours: Server, manifest: Manifest, size: int, runs: int) -> None:
    """Measure the page of the rare set beside plain ones, then GetRecord."""
    draw = random.Random(7)
    for compressed in (False, True):
        plain: list[float] = []
        rare: list[float] = []
        records = 0
        for _ in range(4 * runs):
            cursor = draw.randrange(size // _PAGE) * _PAGE
            for query, times in (
                (token(manifest, size, cursor), plain),
                (f"{FIRST}&set={_RARE}", rare),
            ):
                told = follow(ours.url, query, 1, compressed=compressed)
                times += told["times"]  # type: ignore[arg-type]
                records = told["records"]  # type: ignore[assignment]
        one, other = statistics.median(plain), statistics.median(rare)
        print(
            f"\n{'gzip' if compressed else 'plain'}: a page anywhere {one:.1f} ms; {records} "
            f"records of {_RARE} {other:.1f} ms, {other / one:.2f} times as long"
        )


def records(ours: Server, names: list[str]) -> None:
    """Measure GetRecord, of each item once and then once more."""
    for compressed in (False, True):
        for which in ("first", "again"):
            times: list[float] = []
            before = ours.cpu()
            for name in names:
                query = f"verb=GetRecord&metadataPrefix=oai_dc&identifier={quote(name)}"
                times += follow(ours.url, query, 1, compressed=compressed)["times"]  # type: ignore[arg-type]
            cpu = (ours.cpu() - before) / len(names) * 1000
            p95 = statistics.quantiles(times, n=20)[-1]
            which_of = f"GetRecord, {'gzip' if compressed else 'plain'}, {which}"
            middle = statistics.median(times)
            print(f"{which_of}: median {middle:.1f} ms, p95 {p95:.1f} ms, CPU {cpu:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, default=10_000_000)
    parser.add_argument("--baseline", type=int, default=1_000_000)
    parser.add_argument("--pages", type=int, default=0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--store", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run(Path(name), arguments)


def run(folder: Path, arguments: argparse.Namespace) -> None:
    store = arguments.store or published(folder, arguments.captures)
    repository = DuckRepository(FolderStore(store))
    newest = repository.pointer().newest()
    assert newest is not None
    manifest = repository.manifest(newest.snapshot)
    size = manifest.kinds()["capture"]
    small = min(size, arguments.baseline)
    baseline.fill(folder / "baseline.sqlite", rows(repository, manifest, small))
    draw = random.Random(5)
    names = [
        record.identifier
        for place in sorted(draw.sample(range(1, manifest.last_position + 1), min(size, 200)))
        for record in repository.page(
            manifest, RecordSelection(("capture",), Span(place, place)), 1, headers=True
        )
    ]
    draw.shuffle(names)
    repository.close()
    database = folder / "baseline.sqlite"
    with (
        sheaf(store, folder) as ours,
        gunicorn(database, "offset") as one,
        gunicorn(database, "key") as other,
    ):
        records(ours, names)
        singles(ours, manifest, size, arguments.runs)
        print()
        compare(ours, (one, other), manifest, (size, small), arguments.pages, arguments.runs)


if __name__ == "__main__":
    main()
