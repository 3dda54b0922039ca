"""The container: it is built, and every command of what was built runs.

buildah builds it, on a base that mmdebstrap makes of Debian's packages: no registry is asked for an
image. BASE=... names another base. A machine without these tools proves nothing here, and says so.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from tests.aws.archive import pages
from tests.aws.build import ROOT
from tests.e2e.conftest import warc
from tests.listening import free_port

FILE = ROOT / "infra" / "Containerfile"
SUITE = ("trixie", "python3,python3-venv,ca-certificates")
"""The release that python:3.13-slim is of, and what it has beside."""
SECONDS = 60
USER = 1000

SENT = ("builder", "functions", "templates", "sheaf_archive", "infra")
SENT_FILES = ("pyproject.toml", "README.md", "LICENSE", "requirements.lock")
"""What of the repository the image is built from."""

IMPORT_ALL = """
import importlib, pkgutil, sheaf_archive
from sheaf_archive import builder, functions
for package in (builder, functions):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)


def done(*command: object) -> str:
    found = run(*command)
    assert found.returncode == 0, found.stderr
    return found.stdout


@dataclass(frozen=True)
class Image:
    """A container of what was built; `home` is its volume."""

    buildah: tuple[object, ...]
    name: str
    config: dict[str, object]
    home: Path

    def command(self, *arguments: object, **environment: str) -> list[str]:
        """Return what runs the entry point, as `docker run` does, with these arguments."""
        options = [f"--env={name}={text}" for name, text in environment.items()]
        entry = self.config["Entrypoint"]
        assert isinstance(entry, list)
        place = ("--isolation=chroot", f"--volume={self.home}:/work", *options, self.name, "--")
        return [*map(str, (*self.buildah, "run", *place, *entry, *arguments))]

    def sheaf(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return run(*self.command(*arguments, **environment))

    @contextmanager
    def served(self, port: int, **environment: str) -> Iterator[str]:
        """Run the server, until the signal by which engines end a container."""
        assert self.config["Cmd"] == ["serve", "--host", "0.0.0.0"]
        command = self.command("serve", "--host", "127.0.0.1", "--port", port, **environment)
        with (self.home.parent / "serve.log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            end = time.monotonic() + SECONDS
            while time.monotonic() < end and process.poll() is None:
                if status(f"{url}/health"):
                    break
                time.sleep(0.1)
            yield url
        finally:
            # buildah passes no signal on, and kills what runs when it is ended.
            wanted = (b"/opt/sheaf/bin/python3", b"--port", str(port).encode())
            lines = {int(p.parent.name): read(p) for p in Path("/proc").glob("[0-9]*/cmdline")}
            servers = [pid for pid, words in lines.items() if {*wanted} <= {*words}]
            if servers:
                os.kill(min(servers), signal.SIGTERM)
            process.wait(SECONDS)


def read(path: Path) -> list[bytes]:
    """Return the words of a process, of none that has ended."""
    with suppress(OSError):
        return path.read_bytes().split(b"\0")
    return []


def status(url: str) -> int:
    """Return the status of an answer, 0 if nobody listens."""
    try:
        with urlopen(url, timeout=SECONDS) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code
    except URLError:
        return 0


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """Build the image, and give a container of it."""
    if shutil.which("buildah") is None:
        pytest.skip("the container is NOT built here: there is no buildah")
    folder = tmp_path_factory.mktemp("container")
    buildah = ("buildah", "--root", folder / "root", "--runroot", folder / "run")
    try:
        base = os.environ.get("BASE") or make_base(buildah, folder)
        settings = {k[4:].lower(): text for k, text in os.environ.items() if k[:4] == "PIP_"}
        settings.pop("find_links", None)  # a folder of this machine
        lines = [f"{name.replace('_', '-')} = {text}\n" for name, text in settings.items()]
        (folder / "pip.conf").write_text("".join(["[global]\n", *lines]))
        volumes = [f"--volume={folder}/pip.conf:/etc/pip.conf:ro"]
        if "cert" in settings:
            volumes.append(f"--volume={settings['cert']}:{settings['cert']}:ro")
        options = ("--format=docker", "--isolation=chroot", "--network=host", *volumes)
        build = ("build", *options, f"--build-arg=BASE={base}", "--file", FILE, "--tag", "sheaf")
        done(*buildah, *build, ROOT)
        about = json.loads(done(*buildah, "inspect", "--type", "image", "localhost/sheaf"))
        name = done(*buildah, "from", "localhost/sheaf").strip()
        # A volume of the image hides a folder that buildah, unlike other engines, mounts there.
        done(*buildah, "config", "--volume=/work-", name)
        (folder / "home").mkdir()
        os.chown(folder / "home", USER, USER)
        yield Image(buildah, name, about["Docker"]["config"], folder / "home")
    finally:
        run(*buildah, "rm", "--all")
        run(*buildah, "rmi", "--all", "--force")
        shutil.rmtree(folder, ignore_errors=True)


def make_base(buildah: tuple[object, ...], folder: Path) -> str:
    """Make a base of Debian's packages, which is kept beside this Python; return its name."""
    if shutil.which("mmdebstrap") is None:
        pytest.skip("the container is NOT built here: there is no mmdebstrap, and no BASE=...")
    suite, packages = SUITE
    tree = Path(sys.prefix) / f"base-{suite}.tar"
    if not tree.exists():
        made = folder / tree.name
        options = ("--quiet", "--variant=minbase", f"--include={packages}")
        outcome = run("mmdebstrap", *options, suite, made)
        if outcome.returncode:
            pytest.skip(f"the container is NOT built here: {outcome.stderr[-300:]}")
        made.rename(tree)
    (folder / "context").mkdir()
    shutil.copy(tree, folder / "context")
    (folder / "context" / "Containerfile").write_text(f"FROM scratch\nADD {tree.name} /\n")
    done(*buildah, "build", "--tag", "base", folder / "context")
    return "localhost/base"


def test_the_image_says_how_it_is_run(image: Image) -> None:
    config = image.config
    assert (config["User"], config["WorkingDir"]) == ("sheaf", "/work")
    assert list(config["Volumes"]) == ["/work"]  # type: ignore[call-overload]
    assert list(config["ExposedPorts"]) == ["8080/tcp"]  # type: ignore[call-overload]
    assert config["Entrypoint"] == ["sheaf"]


def test_every_command_has_what_it_imports(image: Image) -> None:
    python = [*image.command()[:-1], "/opt/sheaf/bin/python"]
    done(*python, "-m", "pip", "check")
    done(*python, "-c", IMPORT_ALL)
    for command in ("serve", "ingest", "publish", "update", "status", "verify"):
        alone = image.sheaf(command)
        assert alone.returncode == 2, command
        assert "no configuration" in alone.stderr
        assert "Traceback" not in alone.stderr
    missing = image.sheaf("check", "http://127.0.0.1:9/oai")
    assert "Traceback" not in missing.stderr
    assert list(image.home.iterdir()) == []


def test_it_serves_what_its_other_runs_publish(image: Image) -> None:
    port = free_port()
    described = ("--name", "Ours", "--email", "a@example.org", "--namespace", "archive.example.org")
    assert image.sheaf("init", *described).returncode == 0
    warc(image.home / "one.warc.gz", pages(0, 30))
    with image.served(port) as url:
        assert status(f"{url}/health") == status(f"{url}/oai?verb=Identify") == 503
        assert json.loads(done(*image.command("ingest", "one.warc.gz", "--json")))
        assert json.loads(done(*image.command("publish", "--json")))["new"] == 30
        end = time.monotonic() + SECONDS
        while status(f"{url}/health") != 200 and time.monotonic() < end:
            time.sleep(0.2)
        record = json.loads(
            done(*image.command("query", "--json", "SELECT identifier FROM records LIMIT 1"))
        )
        for query in (
            "Identify",
            "ListMetadataFormats",
            "ListSets",
            "ListIdentifiers&metadataPrefix=oai_dc",
            "ListRecords&metadataPrefix=oai_dc",
            f"GetRecord&metadataPrefix=oai_dc&identifier={record['identifier']}",
        ):
            with urlopen(f"{url}/oai?verb={query}", timeout=SECONDS) as answer:
                assert f"<{query.partition('&')[0]}>".encode() in answer.read()
        assert status(f"{url}/") == 200
        asks = image.config["Healthcheck"]["Test"]  # type: ignore[index]
        assert asks[0] == "CMD"
        health = [part.replace(":8080", f":{port}") for part in asks[1:]]
        done(*image.command()[:-1], *health)
    log = (image.home.parent / "serve.log").read_text()
    assert "stopped" in log
    assert "Traceback" not in log
    done(*image.command()[:-1], "sh", "-c", "test $(id -u) = 1000 && ! touch /opt/sheaf/own")


def test_the_documented_job_publishes_by_its_environment(image: Image) -> None:
    """As docs/operations/deploy.md has it, with a folder where that has a bucket."""
    environment = {
        "SHEAF_REPOSITORY_NAMESPACE": "archive.example.org",
        "SHEAF_STORE_URI": "/work/job",
        "SHEAF_PUBLISH_MEMORY": "900",
        "TMPDIR": "/work",
    }
    warc(image.home / "two.warc.gz", pages(0, 10))
    for arguments in (("ingest", "two.warc.gz"), ("publish", "--json"), ("verify",)):
        outcome = done(*image.command(*arguments, **environment))
        if arguments[0] == "publish":
            assert json.loads(outcome)["new"] == 10


def test_what_is_sent_to_the_engine_has_what_the_image_is_built_from() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split("\n")
    assert not set(ignored) & {*SENT, *SENT_FILES}
    assert ".*" in ignored  # what is of this machine alone, and credentials
