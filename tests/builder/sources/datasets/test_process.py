"""The command as a process of its own: killed, interrupted, and held up by a platform."""

import io
import json
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builder.store.folder import FolderStore
from tests.builder.obi.test_ocfl import content
from tests.builder.sources.datasets.body import digest
from tests.builder.sources.datasets.command import Command
from tests.builder.sources.datasets.invenio import BODIES, Site, reach
from tests.builder.sources.datasets.platform import STRATEGIES
from tests.builder.sources.datasets.server import Exchange, Server, served, silent

pytestmark = pytest.mark.shared(2)

SHEAF = [sys.executable, "-m", "builder"]


@dataclass
class Here(Site):
    """The site, and the command in a folder beside it."""

    command: Command

    @property
    def folder(self) -> Path:
        return self.command.folder

    @property
    def store(self) -> FolderStore:
        return self.command.store

    @contextmanager
    def begun(self, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        """Give the process of a command, which is ended in any case."""
        process = subprocess.Popen(
            [*SHEAF, *arguments],
            cwd=self.folder,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def told(self, code: int, *arguments: str) -> dict[str, Any]:
        """Run a command that ends with this code, and return its document."""
        found: dict[str, Any] = json.loads(self.command(*arguments, code=code)[0] or "{}")
        return found

    def results(self, *urls: str) -> dict[str, str]:
        return {r["request"]["base_url"]: r["status"] for r in self.command.results(*urls)}

    def await_(self, true: Callable[[], object]) -> None:
        end = time.monotonic() + 60
        while not true():
            assert time.monotonic() < end
            time.sleep(0.02)


@pytest.fixture
def site(
    server: Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Here:
    command = Command(server, tmp_path, capsys, reach(server))
    command.configure()
    return Here(server, command)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_killed_in_the_midst_nothing_is_half_there_and_the_next_one_completes_it(
    site: Here, strategy: str
) -> None:
    site.command.configure(fileset__strategy=STRATEGIES[strategy])
    url = site.record("hives-1", n3=silent())
    with site.begun("fileset", url) as process:
        site.await_(lambda: site.server.asked(site.content("hives-1", "3.bin")))
        process.send_signal(signal.SIGKILL)
        process.wait()
    keys = list(site.store.keys(""))
    assert not [k for k in keys if k.endswith(("fileset.json", "bundle.zip", ".warc.gz"))]
    assert not [k for k in keys if k.startswith("intake/")]
    if keys:
        site.command("verify")
    site.record("hives-1")
    assert site.results(url) == {url: "success"}
    assert site.results(url) == {url: "success-existing"}
    site.command("publish")
    site.command("verify")
    out, _ = site.command("query", "--json", "SELECT * FROM files ORDER BY path")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["path"] for row in rows] == sorted(BODIES)
    for row in rows:
        assert row["sha256"] == digest("sha256", BODIES[row["path"]])
    if "bundle" in strategy:
        (key,) = {row["key"] for row in rows}
        data = site.store.read(key)
        with zipfile.ZipFile(io.BytesIO(data)) as bundle:
            assert {name: bundle.read(name) for name in bundle.namelist()} == BODIES
        for row in rows:  # one range each
            assert data[row["place"] :][: row["bytes"]] == BODIES[row["path"]]
    assert not list((site.folder / "store" / ".tmp").glob("filesets-*"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_dataset_is_restored_under_its_paths(site: Here, strategy: str) -> None:
    site.command.configure(fileset__strategy=STRATEGIES[strategy])
    bodies = {"a.csv": b"1,2\n", "data/b.csv": b"", "data/c.bin": b"c" * 300_000}
    url = site.record("hives-1", bodies)
    assert site.results(url, site.record("hives-2")) == {
        url: "success",
        site.url("hives-2"): "success",
    }
    site.command("publish")
    folder = site.folder / "restored"

    def restore(code: int = 0, name: str = "doi:10.5072/HIVES-1") -> dict[str, Any]:
        return site.told(code, "restore", "--json", name, str(folder))

    first = restore()
    assert (first["restored"], first["kept"], first["bytes"]) == (3, 0, 300_004)
    assert content(folder) == bodies
    (folder / "a.csv").unlink()
    (folder / "data" / "c.bin").write_bytes(b"mine")
    again = restore(1)
    assert (again["restored"], again["kept"], list(again["missing"])) == (1, 1, ["data/c.bin"])
    assert content(folder) == bodies | {"data/c.bin": b"mine"}
    (folder / "data" / "c.bin").unlink()
    assert restore(0, first["identifier"])["restored"] == 1
    assert site.told(2, "restore", "10.5072/other", str(folder)) == {}


def test_two_processes_fetch_a_dataset_once(site: Here) -> None:
    free = threading.Event()

    def hold(exchange: Exchange) -> None:
        free.wait(60)
        served(BODIES["3.bin"])(exchange)

    url = site.record("hives-1", n3=hold)
    with site.begun("fileset", "--json", url) as first:
        site.await_(lambda: site.server.asked(site.content("hives-1", "3.bin")))
        with site.begun("fileset", "--json", url) as second:
            api = f"{site.base}/api/records/hives-1"
            site.await_(lambda: len(site.server.asked(api)) > 1)
            time.sleep(0.5)
            free.set()
            found = [process.communicate(timeout=60)[0] for process in (first, second)]
    assert [json.loads(out)["status"] for out in found] == ["success", "success-existing"]
    for path in BODIES:
        assert len(site.server.asked(site.content("hives-1", path))) == 1


def test_interrupted_what_is_done_is_kept_and_the_rest_goes_on_later(site: Here) -> None:
    done, held = site.record("hives-1"), site.record("hives-2", n3=silent())
    with site.begun("fileset", "--json", done, held) as process:
        first = json.loads(process.stdout.readline())
        assert (first["request"]["base_url"], first["status"]) == (done, "success")
        site.await_(lambda: site.server.asked(site.content("hives-2", "3.bin")))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert [json.loads(line)["status"] for line in out.splitlines()] == ["cancelled"]
    assert err.splitlines()[-1] == "sheaf: interrupted; run the command again to finish its work"
    assert [k for k in site.store.keys("intake/") if k.endswith("run.json")]
    assert site.results(done) == {done: "success-existing"}
    site.record("hives-2")
    site.server.forget()
    assert site.results(held) == {held: "success"}
    assert not site.server.asked(site.content("hives-2", "0.bin"))


def test_requests_that_come_one_by_one_are_answered_one_by_one(site: Here) -> None:
    url = site.record("hives-1")
    with subprocess.Popen(
        [*SHEAF, "fileset"],
        cwd=site.folder,
        text=True,
        bufsize=1,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        for status in ("success", "success-existing", "success-existing"):
            process.stdin.write(json.dumps({"base_url": url}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["status"] == status
        process.stdin.close()
        assert process.wait(60) == 0
