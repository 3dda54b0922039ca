"""The container that publishes: its packages suffice, and it can be built.

A machine without a container engine proves the first alone, and says so.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.aws.archive import SETTINGS, Archive, pages
from tests.aws.build import ROOT

FILE = ROOT / "infra" / "Containerfile"
ENGINES = ("docker", "podman")


SENT = ("builder", "functions", "templates", "sheaf_archive", "infra")
SENT_FILES = ("pyproject.toml", "README.md", "LICENSE", "requirements.lock")
"""What of the repository the image is built from."""


def run(*command: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command, which is not to find the repository where Python looks for packages."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [*map(str, command)], env=kept, cwd=folder, capture_output=True, text=True, check=False
    )


def done(*command: object, folder: Path | None = None) -> str:
    found = run(*command, folder=folder)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Give a store in a folder with an intake."""
    (tmp_path / "home").mkdir()
    made = Archive(str(tmp_path / "store"), SETTINGS, tmp_path / "home")
    made.ingest("one", pages(0, 30))
    return made


def published(archive: Archive, publish: Callable[[], str]) -> None:
    """Hold that a publish takes the intake into a store without damage, and then has no more."""
    assert json.loads(publish())["new"] == 30
    assert json.loads(publish())["snapshot"] is None
    archive.sheaf("verify")


def test_the_wheel_publishes_with_the_packages_of_the_container(
    archive: Archive, tmp_path: Path
) -> None:
    source, job, own = (tmp_path / name for name in ("src", "job", "own"))
    for name in SENT:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in SENT_FILES:
        shutil.copy(ROOT / name, source)
    done(sys.executable, source / "infra" / "package.py", "job", job)
    done(sys.executable, "-m", "venv", "--without-pip", own)
    pip = (sys.executable, "-m", "pip", "--python", own / "bin" / "python")
    install = (*pip, "install", "--quiet", "--no-deps", "--no-compile")
    made = run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", job, source, folder=job)
    if made.returncode:
        pytest.skip(f"no wheel can be built here: {made.stderr[-300:]}")
    done(*install, "--require-hashes", "--requirement", job / "requirements.txt", folder=job)
    done(*install, *job.glob("*.whl"), folder=job)

    def publish() -> str:
        command = [own / "bin" / "sheaf", "publish", "--json"]
        environment = {**archive.all, "SHEAF_STORE_URI": archive.store}
        del environment["PYTHONPATH"]
        found = subprocess.run(
            [*command, "--store", archive.store],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    published(archive, publish)


def test_the_container_is_built_and_publishes(archive: Archive, tmp_path: Path) -> None:
    engine = next((e for e in ENGINES if _runs(e)), None)
    if engine is None:
        pytest.skip("the container is NOT built here: no docker or podman runs on this machine")
    done(engine, "build", "--file", FILE, "--tag", "sheaf-proof", ROOT)
    options = [f"--env={name}={value}" for name, value in SETTINGS.items()]
    options += [f"--volume={tmp_path / 'store'}:/store", "--user=0"]

    def publish() -> str:
        return done(
            engine, "run", "--rm", *options, "sheaf-proof", "publish", "--json", "--store", "/store"
        )

    published(archive, publish)


def _runs(engine: str) -> bool:
    try:
        return run(engine, "info").returncode == 0
    except OSError:
        return False


def test_what_is_sent_to_the_engine_has_what_the_image_is_built_from() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split("\n")
    assert not set(ignored) & {*SENT, *SENT_FILES}
    assert ".*" in ignored  # what is of this machine alone, and credentials
