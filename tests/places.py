"""Other places that speak S3, beside the two of tests/bucket.py: real servers, and R2's refusals.

`make prove-places` installs the servers. PLACES names those over which the suites run as well.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.bucket import ACCESS_KEY, SECRET_KEY, answers, run_moto
from tests.listening import free_ports
from tests.proxy import Answer, Seen, proxied

TOOLS = Path(__file__).parents[1] / ".places"
_FEATURES = "acl cors policy tagging versioning versions object-lock retention legal-hold torrent"
_HEADERS = "acl bypass checksum grant object-lock request-payer sdk sdk-checksum tagging website"


@dataclass
class CloudflareRules:
    """What R2 refuses by its documentation, and moto does not.

    https://developers.cloudflare.com/r2/api/s3/api/ of 2026, with the pages on limits, error codes
    and uploads in parts. Where these do not say how a case ends, it ends in a refusal here.
    """

    pause: float = 0.1
    """Seconds between two writes of a key: one of R2's, which each test would wait for."""

    regions: tuple[str, ...] = ("auto", "us-east-1", "wnam", "enam", "weur", "eeur", "apac", "oc")
    parts: dict[str, dict[int, int]] = field(default_factory=dict)
    written: dict[str, float] = field(default_factory=dict)

    def __call__(self, seen: Seen) -> Answer | None:
        """Return the refusal of a request; None passes it on."""
        query = parse_qs(urlsplit(seen.path).query, keep_blank_values=True)
        return (
            self._refuse_keys(seen)
            or _refuse_features(seen, query)
            or self._refuse_parts(seen, query)
            or self._refuse_haste(seen, query)
        )

    def _refuse_keys(self, seen: Seen) -> Answer | None:
        """Refuse other keys, which is 401 in R2, and regions that are not its own."""
        scope = seen.headers.get("authorization", "").partition("Credential=")[2]
        key, _, region, *_ = [*scope.partition(",")[0].split("/"), "", "", ""]
        if key != ACCESS_KEY:
            return Answer(401, "Unauthorized", "Unauthorized")
        if region not in self.regions:
            return Answer(400, "InvalidRegionName", f"The region name '{region}' is not valid.")
        return None

    def _refuse_parts(self, seen: Seen, query: dict[str, list[str]]) -> Answer | None:
        """Refuse an upload whose parts differ in size, but for the last one."""
        upload = query.get("uploadId", [""])[0]
        sizes = self.parts.setdefault(upload, {})
        if seen.method == "PUT" and upload:
            sizes[int(query["partNumber"][0])] = seen.bytes
        if seen.method == "POST" and upload:
            *equal, last = [sizes[number] for number in sorted(sizes)]
            if len(set(equal)) > 1 or (equal and last > equal[0]):
                return Answer(400, "InvalidPart", "All non-trailing parts must have one length.")
        return None

    def _refuse_haste(self, seen: Seen, query: dict[str, list[str]]) -> Answer | None:
        """Refuse a second write of a key that comes too soon."""
        if seen.method == "PUT" and "uploadId" not in query:
            now = time.monotonic()
            if now - self.written.get(seen.key, -1.0) < self.pause:
                return Answer(429, "TooManyRequests", "Reduce your concurrent request rate.")
            self.written[seen.key] = now
        return None


def _refuse_features(seen: Seen, query: dict[str, list[str]]) -> Answer | None:
    """Refuse operations and headers that R2 does not have, and signed streams."""
    named = [name for name in query if name in _FEATURES.split()]
    named += [name for name in seen.headers if name.startswith("x-amz-server-side-encryption")]
    for part in _HEADERS.split():
        named += [name for name in seen.headers if name.startswith(f"x-amz-{part}")]
    if seen.headers.get("x-amz-content-sha256", "").startswith("STREAMING"):
        named.append("x-amz-content-sha256")
    if not named:
        return None
    return Answer(501, "NotImplemented", f"Header or parameter '{named[0]}' not implemented")


@contextmanager
def run_cloudflare(folder: Path) -> Iterator[str]:
    """Run moto's S3 behind R2's refusals; give its endpoint."""
    with run_moto() as endpoint, proxied(endpoint) as proxy:
        proxy.fault = CloudflareRules()
        yield proxy.url


