"""Harvesters at once: pages that are rendered, kept pages, and nginx with the same bytes as files.

    python -m bench.machines.crowd [--captures N] [--seconds N] [--harvesters 1,16,64]

Needs `wrk` and, for the baseline, `nginx` (Debian: wrk, nginx-light). Each harvester is a
connection and a thread of wrk, which walks through the list from a random page on, in gzip unless
the row says plain; of one page, all ask for the same one. wrk needs the same cores. Answers of 503
are errors, and no records. CPU is that of the server.
"""

import argparse
import gzip
import http.client
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench import baseline
from bench.harvest import baseline_token, published, rows
from bench.server import FIRST, Server, gunicorn, nginx, sheaf, write_server
from builder.store.folder import FolderStore
from functions.reading.duck_repository import DuckRepository

_TOKEN = re.compile(rb"<resumptionToken[^>]*>([^<]+)<")
_RECORDS = 1000
_SCRIPT = """
at, urls = 0, {{}}
for line in io.lines("{urls}") do urls[#urls + 1] = line end
math.randomseed(os.time())
setup = function(thread) thread:set("at", math.random(#urls)) end
request = function()
    at = at % #urls + 1
    return wrk.format("GET", urls[at], {{["Accept-Encoding"] = "{coding}"}})
end
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--harvesters", default="1,16,64")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        print("*** bench.machines.crowd is SKIPPED: wrk is not installed (apt-get install wrk) ***")
        return
    counts = [int(text) for text in arguments.harvesters.split(",")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = published(folder, arguments.captures)
        print("| | Harvesters | Records/s | Slowest page, ms | CPU ms per 1,000 | MB | Errors |")
        print("|---|---|---|---|---|---|---|", flush=True)
        cores = os.cpu_count() or 1
        for label, workers, cache in (
            ("rendered, 1 worker", 1, 0),
            (f"rendered, {cores} workers", cores, 0),
            (f"kept, {cores} workers", cores, 1024),
        ):
            with sheaf(store, folder, workers, SHEAF_SERVE_PAGE_CACHE=str(cache)) as server:
                pages = dict(walk(server.url))
                if cache:
                    list(walk(server.url))  # so that each worker knows them
                targets = list(pages)[1:-1]
                measure(label, server.url, targets, counts, arguments.seconds, server)
                if workers == 1:
                    label = f"{label}, one page"
                    measure(label, server.url, targets[:1], counts, arguments.seconds, server)
                if cache:
                    label = f"{label}, plain"
                    measure(
                        label, server.url, targets, counts, arguments.seconds, server, "identity"
                    )
        with oaipmh(folder, store, cores) as (url, targets, server):
            label = f"oaipmh, gunicorn, {cores} workers, plain"
            measure(label, url, targets, counts, arguments.seconds, server)
        if shutil.which("nginx") is None:
            print("\nnginx is not installed: apt-get install nginx-light")
            return
        with files(folder, list(pages.values())[1:-1]) as (url, targets):
            measure("nginx, files", url, targets, counts, arguments.seconds, None)


def walk(url: str) -> Iterator[tuple[str, bytes]]:
    """Yield the targets of a list and their bodies, as sent."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    query = FIRST
    while query:
        target = f"{urlsplit(url).path}?{query}"
        connection.request("GET", target, headers={"Accept-Encoding": "gzip"})
        body = connection.getresponse().read()
        yield target, body
        match = _TOKEN.search(gzip.decompress(body))
        query = f"verb=ListRecords&resumptionToken={match[1].decode()}" if match else ""
    connection.close()


def measure(
    label: str,
    url: str,
    targets: Sequence[str],
    counts: Sequence[int],
    seconds: int,
    server: Server | None,
    coding: str = "gzip",
) -> None:
    """Print a row for each number of harvesters."""
    with tempfile.TemporaryDirectory() as name:
        urls, script = Path(name) / "urls", Path(name) / "script.lua"
        urls.write_text("\n".join(targets) + "\n")
        script.write_text(_SCRIPT.format(urls=urls, coding=coding))
        base = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        for count in counts:
            line = ["wrk", f"-t{count}", f"-c{count}", f"-d{seconds}s", "-s", str(script)]
            before = server.cpu() if server else 0.0
            report = subprocess.run(
                [*line, "--timeout", "30s", base], check=True, stdout=subprocess.PIPE, text=True
            ).stdout
            cpu, memory = "", ""
            rate = float(re.findall(r"Requests/sec:\s+([0-9.]+)", report)[0])
            total = int(re.findall(r"(\d+) requests in", report)[0])
            slowest = _milliseconds(re.findall(r"Latency(?:\s+\S+){2}\s+(\S+)", report)[0])
            refused = re.findall(r"Non-2xx or 3xx responses: (\d+)", report)
            wrong = int(refused[0]) if refused else 0
            records = rate * _RECORDS * (total - wrong) / max(total, 1)
            if server:
                thousands = max(total - wrong, 1) * _RECORDS / 1000
                cpu = f"{(server.cpu() - before) * 1000 / thousands:.2f}"
                memory = f"{server.memory():,}"
            print(
                f"| {label} | {count} | {records:,.0f} | {slowest:,.0f} | {cpu} | {memory} "
                f"| {wrong} |",
                flush=True,
            )


def _milliseconds(text: str) -> float:
    for unit, factor in (("us", 0.001), ("ms", 1), ("s", 1000), ("m", 60_000)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise ValueError(text)


@contextmanager
def oaipmh(folder: Path, store: Path, workers: int) -> Iterator[tuple[str, list[str], Server]]:
    """Serve up to 100,000 of the records by the baseline, paged by a key."""
    repository = DuckRepository(FolderStore(store))
    newest = repository.pointer().newest()
    assert newest is not None
    manifest = repository.manifest(newest.snapshot)
    count = min(manifest.last_position, 100 * _RECORDS)
    baseline.fill(folder / "baseline.db", rows(repository, manifest, count))
    repository.close()
    cursors = range(_RECORDS, count - _RECORDS, _RECORDS)
    targets = [f"/oai?{baseline_token(cursor)}" for cursor in cursors]
    with gunicorn(folder / "baseline.db", "key", workers) as server:
        yield server.url, targets, server


@contextmanager
def files(folder: Path, bodies: Sequence[bytes]) -> Iterator[tuple[str, list[str]]]:
    """Serve bodies as files by nginx; give the address and their targets."""
    root = folder / "bodies"
    root.mkdir()
    for number, body in enumerate(bodies):
        (root / f"{number}.gz").write_bytes(body)

    with nginx(write_server(root), folder) as server:
        yield server.url, [f"/{number}.gz" for number in range(len(bodies))]


if __name__ == "__main__":
    main()
