"""The servers that a harvest is measured on: `sheaf serve`, and `oaipmh` under gunicorn."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import baseline
from bench.client import follow

NAMESPACE = "bench.example.org"
CONFIGURATION = f"[repository]\nnamespace = '{NAMESPACE}'\n[publish]\nlead = 1\n"
"""What `sheaf serve` answers by."""

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
    text = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(text[11]) + int(text[12])) / os.sysconf("SC_CLK_TCK")


def _children(process: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@contextmanager
def _started(command: list[str], **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, *command],
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
    command = ["-m", "builder", "serve", "--port", "0", "--json"]
    command += ["--store", str(store), "--config", str(config)]
    with _started(command, SHEAF_SERVE_WORKERS=str(workers), **environment) as process:
        assert process.stdout is not None
        found = re.search(r'"oai": *"([^"]+)"', "".join(iter(process.stdout.readline, "}\n")))
        assert found, "sheaf serve did not start"
        yield Server(found[1], process.pid)


@contextmanager
def gunicorn(database: Path, paging: str, workers: int = 1) -> Iterator[Server]:
    """Run the baseline on a database, with pages by OFFSET or by key (see bench.baseline)."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = ["-m", "gunicorn", "-w", str(workers), "-b", address, "--log-level", "error"]
    settings = {baseline.DATABASE: str(database), baseline.PAGING: paging}
    with _started([*command, "bench.baseline:application"], **settings) as process:
        for _ in range(100):
            time.sleep(0.1)
            try:
                follow(f"http://{address}/oai", FIRST, 1, compressed=False)
                break
            except OSError:
                continue
        yield Server(f"http://{address}/oai", process.pid)


@contextmanager
def nginx(root: Path, folder: Path) -> Iterator[str]:
    """Serve the files below `root` with one worker of nginx, set up in `folder`; give its URL."""
    user = "user root; " if os.geteuid() == 0 else ""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "nginx.conf").write_text(
        f"{user}daemon off; worker_processes 1; pid {folder}/pid; error_log stderr;\n"
        f"events {{}}\nhttp {{ access_log off; sendfile on; tcp_nopush on;\n"
        f"server {{ listen {address}; root {root}; }} }}\n"
    )
    process = subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf"), "-e", "stderr"])
    time.sleep(1)
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()