@contextmanager
def run_weed(folder: Path) -> Iterator[str]:
    """Run SeaweedFS, which checks signatures, with its data in the folder."""
    keys = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
    identity = {"name": "tests", "credentials": [keys], "actions": ["Admin"]}
    (config := folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    services = ("master", "volume", "filer", "s3")
    names = [f"-{name}.port{grpc}" for name in services for grpc in (".grpc", "")]

    def command(*ports: int) -> list[str]:
        options = [f"{name}={port}" for name, port in zip(names, ports, strict=True)]
        data = tempfile.mkdtemp(dir=folder)
        return [
            *(str(_find("weed")), "server", f"-dir={data}", "-s3", f"-s3.config={config}"),
            *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3.port.iceberg=0", "-s3.port.lance=0"),
            *("-master.volumeSizeLimitMB=64", "-volume.max=1000", *options),
        ]

    with _serving(folder, len(names), command) as endpoint:
        yield endpoint


@contextmanager
def run_rclone(folder: Path) -> Iterator[str]:
    """Run rclone's server, which ignores conditions."""
    (folder / "data").mkdir()
    keys = ["--auth-key", f"{ACCESS_KEY},{SECRET_KEY}", str(folder / "data")]
    serve = [str(_find("rclone")), "serve", "s3", *keys, "--addr"]
    with _serving(folder, 1, lambda port: [*serve, f"127.0.0.1:{port}"]) as endpoint:
        yield endpoint


@contextmanager
def run_ministack(folder: Path) -> Iterator[str]:
    """Run ministack, whose S3 alone is used."""
    variables = ["BIND_HOST=127.0.0.1", "LAMBDA_EXECUTOR=local"]

    def command(port: int) -> list[str]:
        return ["env", *variables, f"GATEWAY_PORT={port}", str(_find("ministack"))]

    with _serving(folder, 1, command) as endpoint:
        yield endpoint


CEPH = """
[global]
fsid = {id}
mon host = [v2:127.0.0.1:{monitor}]
public addr = 127.0.0.1
ms bind ipv6 = false
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
run dir = {folder}
admin socket = {folder}/$name.$pid.asok
pid file = {folder}/$name.pid
log file = {folder}/$name.log
mon data = {folder}/mon
osd data = {folder}/osd
rgw data = {folder}/rgw
osd objectstore = memstore
memstore device bytes = 4294967296
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd class load list = *
osd class default list = *
mon max pg per osd = 1000
mon data avail crit = 1
rgw frontends = beast endpoint=127.0.0.1:{port}
"""
_CAPABILITIES = {
    "mon.": "mon=allow *",
    "client.admin": "mon=allow * osd=allow *",
    "client.rgw": "mon=allow rw osd=allow rwx",
    "osd.0": "mon=allow profile osd osd=allow *",
}


@contextmanager
def run_ceph(folder: Path) -> Iterator[str]:
    """Run Ceph: a monitor, one storage daemon in memory, and the gateway."""
    monitor, port = free_ports(2)
    config = folder / "ceph.conf"
    config.write_text(CEPH.format(id=uuid.uuid4(), monitor=monitor, port=port, folder=folder))
    for name in ("mon", "osd", "rgw"):
        (folder / name).mkdir()

    def call(program: str, *arguments: str) -> None:
        command = [str(_find(program)), "-c", str(config), *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    def make_key(name: str, capabilities: str) -> None:
        parts = [part.split("=") for part in capabilities.replace(" osd=", ",osd=").split(",")]
        options = [word for kind, right in parts for word in ("--cap", kind, right)]
        create = [] if (folder / "keyring").exists() else ["--create-keyring"]
        call("ceph-authtool", *create, f"{folder}/keyring", "--gen-key", "-n", name, *options)

    with ExitStack() as stack:

        def start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
            command = [str(_find(program)), "-c", str(config), "-f", *arguments]
            return stack.enter_context(_running(command, folder / f"{program}.out"))

        for name, capabilities in _CAPABILITIES.items():
            make_key(name, capabilities)
        address = f"[v2:127.0.0.1:{monitor}]"
        call("monmaptool", "--create", "--addv", "a", address, f"{folder}/map")
        call("ceph-mon", "-i", "a", "--mkfs", "--monmap", f"{folder}/map")
        start("ceph-mon", "-i", "a")
        call("ceph", "osd", "create")
        call("ceph-osd", "-i", "0", "--mkfs")
        call("ceph", "osd", "crush", "add", "osd.0", "1.0", "root=default", "host=localhost")
        start("ceph-osd", "-i", "0")
        gateway = start("radosgw", "-n", "client.rgw")
        keys = [f"--access-key={ACCESS_KEY}", f"--secret-key={SECRET_KEY}"]
        user = ["user", "create", "--uid=tests", "--display-name=tests", *keys]
        call("radosgw-admin", "-n", "client.rgw", *user)
        endpoint = f"http://127.0.0.1:{port}"
        if not answers(endpoint, gateway):
            pytest.skip(f"Ceph cannot be started here: {config}")
        yield endpoint


RUN: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "moto": lambda folder: run_moto(),
    "weed": run_weed,
    "cloudflare": run_cloudflare,
    "ceph": run_ceph,
    "ministack": run_ministack,
    "rclone": run_rclone,
}


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Give what starts a place's server, once, and returns its endpoint."""
    with ExitStack() as stack:

        @cache
        def start(name: str) -> str:
            return stack.enter_context(RUN[name](tmp_path_factory.mktemp(name)))

        yield start


def _find(program: str) -> Path:
    """Return a program's path, or skip the test."""
    places = f"{TOOLS}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    path = shutil.which(program, path=places)
    if path is None:
        pytest.skip(f"there is no {program} here (make prove-places)")
    return Path(path)


@contextmanager
def _running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server whose output goes to a file, and end it."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=log.parent)
    try:
        yield process
    finally:
        process.kill()  # asked to end, SeaweedFS would take ten seconds
        process.wait()


@contextmanager
def _serving(folder: Path, count: int, command: Callable[..., Sequence[str]]) -> Iterator[str]:
    """Run a server that needs some ports, and answers at the last one; give its endpoint.

    A port that was free may be somebody else's by the time at which the server takes it.
    """
    for _ in range(3):
        ports = free_ports(count)
        endpoint = f"http://127.0.0.1:{ports[-1]}"
        with _running(command(*ports), folder / "log") as process:
            if answers(endpoint, process):
                yield endpoint
                return
    pytest.skip(f"it cannot be started here: {(folder / 'log').read_text()[-500:]}")
