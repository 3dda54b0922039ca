"""The hosts of a site, each started as the guide says, with places and ports of the test's own."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.e2e.conftest import sheaf

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guide/static-hosting.md"
SIMULATOR = ROOT / ".npm-miniflare"
NJS = Path("/usr/lib/nginx/modules/ngx_http_js_module.so")
APACHE = Path("/usr/lib/apache2/modules")
MODULES = "mpm_event authz_core mime dir rewrite lua headers deflate filter"
_COMMAND = re.compile(r"^(sheaf router .*) > (\S+)$", re.MULTILINE)


def write_files(host: str, site: Path, folder: Path, port: int) -> dict[str, Path]:
    """Write the files that the guide says into `folder`; return them by their names there."""
    section = GUIDE.read_text("utf-8").partition(f"### {host}\n")[2].partition("\n##")[0]
    commands = _COMMAND.findall(section)
    files = {target: folder / Path(target).name for _, target in commands}
    for line, target in commands:
        words = shlex.split(re.sub(r"--port \d+", f"--port {port}", line))[1:]
        done = sheaf(*(str(site) if word == "/srv/site" else word for word in words))
        assert done.code == 0, done.err
        text = done.out
        for name, path in files.items():  # as the files name each other
            text = text.replace(name, str(path)) if name.startswith("/") else text
        files[target].write_text(text)
    assert files
    return files


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(command: list[str], port: int, folder: Path) -> Iterator[str]:
    """Run a server in the foreground until it is not needed; give its address."""
    log = folder / "output.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(100):
            try:
                urlopen(f"{url}/oai?verb=Identify", timeout=20).close()
                break
            except URLError:
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def nginx(site: Path, folder: Path) -> Iterator[str]:
    _need("nginx")
    if not NJS.exists():
        pytest.skip("nginx has no njs: apt-get install libnginx-mod-http-js")
    port = find_port()
    files = write_files("nginx", site, folder, port)
    main = folder / "main.conf"
    main.write_text(
        f"load_module {NJS};\ndaemon off;\nuser root;\npid {folder}/pid;\nevents {{ }}\n"
        f"http {{ include /etc/nginx/mime.types; access_log off; include "
        f"{files['/etc/nginx/conf.d/sheaf.conf']}; }}\n"
    )
    with running(["nginx", "-c", str(main), "-e", f"{folder}/error.log"], port, folder) as url:
        yield url


@contextmanager
def apache(site: Path, folder: Path) -> Iterator[str]:
    _need("apache2")
    port = find_port()
    files = write_files("Apache", site, folder, port)
    main = folder / "main.conf"
    modules = [f"LoadModule {m}_module {APACHE}/mod_{m}.so" for m in MODULES.split()]
    own = [f"ServerRoot {folder}", f"PidFile {folder}/pid", f"ErrorLog {folder}/error.log"]
    own += ["ServerName localhost", f"DefaultRuntimeDir {folder}", "TypesConfig /etc/mime.types"]
    own += [f"Include {files['/etc/apache2/sites-available/sheaf.conf']}"]
    main.write_text("\n".join([*own[:5], *modules, *own[5:], ""]))
    with running(["apache2", "-f", str(main), "-DFOREGROUND"], port, folder) as url:
        yield url


@contextmanager
def caddy(site: Path, folder: Path) -> Iterator[str]:
    _need("caddy")
    port = find_port()
    files = write_files("Caddy", site, folder, port)
    main = files["/etc/caddy/Caddyfile"]
    main.write_text("{\n\tadmin off\n}\n" + main.read_text())
    with running(
        ["caddy", "run", "--config", str(main), "--adapter", "caddyfile"], port, folder
    ) as url:
        yield url


@contextmanager
def worker(site: Path, folder: Path, storage: str = "bucket") -> Iterator[str]:
    _need("node")
    if not (SIMULATOR / "node_modules/miniflare").exists():
        pytest.skip("there is no miniflare: infra/prove-hosts.sh installs it")
    script = write_files("Cloudflare Worker", site, folder, 0)["worker.js"]
    with node("miniflare.mjs", script, site, storage) as url:
        yield url


@contextmanager
def worker_assets(site: Path, folder: Path) -> Iterator[str]:
    with worker(site, folder, "assets") as url:
        yield url


@contextmanager
def cloudfront(site: Path, folder: Path) -> Iterator[str]:
    _need("node")
    files = write_files("CloudFront and S3", site, folder, 0)
    script = files["cloudfront.js"]
    assert script.stat().st_size <= 10_241
    with node("cloudfront.mjs", script, site, files["missing.xml"]) as url:
        yield url


@contextmanager
def node(name: str, *arguments: object) -> Iterator[str]:
    """Run a script beside this module until its input ends; give the address that it prints."""
    command = ["node", str(Path(__file__).with_name(name)), *map(str, arguments)]
    cwd = SIMULATOR if SIMULATOR.exists() else ROOT
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=cwd
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip().rstrip("/")
        assert url.startswith("http"), url
        try:
            yield url
        finally:
            process.communicate()


def _need(command: str) -> None:
    if shutil.which(command) is None:
        pytest.skip(f"there is no {command}: infra/prove-hosts.sh installs it where apt-get can")


HOSTS: dict[str, Callable[[Path, Path], object]] = {
    "nginx": nginx,
    "apache": apache,
    "caddy": caddy,
    "worker": worker,
    "worker-assets": worker_assets,
}
REQUESTS = int(os.environ.get("REQUESTS", "300"))
