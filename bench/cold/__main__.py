"""The function's cold start, its pages, and the requests to S3 of each kind of request.

    python -m bench.cold [--captures 1000000] [--runs 5] [--store FOLDER]

infra/package.py packs the function, and python3.13 (of PATH, or named by PYTHON313) runs it. Each
cold start is a process of its own, in a cgroup with the share of a processor that Lambda gives for
1,769 and for 512 MB. The bucket (bench.cold.latency) is outside. Baseline in the same run: DuckDB
alone fetches a known row group and reads 1,000 rows of it. Readers and baseline take turns, and
the figures are medians of the runs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.cold import artefact, httpfs
from bench.cold.artefact import Skipped, install
from bench.cold.latency import BUCKET, COUNTS
from bench.cold.quota import Quota
from bench.cold.readers import READERS
from bench.generate import fill
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.oai.token import Token
from functions.snapshot import layout
from functions.snapshot.manifest import Manifest
from functions.store import engine
from functions.store.catalog import Catalogue

_FOLDER = Path(__file__).parent
_NAMESPACE = "bench.example.org"
_SHARES = (1.0, 0.3)
_FIRST = "verb=ListRecords&metadataPrefix=oai_dc"
_BEGINNING = {layout.POINTER, layout.WITNESS, layout.manifest_key(1)}


class Bench:
    """A store behind a slow line, and what is measured of it."""

    def __init__(self, interpreter: str, tree: Path, extra: Path, endpoint: str, quota: Quota):
        self.interpreter, self.endpoint, self.quota = interpreter, endpoint, quota
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": "/tmp",
            "TMPDIR": tempfile.gettempdir(),
            "LAMBDA_TASK_ROOT": str(tree),
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1769",
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_REGION": "us-east-1",
            "SHEAF_STORE_URI": f"s3://{BUCKET}",
            "SHEAF_STORE_ENDPOINT": endpoint,
            "SHEAF_REPOSITORY_NAMESPACE": _NAMESPACE,
            "SHEAF_SERVE_ACCESS_LOG": "-",
            "PYTHONPATH": f"{tree}{os.pathsep}{extra}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, reader: str, *queries: str, share: float = 1.0) -> tuple[dict[str, Any], float]:
        """Start an environment and send requests; return its measurements and its time of start."""
        self.quota.set(share)
        begun = time.time()
        done = subprocess.run(
            [self.interpreter, str(_FOLDER / "invoke.py"), reader, *queries],
            env=self.environment,
            preexec_fn=self.quota.enter,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"bench.cold: {reader}: {done.stderr}")
        told = json.loads(done.stdout)
        refused = [a for a in told["answers"] if a.get("status", 200) != 200]
        assert not refused, (refused, done.stderr)
        return told, begun

    def counts(self) -> dict[str, Any]:
        with urllib.request.urlopen(self.endpoint + COUNTS) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def bucket(folder: Path) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.cold.latency", str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def generated(folder: Path, count: int) -> Path:
    store = FolderStore(folder / "store")
    (folder / "run").mkdir()
    fill(store, count, folder / "run")
    settings = configuration.parse(
        f"[repository]\nnamespace='{_NAMESPACE}'\n[publish]\nlead=1\n", {}
    )
    runtime = Runtime(lambda: datetime.now(UTC), time.sleep, lambda text: None, {})
    assert publish(store, settings, runtime).manifest is not None
    return store.root


def kinds(store: FolderStore, manifest: Manifest) -> dict[str, tuple[str, str]]:
    """Return for each kind of request a query, and another of that kind for other objects."""
    size, catalogue = manifest.last_position, Catalogue(store)

    def token(place: int) -> str:
        text = Token(
            verb="ListRecords",
            prefix="oai_dc",
            snapshot=manifest.snapshot,
            position=place,
            cursor=place - 1,
            size=size,
            namespace=_NAMESPACE,
            store=manifest.store,
        ).to_text()
        return f"verb=ListRecords&resumptionToken={quote(text)}"

    def of(spec: str) -> str:
        return f"{_FIRST}&set={spec}"

    files = [str(store.local(file.key)) for file in catalogue.files(manifest, "records")]
    rows = f"{engine.table('$files')} WHERE position IN ($a, $b) ORDER BY position"
    sql = f"SELECT identifier FROM {rows}"
    connection = engine.connect()
    values = {"files": files, "a": size // 3, "b": size - 100}
    one, other = (name for (name,) in connection.execute(sql, values).fetchall())
    connection.close()
    day = "from=2020-01-01"
    record = "verb=GetRecord&metadataPrefix=oai_dc&identifier="
    return {
        "Identify": ("verb=Identify", "verb=Identify"),
        "ListMetadataFormats": ("verb=ListMetadataFormats", "verb=ListMetadataFormats"),
        "ListSets": ("verb=ListSets", "verb=ListSets"),
        "ListIdentifiers, first page": ("verb=ListIdentifiers&metadataPrefix=oai_dc",) * 2,
        "ListRecords, first page": (_FIRST, _FIRST),
        "ListRecords, by date": (f"{_FIRST}&{day}", f"{_FIRST}&{day}"),
        "ListRecords, goes on in another row group": (token(size // 2 + 1), token(size // 5 + 1)),
        "ListRecords, a page in two row groups": (
            token(4096 * (size // 4096 // 2) - 99),
            token(4096 * (size // 4096 // 3) - 99),
        ),
        "ListRecords of a big set": (of("mime:text:html"), of("mime:image:jpeg")),
        "ListRecords of a rare, scattered set": (of("mime:model:vrml"), of("mime:video:mpeg")),
        "ListRecords of a domain": (of("domain:cz:h7"), of(f"domain:cz:h{size // 100}")),
        "GetRecord": (record + one, record + other),
    }


def requests(bench: Bench, named: dict[str, tuple[str, str]]) -> None:
    """Print what each kind of request takes of the bucket."""
    print("| request | cold: GETs | KB | warm, on other objects: GETs | KB | again: GETs |")
    print("|---|---|---|---|---|---|")
    for name, (first, other) in named.items():
        bench.counts()
        bench.run("obstore", first)
        cold = bench.counts()
        told, _ = bench.run("obstore", first, other, other)
        counted = bench.counts()
        logs = [answer["log"] for answer in told["answers"]]
        _, warm, again = logs
        begun = counted["requests"] - sum(log["store_requests"] for log in logs)
        # Read before the first request, each once: the pointer, its witness, and the manifest.
        assert 0 <= begun <= 3, counted
        assert set(counted["keys"][:begun]) <= _BEGINNING, counted
        print(
            f"| {name} | {cold['requests']} | {cold['bytes'] / 1000:,.0f} "
            f"| {warm['store_requests']} | {warm['store_bytes'] / 1000:,.0f} "
            f"| {again['store_requests']} |"
        )


def starts(bench: Bench, named: dict[str, tuple[str, str]], address: str, runs: int) -> None:
    """Print what a cold start takes, and pages after it, by each reader and with DuckDB alone."""
    on = list(named)[6]
    pages = (_FIRST, named[on][0], named[on][0])
    names = ["alone", "obstore", *READERS]
    for share in _SHARES:
        taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
        for run in range(runs + 1):
            for name in names:
                queries = (address,) if name == "alone" else pages
                told, begun = bench.run(name, *queries, share=share)
                first = told["answers"][0]
                row = [told["ready"] - begun, first["at"] - told["ready"], first["at"] - begun]
                row += [a["seconds"] for a in told["answers"][1:]] or [float("nan")] * 2
                cpu = first["cpu"] + told.get("cpu", 0)
                if run:  # the first round reads files from the disk
                    taken[name].append((*(1000 * value for value in row), 1000 * cpu))
        print(
            f"\n| {share:g} vCPU, ms | ready | first page | in all | to DuckDB alone | CPU "
            "| page of a new row group | of a known one |"
        )
        print("|---|---|---|---|---|---|---|---|")
        base = statistics.median(row[2] for row in taken["alone"])
        for name in names:
            ready, first_, all_, new, known, cpu = (
                statistics.median(column) for column in zip(*taken[name], strict=True)
            )
            title = "DuckDB alone" if name == "alone" else name
            rest = "" if name == "alone" else f"{new:.0f} | {known:.0f}"
            print(
                f"| {title} | {ready:.0f} | {first_:.0f} | {all_:.0f} | {all_ / base:.2f} "
                f"| {cpu:.0f} | {rest or '- | -'} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--store", type=Path, help="the folder of a store that is there")
    arguments = parser.parse_args()
    try:
        interpreter = artefact.python()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            root = arguments.store or generated(folder, arguments.captures)
            measure(interpreter, folder, root, arguments.runs)
    except Skipped as reason:
        print(f"\n*** bench.cold is SKIPPED: {reason} ***", file=sys.stderr)


def measure(interpreter: str, folder: Path, root: Path, runs: int) -> None:
    tree, extra = folder / "artefact", folder / "extra"
    artefact.pack(interpreter, tree)
    extra.mkdir()
    if failed := install(interpreter, extra, "boto3"):
        raise Skipped(f"boto3 cannot be installed: {failed}")
    store = FolderStore(root)
    newest = Catalogue(store).pointer().newest()
    assert newest is not None
    manifest = Catalogue(store).manifest(newest.snapshot)
    named = kinds(store, manifest)
    file = next(iter(Catalogue(store).files(manifest, "records")))
    quota = Quota()
    limited = (
        f"a share by {quota.folder}" if quota.folder else "NO LIMIT of the processor: no cgroup"
    )
    size = artefact.megabytes(tree)
    print(f"{manifest.last_position:,} captures; artefact of {size:.1f} MB; {limited}\n")
    try:
        with bucket(root) as endpoint:
            bench = Bench(interpreter, tree, extra, endpoint, quota)
            requests(bench, named)
            offset, size = file.groups[0].byte_range
            address = f"{endpoint}/{BUCKET}/{file.key}#{offset}-{size}"
            starts(bench, named, address, runs)
            httpfs.measure(bench, folder, file, runs, _SHARES)
    finally:
        quota.close()


if __name__ == "__main__":
    main()
