"""DuckDB's own reader of S3 in the function's place, where it can be installed."""

import json
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cold.artefact import install
from bench.cold.latency import BUCKET
from functions.snapshot.manifest import DataFile

if TYPE_CHECKING:
    from bench.cold.__main__ import Bench

_HTTPFS = ("duckdb==1.5.5", "duckdb-extension-httpfs==1.5.5")
_WITH_HTTPFS = """
import sys, time, json, duckdb
site, endpoint, url, middle = sys.argv[1:]
c = duckdb.connect(config={"threads": 1})
c.execute(f"LOAD '{site}/duckdb_extension_httpfs/extensions/v1.5.5/httpfs.duckdb_extension'")
c.execute("CREATE SECRET s (TYPE s3, KEY_ID 'k', SECRET 's', REGION 'us-east-1', "
          f"ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false)")
ready = time.time()
def page(first):
    n = len(c.execute("SELECT position, identifier, sets, url, fetch_date, content_digest, "
        "content_mime_type, title FROM read_parquet(?) WHERE position BETWEEN ? AND ?",
        [url, first, first + 999]).fetchall())
    assert n == 1000, n
    return time.time()
at = page(1)
new = page(int(middle)) - at
print(json.dumps({"ready": ready, "at": at, "new": new}))
"""


def measure(
    bench: "Bench", folder: Path, file: DataFile, runs: int, shares: Sequence[float]
) -> None:
    """Print the same of DuckDB's own reader of S3, where it can be installed."""
    site = folder / "httpfs"
    if failed := install(bench.interpreter, site, "--no-deps", *_HTTPFS):
        print(f"\nhttpfs: skipped, {' '.join(_HTTPFS)} cannot be installed: {failed}")
        return
    print(
        "\n| httpfs, told the file's key | ready | first page | in all | requests of both pages "
        "| MB | page of a new row group |"
    )
    print("|---|---|---|---|---|---|---|")
    script = folder / "with_httpfs.py"
    script.write_text(_WITH_HTTPFS)
    host = bench.endpoint.partition("//")[2]
    for share in shares:
        bench.quota.set(share)
        rows, counted = [], {"requests": 0, "bytes": 0}
        for run in range(runs + 1):
            bench.counts()
            begun = time.time()
            line = [bench.interpreter, str(script), str(site), host]
            line += [f"s3://{BUCKET}/{file.key}", str(file.groups[len(file.groups) // 2].first)]
            told = json.loads(
                subprocess.run(
                    line,
                    env={**bench.environment, "PYTHONPATH": str(site)},
                    check=True,
                    preexec_fn=bench.quota.enter,
                    stdout=subprocess.PIPE,
                    text=True,
                ).stdout
            )
            counted = bench.counts()
            if run:
                rows.append(
                    (
                        told["ready"] - begun,
                        told["at"] - told["ready"],
                        told["at"] - begun,
                        told["new"],
                    )
                )
        ready, first, whole, new = (
            1000 * statistics.median(column) for column in zip(*rows, strict=True)
        )
        print(
            f"| {share:g} vCPU, ms | {ready:.0f} | {first:.0f} | {whole:.0f} "
            f"| {counted['requests']} | {counted['bytes'] / 1e6:.2f} | {new:.0f} |"
        )
