"""Speed of archiving files of platforms, compared with a plain copy over the same HTTP.

    python -m bench.fileset [--mb 512] [--gigabytes 2] [--rounds 3] [--folder DIR]
    python -m bench.fileset --many 2000 [--each 10000] [--connections 2]

A server on this machine sends the files, in a process of its own. The plain copy fetches one after
the other into a file, syncs it, and checks nothing. Sheaf computes five digests, checks size and
MD5, writes to a store in a folder, and records the result, without pauses between requests. Figures
are medians, in MB (10^6 bytes) a second of wall time. The last rows are the growth of a process's
memory while it archived a file or a bundle, and its peak, with all imports.

`--many` measures that many files of `--each` bytes from nginx instead, beside curl and aria2c,
which check nothing and sync nothing, and beside a loop that syncs each file: wall time, CPU time
and peak memory of each process, with its start, as medians.
"""

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.server import nginx, write_server
from builder.http.addresses import PublicAddresses, networks
from builder.sources.datasets.item import FilesetManifestFile, FilesetPlatformItem
from builder.sources.datasets.strategies.bundle import Bundled
from builder.sources.datasets.strategies.s3 import ObjectStrategy
from builder.sources.datasets.strategies.web import Captured
from builder.sources.datasets.wiring import Ways, make_ways
from builder.store.folder import FolderStore
from functions.config import configuration

_BLOCK = 1 << 20
_SMALL, _MEMBERS = (200, 50_000), (20, 3_000_000)  # files, and bytes of each
_TOML = """
http.host_seconds = 0
http.host_concurrent = {}
fileset.limits = {{ files = 100000 }}
"""
_HOST = "127.0.0.1"


def body(size: int) -> Iterator[bytes]:
    """Yield bytes that do not compress, the same each time."""
    block = hashlib.shake_128(b"files").digest(_BLOCK)
    for start in range(0, size, _BLOCK):
        yield block[: min(_BLOCK, size - start)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        size = int(self.path.split("/")[1])
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(size))
        self.end_headers()
        for data in body(size):
            self.wfile.write(data)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


