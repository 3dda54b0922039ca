"""`sheaf gather`, in processes of its own, over what `sheaf ingest` took in."""

import json
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builder.obi import log
from builder.obi.content import Version
from builder.obi.history import standing
from builder.obi.run import history
from builder.store.folder import FolderStore
from functions.config import configuration, http
from tests.builder.http import site as web
from tests.builder.http.site import Site
from tests.builder.sources.fulltexts.conftest import until
from tests.builder.sources.redif import trees
from tests.clock import CLOCK
from tests.e2e.conftest import Result, sheaf

pytestmark = pytest.mark.shared(3)

MAIL = "gather@archive.example.org"


def paper(number: int, *urls: str) -> bytes:
    files = "".join(f"File-URL: {url}\nFile-Format: application/pdf\n" for url in urls)
    return (
        f"Template-Type: ReDIF-Paper 1.0\nAuthor-Name: Lebowski, Jeffrey\nTitle: On Rugs {number}\n"
        f"{files}Handle: RePEc:aaa:wpaper:{number}\n"
    ).encode()


class Archive:
    """A folder with a configuration, a tree of ReDIF and a store."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.folder = folder
        self.config = folder / "sheaf.toml"
        self.tree = folder / "RePEc"
        self.settings: dict[str, Any] = {
            "repository.name": "Rugs",
            "repository.admin_emails": [MAIL],
            "repository.namespace": "rugs.example.org",
            "repository.base_url": "https://rugs.example.org/oai",
            "http.ports": [site.port, 80],
            "http.allow_networks": ["127.0.0.0/8"],
            "http.host_seconds": 0,
            "http.backoff_seconds": 0,
        }
        self.set()

    def rule(self, *rules: dict[str, Any]) -> None:
        self.settings["gather.rules"] = [*rules]
        self.set()

    def set(self, **given: Any) -> None:
        """Set keys of http, or of gather where http has no such key."""
        for key, value in given.items():
            section = "http" if key in http.DEFAULTS["gather"] else "gather"
            self.settings[f"{section}.{key}"] = value
        self.config.write_text(configuration.template(self.settings))

    @property
    def store(self) -> FolderStore:
        return FolderStore(self.folder / "store")

    def ingest(self, *papers: bytes) -> None:
        self.write(*papers)
        done = self("ingest", self.tree)
        assert done.code == 0, done.err

    def replay(self, day: str, *papers: bytes) -> None:
        """Ingest a tarball as of a day."""
        self.write(*papers)
        path = self.folder / f"RePEc_{day}.tar.gz"
        with tarfile.open(path, "w:gz") as packed:
            packed.add(self.tree, "RePEc")
        done = self("ingest", "-f", path, "--accept-loss")
        assert done.code == 0, done.err

    def write(self, *papers: bytes) -> None:
        trees.tree(self.tree, {**trees.archive(), "aaa/wpaper/1.rdf": b"\n".join(papers)})

    def start(self, command: str, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "builder", command, "--config", str(self.config), *arguments],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __call__(self, command: str, *arguments: object) -> Result:
        return sheaf(command, "--config", self.config, *arguments)

    def gather(self, *arguments: object) -> dict[str, Any]:
        """Gather, and return the account."""
        done = self("gather", "--json", *arguments)
        assert done.code == 0, done.err
        return dict(done.json)

    def versions(self) -> list[Version]:
        return [
            row
            for run in history(self.store)
            for row in log.read_rows(self.store, run)
            if isinstance(row, Version) and row.kind == "fobi"
        ]


@pytest.fixture
def archive(site: Site, tmp_path: Path) -> Archive:
    return Archive(tmp_path, site)


def test_from_templates_to_files(archive: Archive, site: Site) -> None:
    site.pages |= {
        "/1.pdf": web.text(b"%PDF 1"),
        "/2.pdf": web.redirect("/two"),
        "/two": web.text(b"%PDF 2"),
    }
    archive.ingest(paper(1, site.url("/1.pdf")), paper(2, site.url("/2.pdf"), site.url("/3.pdf")))
    told = archive.gather()
    assert told["appearances"] == 2
    assert told["failures"] == {"not-found": 1}
    assert (told["redirects"], told["left"]) == (1, 0)
    assert {row.id: archive.store.read(row.key) for row in archive.versions()} == {
        site.url("/1.pdf"): b"%PDF 1",
        site.url("/two"): b"%PDF 2",
    }
    agent = site.asked("/1.pdf")[0].headers["user-agent"]
    assert agent.startswith("Sheaf/")
    assert f"+https://rugs.example.org/oai; mailto:{MAIL}" in agent
    again = archive("gather")
    put_off = "1 file failed before and is postponed: --again tries them now"
    assert (again.code, again.out) == (0, f"nothing is due\n{put_off}\n")
    assert archive.gather()["put_off"] == 1
    assert told["put_off"] == 0  # it failed in that gathering, which tells of it
    strict = archive("gather", "--again", "--strict")
    assert strict.code == 1
    assert "1 not-found: the server has no such file (404)" in strict.out


def test_full_texts_of_replayed_history(archive: Archive, site: Site) -> None:
    """Also of a version that was replaced, and of a template that was removed later."""
    names = ("/1.pdf", "/1v2.pdf", "/2.pdf")
    site.pages |= {name: web.text(f"%PDF {name}") for name in names}
    first, second, other = map(site.url, names)
    archive.replay("2020-01-01", paper(1, first), paper(2, other))
    archive.replay("2021-01-01", paper(1, second))
    assert archive.gather()["appearances"] == 3
    assert {row.id for row in archive.versions()} == {first, second, other}


def test_what_the_configuration_refused_is_due_once_it_allows_it(
    archive: Archive, site: Site
) -> None:
    site.pages |= {"/1": web.text(b"1"), "/2": web.redirect("/1"), "/robots.txt": web.status(404)}
    archive.set(ports=[80], allow_networks=[])
    archive.ingest(paper(1, site.url("/1"), site.url("/2"), "http://10.0.0.1/3"))

    def came() -> tuple[dict[str, int], int, int]:
        told = archive.gather()
        return told["failures"], told["appearances"], told["put_off"]

    assert came() == ({"port-refused": 2, "address-refused": 1}, 0, 0)
    assert site.requests == []
    assert came() == ({}, 0, 3)
    archive.set(ports=[80, site.port])
    assert came() == ({"address-refused": 2}, 0, 1)
    assert came() == ({}, 0, 3)
    archive.set(allow_networks=["127.0.0.0/8"])
    assert came() == ({}, 1, 1)


def test_what_robots_or_the_size_forbade_is_due_once_it_is_allowed(
    archive: Archive, site: Site
) -> None:
    site.pages |= {
        "/robots.txt": web.text(b"User-agent: *\nDisallow: /no"),
        "/no": web.text(b"no"),
        "/large": web.text(b"l" * 5000),
    }
    archive.set(max_bytes=4999)
    archive.ingest(paper(1, site.url("/no"), site.url("/large")))
    told = archive.gather()
    assert told["failures"] == {"robots-disallowed": 1, "too-large": 1}
    assert archive.gather()["put_off"] == 2
    archive.set(max_bytes=5000)
    assert archive.gather()["appearances"] == 1
    archive.set(robots=False)
    told = archive.gather()
    assert (told["appearances"], told["put_off"]) == (1, 0)


def test_a_choice_of_nothing_is_a_fault(archive: Archive, site: Site) -> None:
    site.pages["/2"] = web.text(b"2")
    archive.ingest(paper(1), paper(2, site.url("/2")))
    assert archive("gather").code == 0
    for only, code in (
        ("RePEc:nosuch", 2),
        ("RePEc:aaa:wpaper:12", 2),
        ("http://nosuch.example.org/*", 2),
        ("http://example.org/\x1b", 2),
        ("RePEc:AAA", 0),
        ("RePEc:aaa:wpaper", 0),
        ("RePEc:aaa:wpaper:1", 0),  # it has no files, but it is there
        ("http://127.0.0.1*", 0),
    ):
        done = archive("gather", "--only", only)
        assert done.code == code, (only, done.err)
        if code:
            shown = only.replace("\x1b", "\\x1b")
            assert done.err == f"sheaf: --only {shown}: no template or URL matches\n"
        else:
            assert done.out == "nothing is due\n", only


def test_faults_of_the_user(archive: Archive, site: Site) -> None:
    def refused(*arguments: str) -> str:
        done = archive("gather", *arguments)
        assert (done.code, done.err.count("\n")) == (2, 1)
        return done.err

    assert "has no templates" in refused()
    archive.ingest()
    assert archive("gather").out == "nothing is due\n"
    archive.ingest(paper(1, site.url("/1.pdf")))
    assert "--limit 0: expected a number from 1" in refused("--limit", "0")
    assert "--only aaa: expected RePEc:aaa" in refused("--only", "aaa")
    del archive.settings["repository.admin_emails"]
    archive.set()
    assert "repository.admin_emails is still admin@example.org" in refused()
    assert site.requests == []


class Gate:
    """Answers some files at once; the others once it is opened."""

    def __init__(self, site: Site, fast: int, slow: int) -> None:
        self.open = threading.Event()
        self.asked = threading.Event()
        self.urls = [site.url(f"/{n}") for n in range(fast + slow)]
        for n in range(fast + slow):
            site.pages[f"/{n}"] = web.text(f"{n}") if n < fast else self.slow

    def slow(self, handler: web.BaseHTTPRequestHandler) -> None:
        self.asked.set()
        self.open.wait(120)
        web.text("slow")(handler)


@pytest.fixture
def gate(site: Site) -> Iterator[Gate]:
    gate = Gate(site, 5, 3)
    yield gate
    gate.open.set()


def begun(archive: Archive, gate: Gate) -> "subprocess.Popen[str]":
    """Return a gathering that has all files but the slow ones."""
    archive.ingest(paper(1, *gate.urls))
    process = archive.start("gather")
    assert gate.asked.wait(60)
    until(lambda: sum(k[-4:-1] == "%2F" for k in archive.store.keys("obi/")) == 5)
    return process


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_keeps_what_came(
    archive: Archive, site: Site, gate: Gate, number: signal.Signals, code: int
) -> None:
    process = begun(archive, gate)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "5 new files" in err
    assert "Traceback" not in err
    assert len(archive.versions()) == 5
    gate.open.set()
    site.requests.clear()
    told = archive.gather()
    assert told["appearances"] == 3
    assert not {"/0", "/1", "/2", "/3", "/4"} & set(site.paths())


def test_a_killed_one_is_gone_on_with(archive: Archive, site: Site, gate: Gate) -> None:
    process = begun(archive, gate)
    process.kill()
    process.communicate()
    assert archive.versions() == []
    gate.open.set()
    done = archive("gather", "--json")
    assert done.code == 0, done.err
    assert "continuing the interrupted run" in done.err
    assert json.loads(done.out)["appearances"] == 8
    assert len(archive.versions()) == 8
    assert all(len(site.asked(f"/{n}")) == 1 for n in range(5))
    assert len(standing(archive.store)) == len(history(archive.store)) == 2
    assert not list((archive.folder / "store" / ".tmp").glob("gather-*"))


@pytest.mark.parametrize(("days", "asked"), [(0, 1), (2, 2)])
def test_what_an_abandoned_run_had_is_not_requested_again(
    archive: Archive, site: Site, gate: Gate, days: int, asked: int
) -> None:
    """Unless it was had so long ago that it may be otherwise now."""
    process = begun(archive, gate)
    time.sleep(0.5)
    process.kill()
    process.communicate()
    gate.open.set()
    *_, tist = standing(archive.store)
    assert archive("obi", "--abandon", tist).code == 0
    with CLOCK.real():
        CLOCK.sleep(days * 86_400)
        assert archive.gather()["appearances"] == 8
    assert all(len(site.asked(f"/{n}")) == asked for n in range(5))
    for row in archive.versions():
        assert archive.store.read(row.key) in {b"0", b"1", b"2", b"3", b"4", b"slow"}
    assert not list((archive.folder / "store" / ".tmp").glob("gather-*"))


def test_one_process_at_a_time(archive: Archive, gate: Gate) -> None:
    process = begun(archive, gate)
    try:
        second = archive("gather")
        assert second.code == 2
        assert "another process is gathering for" in second.err
        assert second.err.count("\n") == 1
    finally:
        gate.open.set()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_host_that_wants_to_be_left_alone(archive: Archive, site: Site) -> None:
    """Its files stay due, and others are fetched meanwhile."""
    with web.serving("127.0.0.2") as other:
        archive.set(ports=[site.port, other.port])
        for n in range(4):
            site.pages[f"/{n}"] = web.status(429, Retry_After="7200")
            other.pages[f"/{n}"] = web.text(f"{n}")
        urls = [site.url(f"/{n}") for n in range(4)]
        archive.ingest(paper(1, *urls, *(other.url(f"/{n}", "127.0.0.2") for n in range(4))))
        told = archive.gather()
        assert (told["appearances"], told["left"], told["failures"]) == (4, 4, {})
        assert len(site.paths()) == 2  # robots.txt, and one file


def test_a_host_that_is_not_there_is_not_asked_for_each_file(archive: Archive, site: Site) -> None:
    urls = [f"http://no-such-host.invalid/{n}" for n in range(30)]
    archive.ingest(paper(1, *urls))
    told = archive.gather()
    assert told["failures"] == {"dns": 30}
