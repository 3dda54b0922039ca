"""What is installed from the wheel has all that it needs, and runs without the checkout."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import pytest

from builder import distribution
from builder.commands.cli import describe_version

ROOT = Path(__file__).parents[1]
PACKAGES = ("builder", "functions", "templates", "sheaf_archive")
NO_INDEX = ("No matching distribution found for hatchling", "Could not find a version")
OUTSIDE = {
    name: value
    for name, value in os.environ.items()
    if name != "PYTHONPATH" and not name.startswith("SHEAF_")
}
"""The environment without what leads to the checkout."""


def run(
    *command: object, cwd: Path, env: Mapping[str, str] = OUTSIDE
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True)


def build(folder: Path) -> Path:
    """Build the wheel from a copy: a build leaves folders behind, and takes up older ones."""
    leave_out = shutil.ignore_patterns(
        ".?*", "__pycache__", "build", "*.egg-info", "demo-store", "node_modules"
    )
    shutil.copytree(ROOT, folder / "source", ignore=leave_out)
    patience = {"PIP_RETRIES": "1", "PIP_TIMEOUT": "10", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = run(
        *(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", folder, "./source"),
        cwd=folder,
        env={**OUTSIDE, **patience},
    )
    if done.returncode and any(text in done.stderr for text in NO_INDEX):
        pytest.skip("the wheel is NOT proved here: the index has no hatchling to build it with")
    assert not done.returncode, done.stderr
    (found,) = folder.glob("*.whl")
    return found


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel into a new environment in `folder`; return the folder of its programs.

    What Sheaf depends on is taken from the environment of the tests, Sheaf itself is not: of a
    folder that a .pth file names no further .pth file is read.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=wheel.parent)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    paths = dict.fromkeys(sysconfig.get_paths()[name] for name in ("purelib", "platlib"))
    (site / "dependencies.pth").write_text("\n".join(paths) + "\n")
    done = run(
        *(sys.executable, "-m", "pip", "--python", python),
        *("install", "--no-deps", "--no-index", "--disable-pip-version-check", wheel),
        cwd=folder,
    )
    assert not done.returncode, done.stderr
    return folder / "bin"


@pytest.mark.thorough
def test_the_demo_runs_from_the_wheel_alone(tmp_path: Path) -> None:
    """One test, so that the wheel is built once however the tests are shared out."""
    built, home = tmp_path / "wheel", tmp_path / "home"
    built.mkdir()
    home.mkdir()
    wheel = build(built)
    check_files(wheel)
    programs = install(wheel, tmp_path / "environment")
    told = run(programs / "sheaf", "--version", cwd=home)
    lines = told.stdout.splitlines()
    # The copy was no repository, and no `git archive` wrote the commit in.
    assert lines[:2] == [f"sheaf {distribution.version()}", "commit unknown"], told.stderr
    assert lines[3:] == [f"{name} {found}" for name, found in distribution.libraries().items()]
    assert f"duckdb {metadata.version('duckdb')}" in lines
    (site,) = (tmp_path / "environment").glob("lib/python*/site-packages")
    assert {path.name for path in site.iterdir() if path.suffix not in (".dist-info", ".pth")} == {
        "sheaf_archive"
    }
    where = "import sheaf_archive, builder, functions; print(builder.__file__, functions.__file__)"
    for path in run(programs / "python", "-c", where, cwd=home).stdout.split():
        assert path.startswith(str(site / "sheaf_archive"))
    # A process of a cluster imports it because the first name in a task is this package's.
    task = "import pickle, sheaf_archive, functools, builder.text as text; "
    task += "print(pickle.dumps(functools.partial(sheaf_archive.call, text.tally)).hex())"
    data = run(programs / "python", "-c", task, cwd=home).stdout.strip()
    load = f"import pickle; print(pickle.loads(bytes.fromhex('{data}')).args[0].__module__)"
    assert run(programs / "python", "-c", load, cwd=home).stdout == "builder.text\n"
    done = run(programs / "sheaf", "demo", "--once", "--json", "--port", 0, cwd=home)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["harvested"] == report["records"] > report["captures"] > 40
    assert [path.name for path in home.iterdir()] == ["demo-store"]


def check_files(wheel: Path) -> None:
    """Check that the wheel has all files of the packages, and no others."""
    assert wheel.name.startswith(f"{distribution.NAME.replace('-', '_')}-")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {
        ("" if package == "sheaf_archive" else "sheaf_archive/") + path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.parent.name != "__pycache__" and path.name != ".gitattributes"
    }
    assert names == wanted
    own = {name.removeprefix("sheaf_archive/") for name in names}
    assert {"builder/py.typed", "functions/py.typed", "templates/sql/views.sql"} <= own
    assert "builder/commands/demo/files/library.warc.gz" in own


def test_a_release_names_the_commit_that_git_archive_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "builder/distribution.py export-subst" in (ROOT / ".gitattributes").read_text()
    monkeypatch.setattr(distribution, "_ARCHIVED", "0" * 40)
    assert describe_version().splitlines()[1] == f"commit {'0' * 40}"


def test_the_tools_of_a_release_build_as_the_project_says() -> None:
    """What `pip install .` builds with is what `make release` builds with."""
    (wanted,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    pins = (ROOT / "infra" / "requirements-release.txt").read_text()
    assert f"{wanted} " in pins
