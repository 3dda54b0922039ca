"""Fetch one file out of many known ones: seconds and memory of `sheaf gather`.

`python -m bench.gather.one_file FOLDER [--files N] [--beside CHECKOUT]`

The first call makes a store in FOLDER: one run names N files of a thousand hosts, one found nine
tenths of them, and one more found a few again. Then `sheaf gather --only URL --again` runs several
times against a server of this machine, here and with the code of another checkout.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from builder.obi import key
from builder.obi.content import FILE, TEMPLATE, Incidence, Refipo, Row, SeenRow, Version
from builder.obi.run import ObiRuntime, Purpose, claim
from builder.store.folder import FolderStore

_HOSTS = 1000
_TIMES = (1_700_000_000, 1_710_000_000, 1_720_000_000)
_CONFIG = """\
repository.name = "Bench"
repository.admin_emails = ["bench@bench.example.org"]
repository.namespace = "bench.example.org"
repository.base_url = "https://bench.example.org/oai"
store.uri = "store"
http.ports = [{port}, 80]
http.allow_networks = ["127.0.0.0/8"]
http.host_seconds = 0
"""
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)


def main() -> None:
    """Run the benchmark, and print a line for each call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--beside", type=Path, action="append", default=[])
    parser.add_argument("--calls", type=int, default=3)
    given = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 18_931), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if not given.folder.exists():
        make(given.folder, given.files, server.server_port)
    url = f"http://127.0.0.1:{server.server_port}/one.pdf"
    for checkout in (*given.beside, Path(__file__).parents[2]):
        for _ in range(given.calls):
            seconds, cpu, megabytes, out = measure(checkout, given.folder, url)
            print(
                f"{checkout}: {seconds:.2f} s, {cpu:.2f} s of CPU, {megabytes:,.0f} MB: {out}",
                flush=True,
            )
    server.shutdown()


def make(folder: Path, files: int, port: int) -> None:
    """Write the configuration and the runs of a store."""
    folder.mkdir(parents=True)
    (folder / "sheaf.toml").write_text(_CONFIG.format(port=port))
    store = FolderStore(folder / "store")
    urls = [f"http://127.0.0.1:{port}/one.pdf"]
    urls += [f"http://host{n % _HOSTS}.example.org/papers/{n}.pdf" for n in range(1, files)]
    for number, rows in enumerate((named(urls), found(urls, _TIMES[1]), seen(urls[:1000]))):
        now = datetime.fromtimestamp(_TIMES[number], UTC)
        runtime = ObiRuntime(lambda now=now: now, time.sleep, print)  # type: ignore[misc]
        run = claim(store, Purpose("ingest", "bench", f"{number}"), runtime)
        run.commit(rows)


def named(urls: list[str]) -> Iterator[Row]:
    """Yield the rows of an ingest: a template for each file."""
    for number, url in enumerate(urls):
        handle = f"RePEc:{number % 997:03}:wpaper:{number}"
        digest = hashlib.sha256(handle.encode()).hexdigest()
        where = key.key(_TIMES[0], handle)
        yield Version(
            id=handle,
            kind=TEMPLATE,
            key=where,
            bytes=1000,
            md5=digest[:32],
            sha256=digest,
            text_md5=digest[:32],
            text_sha256=digest,
            source=f"aaa/{number}.rdf",
            place=0,
            length=1000,
            type="ReDIF-Paper 1.0",
            valid=True,
            handle=handle,
        )
        yield Incidence(id=handle, kind=TEMPLATE, what="appearance", key=where)
        yield Refipo(handle=handle, position=0, url=url, id=url, format="application/pdf")


def found(urls: list[str], tist: int) -> Iterator[Row]:
    """Yield the rows of a gathering that had nine of ten files."""
    for number, url in enumerate(urls):
        if number % 10 == 9:
            continue
        digest = hashlib.sha256(url.encode()).hexdigest()
        yield Version(
            id=url,
            kind=FILE,
            key=key.key(tist, url),
            bytes=100_000,
            md5=digest[:32],
            sha256=digest,
            modified=tist,
            media_type="application/pdf",
            etag=f'"{digest[:12]}"',
            last_modified="Fri, 09 Nov 2012 10:00:00 GMT",
        )
        yield Incidence(id=url, kind=FILE, what="appearance", key=key.key(tist, url))


def seen(urls: list[str]) -> Iterator[Row]:
    """Yield the rows of a gathering that had some files again."""
    for url in urls:
        yield SeenRow(id=url, kind=FILE, status=304, etag='"x"')


def measure(checkout: Path, folder: Path, url: str) -> tuple[float, float, float, str]:
    """Return seconds, seconds of CPU and megabytes of `sheaf gather` for one file, and output."""
    command = [sys.executable, "-m", "builder", "gather", "--config", str(folder / "sheaf.toml")]
    # An installed package has its bytecode; that of a checkout is kept beside the store.
    own = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    begun = time.monotonic()
    process = subprocess.Popen(
        [*command, "--only", url, "--again"],
        cwd=checkout,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | own,
    )
    peaks = [0.0]
    watch = threading.Thread(target=_watch, args=(process.pid, peaks))
    watch.start()
    assert process.stdout is not None
    out = process.stdout.read().partition("\n")[0]
    watch.join()
    _, _, used = os.wait4(process.pid, 0)
    cpu = used.ru_utime + used.ru_stime
    return time.monotonic() - begun, cpu, peaks[-1], out


def _watch(number: int, peaks: list[float]) -> None:
    """Note the most megabytes of a process until it ends; ru_maxrss would include its parent.

    An ended process has no such line any more.
    """
    while (found := _PEAK.search(Path(f"/proc/{number}/status").read_text())) is not None:
        peaks.append(int(found[1]) / 1000)
        time.sleep(0.01)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer with bytes that change."""
        data = f"%PDF {time.time()}".encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    main()
