"""The commands of the tutorial and of the page on backups run as they stand, one after another."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import warc
from tests.e2e.test_server import SECONDS
from tests.listening import free_port

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "builder" / "commands" / "demo" / "files" / "library.warc.gz"
PROGRAMS = {
    "sheaf": f'exec env PYTHONPATH={ROOT} {sys.executable} -m sheaf_archive "$@"',
    "pip": 'echo "pip $*"',  # duckdb-cli, in whose place is Python's module
    "duckdb": f"""exec {sys.executable} -c '
import sys, duckdb
connection = duckdb.connect()
connection.execute(open(sys.argv[2]).read())
print(connection.execute(sys.argv[4]).fetchall())' "$@\"""",
}
SERVER = """\
sheaf serve --port {port} 2>/dev/null & trap "kill $!" EXIT
until curl -s 127.0.0.1:{port}/health >/dev/null; do sleep 0.1; done
"""


def commands(page: str) -> str:
    """Return the blocks of a page that are commands, and not what these print."""
    blocks = re.findall(r"^```\n(.*?)^```$", (ROOT / "docs" / page).read_text("utf-8"), re.M | re.S)
    first = r"(sheaf|curl|mkdir|cd|pip|rclone|\.) "
    return "".join(block for block in blocks if re.match(first, block))


def run(script: str, folder: Path) -> str:
    """Run the commands in `folder`, which is also home; return what they print."""
    (folder / "sheaf" / "bin").mkdir(parents=True)
    (folder / "sheaf" / "bin" / "activate").touch()
    for name, line in PROGRAMS.items():
        program = folder / "sheaf" / "bin" / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    paths = {"HOME": str(folder), "PATH": f"{folder}/sheaf/bin:{os.environ['PATH']}"}
    for port in re.findall(r"--port (\d+)", script):
        paths["SHEAF_REPOSITORY_BASE_URL"] = f"http://127.0.0.1:{port}/oai"
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        timeout=4 * SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_tutorial(tmp_path: Path) -> None:
    """With an archive that is here, in place of the one that it downloads."""
    port = free_port()
    script = re.sub(
        "^curl -LO .+$", f"cp {SAMPLE} iana.warc.gz", commands("guide/tutorial.md"), flags=re.M
    )
    script = re.sub(r"^sheaf serve\n", SERVER.format(port=port), script, flags=re.M)
    script = script.replace("www.iana.org/about", "www.example.org/akce").replace("8080", str(port))
    printed = run(script, tmp_path)
    for text in (
        "52 captures from 1 file, ready to publish",
        "<dc:title>",
        "complete: 54 records (54 new, 0 changed) in 1 page, run 1",
        "url_host_name,content_mime_type,captures",
        "('http://www.example.org/', 'Městská knihovna Lipová')",
        "4 of them deleted) in 1 page, run 2",
    ):
        assert text in printed


def test_a_backup_is_brought_back(tmp_path: Path) -> None:
    """By `sheaf copy`, and where it is installed by rclone; commands that fail end the script."""
    pages = {f"http://a.cz/{n}": f"<title>{n}</title>".encode() for n in range(3)}
    before = f"""\
sheaf init --name "An archive" --email a@b.cz --namespace b.cz
sheaf ingest {warc(tmp_path / "pages.warc.gz", pages)}
sheaf publish
mkdir {tmp_path}/backup
"""
    steps = commands("operations/backup.md").replace("sheaf serve\n", "")
    steps = re.sub("/(backup|elsewhere)", rf"{tmp_path}/\1", steps)
    if shutil.which("rclone") is None:
        steps = re.sub(r"^(rclone|sheaf verify --store \S+elsewhere).*\n", "", steps, flags=re.M)
    printed = run(before + steps, tmp_path)
    assert "no differences found" in printed
    assert "damaged" not in printed.replace("0 damaged", "")
    assert (tmp_path / "restored" / "sheaf.toml").exists()
