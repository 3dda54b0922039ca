"""Makes a small store with any release of Sheaf, and notes what that release answers.

    python -m tests.upgrade.make_store tests/upgrade/stores/0.2.0.tar.xz --sheaf /venv/bin/sheaf

`--sheaf` is the command of that release. The store is the one of its `sheaf demo` (captures,
revisits, templates with full texts, a dataset, two publishes), and what comes here besides: more
captures, damage, harvested records, a tombstone, a publish that was killed, and runs that are not
published. The archive has the store, its configuration and the answers.
"""

import argparse
import gzip
import io
import os
import shlex
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.upgrade import answers

_SETTINGS = """\
[repository]
name = "An archive of an earlier release"
admin_emails = ["demo@example.org"]
namespace = "demo.example.org"
base_url = "https://archive.example.org/oai"

[store]
uri = "store"

[pages]
records = 20
identifiers = 20
sets = 20

[publish]
lead = 1

[serve]
clock_allowance = 1
"""
_KILLER = """\
import os, signal, sys
def end(event, arguments):
    if event in ("os.rename", "os.link") and str(arguments[1]).endswith("/current.json"):
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(end)
"""
_PAGES = {
    "http://192.0.2.7/": b"<title>An address of version 4</title>",
    "http://[2001:db8::7]/": b"<title>An address of version 6</title>",
    "http://late.example.net/": "<title>Žlutý kůň</title>".encode(),
    "http://late.example.net/caf\u00e9?a=1": b"<title>Coffee</title>",
    "http://gone.example.net/": b"<title>To be withdrawn</title>",
}
_PENDING = {
    "http://pending.example.net/": b"<title>Not published yet</title>",
    "http://late.example.net/": "<title>Žlutý kůň</title>".encode(),
}
_PAPER = """
Template-Type: ReDIF-Paper 1.0
Title: Written After the Last Publish
Author-Name: Ida Wax
Handle: RePEc:lip:wpaper:2026-99
"""


def make(command: Sequence[str], target: Path) -> None:
    """Make the store in a temporary folder, and write the archive."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run(command, folder, "demo", "--once", "--folder", "demo", "--port", "0")
        home = folder / "demo"
        (home / "sheaf.toml").write_text(_SETTINGS)

        def sheaf(verb: str, *arguments: str, killed: bool = False) -> None:
            _run(command, home, verb, "--config", "sheaf.toml", *arguments, killed=killed)

        _write_warc(home / "late.warc.gz", _PAGES, "2020-02-02T02:02:02Z", revisit=True)
        sheaf("ingest", "late.warc.gz", "harvest", "--collection", "late")
        sheaf("publish")
        sheaf("withdraw", "--url-prefix", "http://gone.example.net/", "--reason", "a request")
        _write_warc(home / "pending.warc.gz", _PENDING, "2021-03-03T03:03:03Z")
        sheaf("ingest", "pending.warc.gz", "--collection", "pending")
        sheaf("publish", killed=True)
        with (home / "RePEc/lip/wpaper/05.rdf").open("a") as paper:
            paper.write(_PAPER)
        sheaf("ingest", "RePEc")
        sheaf("fileset", "http://127.0.0.1:9/records/none")  # a result that is a failure
        time.sleep(3)  # all is in effect then, whatever the clock's allowance
        with _serve(command, home) as ask:
            rows = answers.collect(ask)
        (home / "answers.jsonl").write_bytes(answers.write(rows))
        _pack(home, target)


def _run(command: Sequence[str], folder: Path, *arguments: str, killed: bool = False) -> None:
    environment = dict(os.environ)
    if killed:
        hook = folder / "killer"
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(_KILLER)
        paths = (str(hook), environment.get("PYTHONPATH", ""))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    code = subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, stdout=sys.stderr, check=False
    ).returncode
    assert code == (-signal.SIGKILL if killed else 0), (arguments, code)


def _write_warc(path: Path, pages: dict[str, bytes], date: str, *, revisit: bool = False) -> None:
    with path.open("wb") as out:
        writer = WARCWriter(out, gzip=True)
        http = StatusAndHeaders(
            "200 OK", [("Content-Type", "text/html; charset=utf-8")], "HTTP/1.1"
        )
        for url, body in pages.items():
            writer.write_record(
                writer.create_warc_record(
                    url,
                    "response",
                    io.BytesIO(body),
                    http_headers=http,
                    warc_headers_dict={"WARC-Date": date},
                )
            )
        if revisit:
            url, body = next(iter(pages.items()))
            record = writer.create_warc_record(url, "response", io.BytesIO(body), http_headers=http)
            digest = record.rec_headers.get_header("WARC-Payload-Digest")
            writer.write_record(
                writer.create_revisit_record(
                    url,
                    digest,
                    url,
                    date,
                    http_headers=http,
                    warc_headers_dict={"WARC-Date": "2020-03-02T02:02:02Z"},
                )
            )
        out.write(gzip.compress(b"WARC/1.0\r\nWARC-Type: response\r\n")[:-12])  # is cut off


@contextmanager
def _serve(command: Sequence[str], home: Path) -> Iterator[answers.Ask]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}/oai?"
    process = subprocess.Popen(
        [*command, "serve", "--config", "sheaf.toml", "--port", str(port)],
        cwd=home,
        stdout=subprocess.DEVNULL,
    )

    def ask(query: str) -> bytes:
        with urlopen(base + query, timeout=60) as answer:
            data: bytes = answer.read()
        return data

    try:
        for _ in range(100):
            try:
                ask("verb=Identify")
                break
            except URLError:
                time.sleep(0.1)
        yield ask
    finally:
        process.terminate()
        process.wait()


def _pack(home: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)

    def keep(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return None if "/.tmp" in member.name else member

    with tarfile.open(target, "w:xz", preset=9) as archive:
        for name in ("sheaf.toml", "answers.jsonl", "store"):
            archive.add(home / name, name, filter=keep)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--sheaf", required=True, help="the command of the release")
    given = parser.parse_args()
    make(shlex.split(given.sheaf), given.target.resolve())
