"""What proofs cost: signing a store, its next small publish, and bundles of it.

    python -m bench.cold.proofs [--captures 1000000] [--bundles 50]

Generated captures are published, then signed. Ten captures are published and signed next. Requests
are the reads of objects and ranges that a bucket would get as one GET each. The baseline of signing
is the publish itself, in the same run.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.generate import captures, fill
from builder.intake import intake
from builder.intake.rows import IntakeWriter
from builder.outputs.log.bundle import verify_bundle
from builder.outputs.log.log import sign_snapshots
from builder.outputs.log.prove import Prover
from builder.outputs.log.signer import create_key, open_signer
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.store import engine
from functions.store.catalog import Catalogue

LIMITS = "at most 3 GETs, 300 KB, 100 ms"


class CountingStore(FolderStore):
    """A folder that counts reads of objects and of ranges."""

    gets = 0

    def read(self, key: str) -> bytes:
        self.gets += 1
        return super().read(key)

    def local(
        self, key: str, spans: Sequence[tuple[int, int]] | None = None, size: int | None = None
    ) -> Path:
        self.gets += 1 if spans is None else len(spans)
        return super().local(key, spans, size)


def runtime() -> Runtime:
    return Runtime(lambda: datetime.now(UTC), time.sleep, lambda text: None, {}, 2)


def add(store: FolderStore, count: int) -> None:
    """Put other captures into the intake."""
    with tempfile.TemporaryDirectory() as scratch:
        part = IntakeWriter(Path(scratch), "000000")
        for capture in captures(count, seed=7):
            part.capture(capture, capture.sets)
        part.close()
        source = intake.IntakeSource("more", "more", "", "warc.gz", 0, count, 0, 0, {}, {})
        intake.commit(store, intake.IntakeRun("more", (source,)), Path(scratch))


def identifiers(store: FolderStore, count: int) -> list[str]:
    """Return some identifiers of the newest snapshot, and as many that it does not have."""
    catalogue = Catalogue(store)
    newest = catalogue.pointer().newest()
    assert newest
    files = catalogue.files(catalogue.manifest(newest.snapshot), "records")
    paths = [str(store.local(file.key)) for file in files]
    sql = f"SELECT identifier FROM {engine.table('$files')} ORDER BY hash(identifier) LIMIT $count"
    with engine.connect() as connection:
        found = connection.execute(sql, {"files": paths, "count": count}).fetchall()
    return [name for (name,) in found] + [f"{name}x" for (name,) in found]


def measure(store: CountingStore, count: int, key: object) -> None:
    """Make and check bundles; print the table of their costs."""
    costs = []
    for name in identifiers(store, count // 2):
        store.gets = 0
        prover = Prover(store)
        began = time.perf_counter()
        bundle = prover.prove(name)
        made = time.perf_counter()
        data = bundle.to_json()
        cold, store.gets = store.gets, 0
        started = time.perf_counter()
        verify_bundle(type(bundle).parse(data), [key])  # type: ignore[list-item]
        checked = time.perf_counter()
        prover.prove(name)
        prover.close()
        costs.append(
            (cold, store.gets, len(data) / 1e3, (made - began) * 1e3, (checked - started) * 1e3)
        )
    names = ("GETs, first", "GETs, later", "KB", "ms to make", "ms to check")
    print(f"\n{len(costs)} bundles ({LIMITS}):\n\n| | median | most |\n|---|---|---|")
    for number, title in enumerate(names):
        values = [cost[number] for cost in costs]
        print(f"| {title} | {statistics.median(values):.1f} | {max(values):.1f} |")


def run(folder: Path, count: int, bundles: int) -> None:
    """Publish, sign, and measure."""
    store = CountingStore(folder / "store")
    (folder / "parts").mkdir()
    fill(store, count, folder / "parts")
    text = '[repository]\nnamespace = "bench.example.org"\n'
    key = create_key(folder / "key", "bench.example.org/log")
    settings = configuration.parse(text, {"SHEAF_PUBLISH_TABLES": "false"})
    signed = settings.having("sign.key", str(folder / "key"))
    signer = open_signer(signed)
    assert signer
    for what in (f"{count:,} captures", "10 more"):
        began = time.perf_counter()
        publish(store, settings, runtime())
        published = time.perf_counter()
        sign_snapshots(store, signer, runtime())
        done = time.perf_counter()
        sizes = sum(p.stat().st_size for p in (folder / "store" / "log").rglob("*") if p.is_file())
        print(
            f"{what}: published in {published - began:.1f} s, signed in {done - published:.1f} s; "
            f"log/ has {sizes / 1e3:,.0f} KB"
        )
        measure(store, bundles, key)
        add(store, 10)


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--bundles", type=int, default=50)
    parser.add_argument("--folder", type=Path, help="where to work")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        run(Path(folder), arguments.captures, arguments.bundles)


if __name__ == "__main__":
    main()
