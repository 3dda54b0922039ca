"""Stores that a soak test runs on: a folder, and buckets of servers that speak S3's language."""

import contextlib
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from _pytest.outcomes import Skipped

from tests.bucket import free_ports, fresh, run_moto, run_weed
from tests.proxy import Proxy, proxied

TOOLS = Path(".soak")
"""Where infra/soak.sh installs servers, each in a folder of its own."""
_SECONDS = 120.0
"""How long a server may take to start, on a busy machine."""


class SkipError(Exception):
    """A store cannot be had here, for the reason given."""


@dataclass(frozen=True)
class Place:
    """A store by address, the environment that reaches it, and the proxy before its server."""

    address: str
    environment: Mapping[str, str] = field(default_factory=dict)
    proxy: Proxy | None = None


@contextmanager
def open_place(name: str, folder: Path) -> Iterator[Place]:
    """Run the store of a name of STORES, empty. Raises SkipError."""
    if name == "folder":
        yield Place(str(folder / "store"))
        return
    try:
        with (
            SERVERS[name](folder) as endpoint,
            proxied(endpoint) as proxy,
            closing(fresh(endpoint)) as bucket,
        ):
            environment = {**bucket.environment, "SHEAF_STORE_ENDPOINT": proxy.url}
            yield Place(bucket.uri, environment, proxy)
    except Skipped as skipped:
        raise SkipError(str(skipped)) from skipped


@contextmanager
def run_ministack(folder: Path) -> Iterator[str]:
    """Run ministack; give its endpoint. Raises SkipError."""
    program = _installed("ministack/bin/ministack")
    port = free_ports(1)[0]
    environment = {
        "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "STATE_DIR": str(folder / "state"),
        "MINISTACK_HOST": "localhost",
    }  # fmt: skip
    with _running(program, environment, folder, f"http://127.0.0.1:{port}") as endpoint:
        yield endpoint


SERVERS: dict[str, Callable[[Path], contextlib.AbstractContextManager[str]]] = {
    "seaweedfs": run_weed,
    "moto": lambda folder: run_moto(),
    "ministack": run_ministack,
}
STORES = ("folder", *SERVERS)


def _installed(program: str) -> Path:
    path = (TOOLS / program).absolute()
    if not path.exists():
        raise SkipError(f"{path} is missing: `make soak` installs it")
    return path


@contextmanager
def _running(
    program: Path, environment: Mapping[str, str], folder: Path, url: str
) -> Iterator[str]:
    """Run a server as a process group of its own, until it answers and then to the end."""
    log = folder / "server.log"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SHEAF_", "PYTHON"))}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [program], env={**kept, **environment}, cwd=folder,
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    try:
        _await(url, process, log)
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _await(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return  # it answers
        except OSError:
            time.sleep(0.2)
    raise SkipError(f"the server of {url} does not run: {log.read_text('utf-8', 'replace')[-300:]}")
