"""The servers that a harvest is measured on: `sheaf serve`, and `oaipmh` under gunicorn."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench import baseline
from tests.listening import free_port

NAMESPACE = "bench.example.org"
CONFIGURATION = f"[repository]\nnamespace = '{NAMESPACE}'\n[publish]\nlead = 1\n"
"""What `sheaf serve` answers by."""

NJS = Path("/usr/lib/nginx/modules/ngx_http_js_module.so")
"""The module of nginx for JavaScript, where Debian has it."""

FIRST = "verb=ListRecords&metadataPrefix=oai_dc"
"""The query of a list's first page."""


@dataclass
class Server:
    """A server under measurement: its address, and the processes that answer."""

    url: str
    process: int

    def cpu(self) -> float:
        """Return the CPU seconds of the process and its children so far."""
        return sum(_seconds(pid) for pid in (self.process, *_children(self.process)))

    def wait(self) -> None:
        """Wait until the server accepts connections. Raises OSError after half a minute."""
        url = urlsplit(self.url)
        for attempt in range(300):
            try:
                socket.create_connection((url.hostname, url.port), 1).close()
                return
            except OSError:
                if attempt == 299:
                    raise
                time.sleep(0.1)

    def peak(self) -> int:
        """Return the most memory that the process has had so far, in megabytes."""
        status = Path(f"/proc/{self.process}/status").read_text()
        found = re.search(r"VmHWM:\s+([0-9]+)", status)
        return int(found[1]) // 1024 if found else 0

    def memory(self) -> int:
        """Return the megabytes of all its processes: their own memory and shares of common one."""
        kilobytes = 0
        for pid in (self.process, *_children(self.process)):
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            kilobytes += int(re.findall(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[0])
        return kilobytes // 1024

    def walk(self, query: str, pages: int, *, compressed: bool = False) -> tuple[Any, float]:
        """Follow a list with a client process; return its measurements and the server's CPU."""
        before = self.cpu()
        flags = ["--gzip"] if compressed else []
        told = subprocess.run(
            [sys.executable, "-m", "bench.client", self.url, query, "--pages", str(pages), *flags],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        return json.loads(told), self.cpu() - before


def _seconds(process: int) -> float:
    return time.clock_gettime(~process << 3 | 2)  # the process's clock of Linux, in nanoseconds


def _children(process: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@contextmanager
def started(
    command: list[str], environment: Mapping[str, str], folder: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a folder until the block ends."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.terminate()  # what began in the background may hear of no interrupt
        process.wait()


@contextmanager
def sheaf(store: Path, folder: Path, workers: int = 1, **environment: str) -> Iterator[Server]:
    """Run `sheaf serve` on a store; its configuration is written into `folder`."""
    config = folder / "sheaf.toml"
    config.write_text(CONFIGURATION)
    command = [sys.executable, "-m", "builder", "serve", "--port", "0", "--json"]
    command += ["--store", str(store), "--config", str(config)]
    with started(command, {"SHEAF_SERVE_WORKERS": str(workers), **environment}) as process:
        assert process.stdout is not None
        url = re.search(r'"oai": *"([^"]+)"', "".join(iter(process.stdout.readline, "}\n")))
        assert url, "sheaf serve did not start"
        yield Server(url[1], process.pid)


@contextmanager
def gunicorn(database: Path, paging: str, workers: int = 1) -> Iterator[Server]:
    """Run the baseline on a database, with pages by OFFSET or by key (see bench.baseline)."""
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "gunicorn", "-w", str(workers), "-b", address]
    command += ["--log-level", "error", "bench.baseline:application"]
    settings = {baseline.DATABASE: str(database), baseline.PAGING: paging}
    with started(command, settings) as process:
        server = Server(f"http://{address}/oai", process.pid)
        server.wait()
        yield server


def write_server(root: Path) -> Callable[[int], str]:
    """Return what makes a server of nginx with the files below `root`, for a port."""
    return lambda port: f"server {{ listen 127.0.0.1:{port}; root {root}; }}"


@contextmanager
def nginx(write: Callable[[int], str], folder: Path, workers: int = 1) -> Iterator[Server]:
    """Run nginx with the server that `write` makes for a port, set up in `folder`."""
    user = "user root; " if os.geteuid() == 0 else ""
    port = free_port()
    module = f"load_module {NJS};\n" if NJS.exists() else ""
    (folder / "nginx.conf").write_text(
        f"{module}{user}daemon off; worker_processes {workers}; pid {folder}/pid;\n"
        "error_log stderr;\nevents {}\nhttp { access_log off; sendfile on; tcp_nopush on;\n"
        f"{write(port)} }}\n"
    )
    process = subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf"), "-e", "stderr"])
    server = Server(f"http://127.0.0.1:{port}/oai", process.pid)
    server.wait()
    try:
        yield server
    finally:
        process.terminate()
        process.wait()
