"""What is installed from the wheel has all that it needs, and runs without the checkout."""

import email
import json
import os
import re
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
INSTALL = ROOT / "docs" / "install.md"
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
    """Make the release of a copy of the checkout; return a folder that pip reads as an index."""
    source, index = folder / "source", folder / "index" / "sheaf-archive"
    leave_out = shutil.ignore_patterns(
        *("__pycache__", "build", "dist", "*.egg-info", "demo-store", "node_modules"),
        ".git",
        ".[!gd]*",  # .gitattributes has the commit written in
    )
    shutil.copytree(ROOT, source, ignore=leave_out)
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "gc.auto=0")
    for words in (("init", "-q"), ("add", "--all"), ("commit", "-qm", "release: name it")):
        assert run("git", *who, *words, cwd=source).returncode == 0
    patience = {"PIP_RETRIES": "1", "PIP_TIMEOUT": "10", "PYTHON": sys.executable}
    done = run("infra/release.sh", "HEAD", index, cwd=source, env={**OUTSIDE, **patience})
    if done.returncode and any(text in done.stderr for text in NO_INDEX):
        pytest.skip("the release is NOT proved here: there is no index to get its tools from")
    assert not done.returncode, done.stderr
    links = (f'<a href="{path.name}">{path.name}</a>' for path in index.glob("*.[wt]*"))
    (index / "index.html").write_text("\n".join(links))
    return index.parent


def make_environment(folder: Path) -> Path:
    """Make an environment in `folder`; return the folder of its programs.

    What Sheaf depends on is taken from the environment of the tests, Sheaf itself is not: of a
    folder that a .pth file names no further .pth file is read.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    (site,) = folder.glob("lib/python*/site-packages")
    paths = dict.fromkeys(sysconfig.get_paths()[name] for name in ("purelib", "platlib"))
    (site / "dependencies.pth").write_text("\n".join(paths) + "\n")
    return folder / "bin"


def install(programs: Path, *options: object) -> None:
    """Install Sheaf, and nothing that it depends on, as options of pip say."""
    pip = (sys.executable, "-m", "pip", "--python", programs / "python", "install", "--no-deps")
    done = run(*pip, "--disable-pip-version-check", *options, cwd=programs.parent)
    assert not done.returncode, done.stderr


@pytest.mark.thorough
def test_the_demo_runs_from_the_wheel_alone(tmp_path: Path) -> None:
    """One test, so that the wheel is built once however the tests are shared out."""
    home = tmp_path / "home"
    home.mkdir()
    index = build(tmp_path)
    (wheel,) = index.glob("*/*.whl")
    check_files(wheel)
    check_metadata(wheel)
    programs = make_environment(tmp_path / "environment")
    # What the tests run is on the path of the new environment, and counts as installed there.
    install(programs, "--ignore-installed", "--index-url", index.as_uri(), "sheaf-archive")
    done = run(programs / "sheaf", "--version", cwd=home)
    lines = done.stdout.splitlines()
    commit = run("git", "rev-parse", "HEAD", cwd=tmp_path / "source").stdout.strip()
    assert lines[:2] == [f"sheaf {distribution.version()}", f"commit {commit}"], done.stderr
    named = re.findall(r"`[^`]*~/sheaf/(share/[^ `)]+)", INSTALL.read_text())
    assert len(named) == 3
    assert [name for name in named if not (programs.parent / name).exists()] == []
    assert (programs.parent / "share" / "man" / "man1" / "sheaf.1").exists()
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
    check_upgrade(index, programs, home)


def check_upgrade(index: Path, programs: Path, home: Path) -> None:
    """Check that a later release, built from its sdist, takes over the store of this one."""
    (sdist,) = index.glob("*/*.tar.gz")
    later = index.parent / "later"
    shutil.unpack_archive(sdist, later, filter="data")
    (source,) = later.iterdir()
    configuration = (source / "pyproject.toml").read_text()
    version = f'version = "{distribution.version()}"'
    (source / "pyproject.toml").write_text(configuration.replace(version, 'version = "9.0"'))
    shutil.make_archive(str(later / "sheaf_archive-9.0"), "gztar", later, source.name)
    install(programs, "--upgrade", "--find-links", later, "sheaf-archive")
    assert run(programs / "sheaf", "--version", cwd=home).stdout.startswith("sheaf 9.0\n")
    before, after = (
        run(programs / "sheaf", command, "--json", "--config", "demo-store/sheaf.toml", cwd=home)
        for command in ("status", "publish")
    )
    assert (before.returncode, after.returncode) == (0, 0), before.stderr + after.stderr
    assert (
        json.loads(after.stdout)["records"] == json.loads(before.stdout)["snapshot"]["records"] > 40
    )


def check_files(wheel: Path) -> None:
    """Check that the wheel has all files of the packages, and no others."""
    assert wheel.name.startswith(f"{distribution.NAME.replace('-', '_')}-")
    data = wheel.name.partition("-py3")[0] + ".data/data/"
    names = {
        name.replace(data, "infra/")
        for name in zipfile.ZipFile(wheel).namelist()
        if ".dist-info/" not in name
    }
    wanted = {
        ("" if package == "sheaf_archive" else "sheaf_archive/") + path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.parent.name != "__pycache__" and path.name != ".gitattributes"
    }
    shared = (path for path in (ROOT / "infra" / "share").rglob("*") if path.is_file())
    assert names == wanted | {path.relative_to(ROOT).as_posix() for path in shared}
    own = {name.removeprefix("sheaf_archive/") for name in names}
    assert {"builder/py.typed", "functions/py.typed", "templates/sql/views.sql"} <= own
    assert "builder/commands/demo/files/library.warc.gz" in own


def check_metadata(wheel: Path) -> None:
    """Check what an index shows: licence, README, Python, and the extras that install.md has."""
    (name,) = (n for n in zipfile.ZipFile(wheel).namelist() if n.endswith("/METADATA"))
    fields = email.message_from_bytes(zipfile.ZipFile(wheel).read(name))
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["Requires-Python"] == ">=3.11"
    assert str(fields.get_payload()).strip() == (ROOT / "README.md").read_text().strip()
    rows = re.findall(r"^\| (`.+?) \|", INSTALL.read_text(), re.M)
    extras = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert extras == set(fields.get_all("Provides-Extra", [])) - {"dev"}


def test_a_release_names_the_commit_that_git_archive_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "builder/distribution.py export-subst" in (ROOT / ".gitattributes").read_text()
    monkeypatch.setattr(distribution, "_ARCHIVED", "0" * 40)
    assert describe_version().splitlines()[1] == f"commit {'0' * 40}"


def test_the_tools_of_a_release_build_as_the_project_says() -> None:
    """What `pip install .` builds with is what `make release` builds with."""
    (wanted,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    pins = (ROOT / "infra" / "requirements-release.txt").read_text()
    assert f"{wanted} " in pins