def serve() -> None:
    """Serve until the end of standard input, and tell the port first."""
    server = ThreadingHTTPServer((_HOST, 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


@contextmanager
def serving() -> Iterator[int]:
    command = [sys.executable, "-m", "bench.fileset", "--serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.communicate()


def dataset(port: int, files: int, size: int) -> FilesetPlatformItem:
    """Return a dataset of so many files of the same size."""
    md5 = hashlib.md5(usedforsecurity=False)
    for data in body(size):
        md5.update(data)
    manifest = tuple(
        FilesetManifestFile(
            path=f"{number}.bin",
            size=size,
            md5=md5.hexdigest(),
            platform_url=f"http://{_HOST}:{port}/{size}/{number}",
        )
        for number in range(files)
    )
    return FilesetPlatformItem(
        platform_name="bench", platform_domain=_HOST, platform_id=str(size), manifest=manifest
    )


def copied(item: FilesetPlatformItem, folder: Path) -> None:
    """Copy each file, and check nothing."""
    for file in item.files:
        host, _, target = (file.platform_url or "").removeprefix("http://").partition("/")
        connection = http.client.HTTPConnection(host)
        connection.request("GET", f"/{target}")
        answer = connection.getresponse()
        with (folder / file.path).open("wb") as out:
            while data := answer.read(1 << 16):
                out.write(data)
            out.flush()
            os.fsync(out.fileno())
        connection.close()


def kept(item: FilesetPlatformItem, strategy: str, folder: Path, connections: int = 2) -> None:
    """Keep the files as Sheaf does, in a store in the folder."""
    settings = configuration.parse(_TOML.format(connections), {})
    store = FolderStore(folder / "store")
    port = int((item.files[0].platform_url or "").split("/")[2].rpartition(":")[2])
    guard = PublicAddresses(frozenset({port}), networks(["127.0.0.0/8"]))
    ways: Ways = make_ways(settings, "Sheaf/bench", guard, threading.Event())
    downloader = ways.downloader()
    made: Any = ObjectStrategy(strategy, store, downloader, settings)
    if strategy.startswith("web-"):
        made = Captured(strategy, store, downloader, settings, folder, time.time)
    elif strategy.endswith("-bundled"):
        made = Bundled(store, downloader, settings)
    found = made.process(item)
    assert found.status.startswith("success"), found


def timed(work: Callable[[Path], None], parent: Path, size: int, rounds: int) -> float:
    """Return MB a second, the median of some rounds, each in a folder of its own."""
    found = []
    for _ in range(rounds):
        folder = Path(tempfile.mkdtemp(dir=parent))
        start = time.perf_counter()
        work(folder)
        found.append(size / 1e6 / (time.perf_counter() - start))
        shutil.rmtree(folder)
    return statistics.median(found)


def grown(port: int, files: int, size: int, strategy: str, parent: Path) -> tuple[float, float]:
    """Return by how many MB the memory of a process grows that keeps these files, and to what."""
    order = json.dumps([port, files, size, strategy, str(parent)])
    command = [sys.executable, "-m", "bench.fileset", "--child", order]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    more, whole = json.loads(done.stdout)
    return more, whole


def child(order: str) -> None:
    port, files, size, strategy, parent = json.loads(order)
    item = dataset(port, files, size)
    folder = Path(tempfile.mkdtemp(dir=parent))
    kept(dataset(port, 1, 1000), "s3-file", folder / "first")  # what is imported when it is needed
    before = peak()
    kept(item, strategy, folder)
    shutil.rmtree(folder)
    print(json.dumps([peak() - before, peak()]))


def peak(process: int | str = "self") -> float:
    """Return the peak memory of a process in MB. Works on Linux alone.

    getrusage does not help: its peak includes the process that started this one.
    """
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=int, default=512, help="size of the large file")
    parser.add_argument("--gigabytes", type=float, default=2, help="of the file for memory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--many", type=int, help="measure that many equal files instead")
    parser.add_argument("--each", type=int, default=10_000, help="bytes of each, for --many")
    parser.add_argument("--connections", type=int, default=2, help="for --many")
    parser.add_argument("--folder", type=Path, help="where to write, and remove what was written")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    for name in ("--child", "--copy", "--keep"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    if given.child:
        child(given.child)
        return
    if given.copy:
        copied(dataset(*json.loads(given.copy)), Path.cwd())
        return
    if given.keep:
        port, count, size, strategy, connections = json.loads(given.keep)
        kept(dataset(port, count, size), strategy, Path.cwd(), connections)
        return
    if given.many:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            many(given.many, given.each, given.connections, given.rounds, Path(folder))
        return
    with serving() as port, tempfile.TemporaryDirectory(dir=given.folder) as folder:
        speeds(port, given.mb, given.rounds, Path(folder))
        memory(port, int(given.gigabytes * 1e9), Path(folder))


def speeds(port: int, megabytes: int, rounds: int, folder: Path) -> None:
    rows = [
        ("one large file", (1, megabytes * 1_000_000), ("s3-file", "web-file")),
        ("200 small files", _SMALL, ("s3-fileset", "web-fileset")),
        ("20 files of 3 MB", _MEMBERS, ("s3-fileset", "s3-fileset-bundled", "web-fileset")),
    ]
    print(f"{'':22}{'':22}{'MB/s':>8}  of a plain copy")
    for title, (files, size), strategies in rows:
        item = dataset(port, files, size)
        plain = timed(partial(copied, item), folder, files * size, rounds)
        print(f"{title:22}{'plain copy':22}{plain:8.1f}")
        for name in strategies:
            work = partial(kept, item, name)
            speed = timed(work, folder, files * size, rounds)
            print(f"{'':22}{name:22}{speed:8.1f}  {speed / plain:.0%}", flush=True)


def many(count: int, size: int, connections: int, rounds: int, folder: Path) -> None:
    """Print what many equal files cost, of Sheaf and of others."""
    site = folder / "site" / str(size)
    site.mkdir(parents=True)
    for number in range(count):
        (site / str(number)).write_bytes(b"".join(body(size)))
    with nginx(write_server(folder / "site"), folder) as server:
        url = server.url.removesuffix("/oai")
        port = int(url.rpartition(":")[2])
        listed = [f"{url}/{size}/{number}" for number in range(count)]
        (folder / "curl").write_text(
            "".join(f'url = "{u}"\noutput = "{n}"\n' for n, u in enumerate(listed))
        )
        (folder / "aria2c").write_text("\n".join(listed))
        own = [sys.executable, "-m", "bench.fileset"]
        commands = {
            "curl": ["curl", "-sS", "-K", str(folder / "curl")],
            f"curl, {connections} at once": [
                "curl",
                "-sS",
                "-Z",
                "--parallel-max",
                str(connections),
                "-K",
                str(folder / "curl"),
            ],
            "aria2c": ["aria2c", "-q", "-j", str(connections), "-i", str(folder / "aria2c")],
            "plain copy, synced": [*own, "--copy", json.dumps([port, count, size])],
        }
        several = ("s3-fileset", "s3-fileset-bundled", "web-fileset")
        for strategy in several if count > 1 else ("s3-file", "web-file"):
            order = json.dumps([port, count, size, strategy, connections])
            commands[f"Sheaf, {strategy}"] = [*own, "--keep", order]
        print(f"{count:,} files of {size:,} bytes{'':8}{'s':>8}{'CPU s':>8}{'MB':>8}")
        for title, command in commands.items():
            if shutil.which(command[0]) is None:
                print(f"{title:32}not installed")
                continue
            runs = [run_measured(command, folder) for _ in range(rounds)]
            wall, cpu, most = (statistics.median(one) for one in zip(*runs, strict=True))
            print(f"{title:32}{wall:8.2f}{cpu:8.2f}{most:8.1f}", flush=True)


def run_measured(command: list[str], parent: Path) -> tuple[float, float, float]:
    """Run a command in a new folder; return its seconds, seconds of CPU, and peak MB."""
    folder = Path(tempfile.mkdtemp(dir=parent))
    start = time.perf_counter()
    root = str(Path(__file__).parents[1])
    before = os.times()
    process = subprocess.Popen(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": root}, stderr=subprocess.DEVNULL
    )
    most = 0.0
    while process.poll() is None:
        with contextlib.suppress(OSError, StopIteration):  # it has ended meanwhile
            most = max(most, peak(process.pid))
        time.sleep(0.01)
    wall, now = time.perf_counter() - start, os.times()
    assert process.returncode == 0, command
    shutil.rmtree(folder)
    spent = now.children_user + now.children_system
    return wall, spent - before.children_user - before.children_system, most


def memory(port: int, size: int, folder: Path) -> None:
    print("memory that a process takes besides, and the most that it has, MB")
    for title, files, each, strategy in [
        (f"one file of {size / 1e9:g} GB", 1, size, "s3-file"),
        ("20 files of 3 MB", *_MEMBERS, "s3-fileset-bundled"),
        ("20 files of 3 MB", *_MEMBERS, "web-fileset"),
    ]:
        more, whole = grown(port, files, each, strategy, folder)
        print(f"{title:22}{strategy:22}{more:8.1f}  of {whole:.0f} in all", flush=True)


if __name__ == "__main__":
    main()
