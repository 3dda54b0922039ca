"""Stores that a soak test runs on: a folder, and buckets of servers that speak S3's language."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from _pytest.outcomes import Skipped

from tests.bucket import free_ports, fresh, run_moto, run_weed
from tests.proxy import Proxy, proxied
from tests.soak.ceph import run_ceph
from tests.soak.process import SkipError, run_server

TOOLS = Path(".soak")
"""Where infra/soak.sh installs servers, each in a folder of its own."""


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
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "STATE_DIR": str(folder / "state"),
        "MINISTACK_HOST": "localhost",
    }
    with run_server([program], environment, folder) as server:
        endpoint = f"http://127.0.0.1:{port}"
        server.await_answer(endpoint)
        yield endpoint


SERVERS: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "seaweedfs": run_weed,
    "moto": lambda folder: run_moto(),
    "ministack": run_ministack,
    "ceph": run_ceph,
}
STORES = ("folder", *SERVERS)


def _installed(program: str) -> Path:
    path = (TOOLS / program).absolute()
    if not path.exists():
        raise SkipError(f"{path} is missing: `make soak` installs it")
    return path
