"""The hosts of a site, set up by the steps of the guide, with places and ports of a test's own."""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.hosts import bucket
from tests.listening import free_port

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guide/static-hosting.md"
SIMULATOR = ROOT / ".npm-miniflare"
NJS = Path("/usr/lib/nginx/modules/ngx_http_js_module.so")
RUNS = ("/var/log/nginx", "/var/log/apache2", "/var/run/apache2", "/var/lock/apache2", "/run/nginx")
"""What is in `run` of the test's folder instead."""


def follow(host: str, site: Path, folder: Path, port: int = 0) -> None:
    """Carry out the guide's steps for a host, with `folder` before /etc, and `port`.

    Packages are only looked for. Raises CalledProcessError.
    """
    section = GUIDE.read_text("utf-8").partition(f"### {host}\n")[2]
    steps = section.split("```")[1].replace("/srv/site", str(site))
    steps = re.sub(r"--port \d+", f"--port {port}", steps).replace("/etc/", f"{folder}/etc/")
    path = f"{folder}/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
    # The files name each other by places below /etc.
    own = f'{sys.executable} -m builder "$@" | sed "s#/etc/#{folder}/etc/#g"'
    install(folder, "sheaf", f"set -o pipefail\nPYTHONPATH={ROOT} {own}")
    real = shutil.which("apt-get", path=os.environ["PATH"])
    install(folder, "apt-get", f'{real} --simulate "$@"' if real else "true")
    for name in bucket.NAMES:
        install(folder, name, f'{sys.executable} {bucket.__file__} {name} "$@"')
    public = folder / "public"
    public.unlink(missing_ok=True)
    public.symlink_to(site)
    places = {"APACHE_CONFDIR": f"{folder}/etc/apache2", "APACHE_STATE_DIRECTORY": f"{folder}/run"}
    environment = {**os.environ, **places, "PATH": path, "APACHE_STARTED_BY_SYSTEMD": "true"}
    subprocess.run(
        ["bash", "-euc", steps], cwd=folder, env=environment, check=True, capture_output=True
    )


def install(folder: Path, name: str, text: str) -> Path:
    """Write a command that the steps call."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return path


def copy_settings(name: str, folder: Path, *changed: str) -> None:
    """Copy what the package has below /etc, and let some of it name places of the test's own."""
    shutil.copytree(f"/etc/{name}", folder / "etc" / name, symlinks=True, dirs_exist_ok=True)
    (folder / "run").mkdir(exist_ok=True)
    for path in (folder / "etc" / name / each for each in changed):
        text = path.read_text().replace(f"/etc/{name}", str(folder / "etc" / name))
        for place in RUNS:
            text = text.replace(place, f"{folder}/run")
        path.write_text(text)


@contextmanager
def followed(host: str, site: Path, folder: Path) -> Iterator[str]:
    """Carry out the steps with a port that no other process took; give the address of the host."""
    for attempt in range(4):
        port = free_port()
        try:
            follow(host, site, folder, port)
            break
        except subprocess.CalledProcessError as error:
            if attempt == 3:
                error.add_note((error.stdout + error.stderr).decode())
                raise
    url = f"http://127.0.0.1:{port}"
    for _ in range(100):
        try:
            urlopen(f"{url}/oai?verb=Identify", timeout=20).close()
            break
        except URLError:
            time.sleep(0.1)
    yield url


@contextmanager
def nginx(site: Path, folder: Path) -> Iterator[str]:
    _need("nginx")
    if not NJS.exists():
        pytest.skip("nginx has no njs: apt-get install libnginx-mod-http-js")
    copy_settings("nginx", folder, "nginx.conf")
    shutil.rmtree(folder / "etc/nginx/sites-enabled", ignore_errors=True)
    real = f"{shutil.which('nginx')} -c {folder}/etc/nginx/nginx.conf -e {folder}/error.log"
    command = install(folder, "nginx", f'{real} "$@"')
    subprocess.run([command], check=True)
    try:
        with followed("nginx", site, folder) as url:
            yield url
    finally:
        subprocess.run([command, "-s", "quit"], check=True)


@contextmanager
def apache(site: Path, folder: Path) -> Iterator[str]:
    _need("apache2")
    copy_settings("apache2", folder, "envvars")
    (folder / "etc/apache2/ports.conf").write_text("")
    for path in (folder / "etc/apache2/sites-enabled").iterdir():
        path.unlink()
    try:
        with followed("Apache", site, folder) as url:
            yield url
    finally:
        environment = {**os.environ, "APACHE_CONFDIR": f"{folder}/etc/apache2"}
        subprocess.run(["apache2ctl", "stop"], env=environment, check=True)


@contextmanager
def caddy(site: Path, folder: Path) -> Iterator[str]:
    _need("caddy")
    (folder / "etc/caddy").mkdir(parents=True)
    main = folder / "etc/caddy/Caddyfile"
    real = f"{shutil.which('caddy')} start --config {main} --adapter caddyfile"
    # The package's service has a port for administration that others may have.
    off = f"sed -i '1i {{\\nadmin off\\n}}' {main}"
    pid = folder / "pid"
    install(folder, "systemctl", f"{off}\n{real} --pidfile {pid} > {folder}/output.log 2>&1")
    try:
        with followed("Caddy", site, folder) as url:
            yield url
    finally:
        os.kill(int(pid.read_text()), 15)


@contextmanager
def worker(site: Path, folder: Path, storage: str = "bucket") -> Iterator[str]:
    _need("node")
    if not (SIMULATOR / "node_modules/miniflare").exists():
        pytest.skip("there is no miniflare: infra/prove-hosts.sh installs it")
    follow("Cloudflare Worker", site, folder)
    row = tomllib.loads((folder / "wrangler.toml").read_text())
    (stored,) = row["r2_buckets"]
    assert stored["bucket_name"] == "sheaf"
    files = folder / "bucket" if storage == "bucket" else site
    with node("miniflare.mjs", folder / row["main"], files, storage, stored["binding"]) as url:
        yield url


@contextmanager
def worker_assets(site: Path, folder: Path) -> Iterator[str]:
    with worker(site, folder, "assets") as url:
        yield url


@contextmanager
def cloudfront(site: Path, folder: Path) -> Iterator[str]:
    _need("node")
    follow("CloudFront and S3", site, folder)
    with node("cloudfront.mjs", folder / "cloudfront.js", folder / "bucket") as url:
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
