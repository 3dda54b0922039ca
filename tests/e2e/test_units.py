"""The units of systemd: they are right, and what they start runs as they say."""

import os
import shlex
import shutil
import socket
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest

from tests.e2e.conftest import make_home

UNITS = Path(__file__).parents[2] / "infra" / "systemd"
PROGRAMS = Path(sys.executable).parent
SECONDS = 60


def install(folder: Path) -> Path:
    """Copy the units, with the places of the tests' own programs and home; return their folder."""
    home = make_home(folder / "home").folder
    units = folder / "units"
    units.mkdir()
    for path in UNITS.iterdir():
        text = path.read_text().replace("/opt/sheaf/bin", str(PROGRAMS))
        (units / path.name).write_text(text.replace("/srv/sheaf", str(home)))
    return units


def start(unit: Path, *more: str) -> "subprocess.Popen[str]":
    """Start what a unit starts, in its folder."""
    parser = RawConfigParser(strict=False)
    parser.read(unit)
    section = parser["Service"]
    return subprocess.Popen(
        [*shlex.split(section["ExecStart"]), *more],
        cwd=section["WorkingDirectory"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: text for name, text in os.environ.items() if not name.startswith("SHEAF_")},
    )


@pytest.mark.skipif(
    not (PROGRAMS / "sheaf").exists(), reason="sheaf is not installed beside this Python"
)
def test_units_run_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    units = install(tmp_path)
    if shutil.which("systemd-analyze"):
        names = sorted(units.iterdir())
        checked = subprocess.run(
            ["systemd-analyze", "verify", *map(str, names)], capture_output=True, text=True
        )
        assert (checked.returncode, checked.stderr) == (0, "")
    records = tmp_path / "home" / "own.csv"
    records.write_text("identifier,title\na,Own record\n")
    with (tmp_path / "home" / "sheaf.toml").open("a") as config:
        config.write('\n[[records]]\nname = "own"\nfiles = "own.csv"\n')
        config.write('identifier = "identifier"\nfields = { title = "title" }\n')
    with start(units / "sheaf-update.service") as update:
        out, err = update.communicate(timeout=SECONDS)
    assert update.returncode == 0, err
    assert "1 record in 0 sets" in out
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(SECONDS)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        assert "Type=notify" in (units / "sheaf.service").read_text()
        with start(units / "sheaf.service", "--port", "0") as serve:
            try:
                assert manager.recv(999).startswith(b"READY=1")  # it listens
                assert serve.stdout is not None
                assert "serving" in serve.stdout.readline()
            finally:
                serve.terminate()
    assert serve.returncode == 0
