"""Harvesters in other languages, and older ones, against what `sheaf query` says.

Each is a program of its own (tests/e2e/clients) that reads selections and prints what it
harvested. One that is not installed, and cannot be fetched for want of a network, is skipped.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Home, make_home

PROGRAMS = Path(__file__).parent / "clients"
SECONDS = 50
SETS = 5
"""Sets of a page."""
Selection = dict[str, str]


@dataclass(frozen=True)
class Row:
    """A record as the newest snapshot has it."""

    identifier: str
    deleted: bool
    datestamp: str
    sets: tuple[str, ...]
    title: str | None


@dataclass(frozen=True)
class Archive:
    """A store, its records and sets, and the base URL under which it is served."""

    url: str
    rows: tuple[Row, ...]
    sets: tuple[str, ...]

    def selections(self) -> list[Selection]:
        """Everything, then each way to select, and one that nothing fits."""
        first, middle, last = self.stamps
        return [
            {},
            {"set": "collection:a"},
            {"set": "domain:cz:h1"},
            {"from": middle},
            {"until": middle},
            {"from": middle, "until": middle, "set": "mime"},
            {"set": "domain:cz", "from": last},
            {"from": first, "until": last},
            {"set": "collection:b", "until": first},
        ]

    @property
    def stamps(self) -> list[str]:
        return sorted({row.datestamp for row in self.rows})

    def expected(self, selection: Selection) -> list[list[Any]]:
        return sorted(
            [row.identifier, row.deleted, [*row.sets], None if row.deleted else [row.title]]
            for row in self.rows
            if selection.get("from", "") <= row.datestamp <= selection.get("until", "9")
            and (
                "set" not in selection
                or any(f"{spec}:".startswith(selection["set"] + ":") for spec in row.sets)
            )
        )


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Forty captures; then ten of them changed and twenty more; then three withdrawn."""
    home, crawls = make_home(tmp_path_factory.mktemp("home")), tmp_path_factory.mktemp("crawls")
    pages = [(f"http://www.h{n % 5}.cz/{n}", f"<title>ž {n} &amp; co.</title>") for n in range(60)]
    for name, some in (("a", pages[:40]), ("b", pages[30:])):
        bodies = {url: text.encode() for url, text in some}
        home.publish_pages(crawls / f"{name}.warc.gz", bodies, "--collection", name)
    gone = home("withdraw", "--url-prefix", "http://www.h4.cz/4", "--reason", "gone")
    assert gone.code == 0, gone.err
    sql = (
        "SELECT r.identifier, r.deleted, r.datestamp, r.sets, coalesce(r.title, c.name) AS title "
        "FROM records r LEFT JOIN collections c USING (identifier)"
    )
    rows = tuple(row(json.loads(line)) for line in lines(home, sql))
    sets = tuple(
        json.loads(line)["set_spec"]
        for line in lines(home, "SELECT set_spec FROM sets ORDER BY set_spec")
    )
    # No list may leave a page of one record or set: the client of npm cannot read that.
    with home.served(SHEAF_PAGES_RECORDS="12", SHEAF_PAGES_SETS=str(SETS)) as url:
        yield Archive(url, rows, sets)


def lines(home: Home, sql: str) -> list[str]:
    result = home("query", "--json", sql)
    assert result.code == 0, result.err
    return result.out.splitlines()


def row(values: dict[str, Any]) -> Row:
    stamp = values["datestamp"].removesuffix("Z").replace(" ", "T")[:19] + "Z"
    return Row(
        values["identifier"], values["deleted"], stamp, tuple(values["sets"]), values["title"]
    )


def carried_out(command: list[object], what: str, **options: Any) -> None:
    """Install something, or skip the test with the reason why that cannot be."""
    try:
        result = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, timeout=SECONDS, **options
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{what} cannot be installed: {error}")
    if result.returncode:
        last = (result.stderr.strip() or "no reason given").splitlines()[-1]
        pytest.skip(f"{what} cannot be installed: {last}")


def harvested(
    archive: Archive, *command: object, sets: Sequence[str] | None = None, **environment: str
) -> None:
    """Run a client's program; compare what it says with what the snapshot has, or those `sets`."""
    selections = archive.selections()
    result = subprocess.run(
        [*map(str, command)],
        input=json.dumps(selections),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    for selection, records in zip(selections, found["lists"], strict=True):
        assert sorted(records) == archive.expected(selection), selection
    assert sorted(found["sets"]) == sorted(sets if sets is not None else archive.sets)


def test_the_archive_has_what_is_to_be_harvested(archive: Archive) -> None:
    sizes = [len(archive.expected(selection)) for selection in archive.selections()]
    assert sizes == [62, 41, 12, 33, 57, 28, 3, 62, 0]
    assert sum(r.deleted for r in archive.rows) == 3


def test_pypi_oaipmh(archive: Archive) -> None:
    pytest.importorskip("oaipmh", reason="oaipmh of PyPI is not installed")
    harvested(archive, sys.executable, PROGRAMS / "with_pyoai.py", archive.url)


@pytest.mark.thorough
def test_npm_oai_pmh(archive: Archive, tmp_path: Path) -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    carried_out(
        [
            npm,
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefer-offline",
            "--no-package-lock",
            "oai-pmh@2.0.3",
        ],
        "oai-pmh of npm",
        cwd=tmp_path,
    )
    harvested(
        archive,
        node,
        PROGRAMS / "with_npm.js",
        archive.url,
        NODE_PATH=str(tmp_path / "node_modules"),
    )


@pytest.mark.parametrize(
    ("module", "program", "package"),
    [
        ("HTTP::OAI", "with_http_oai.pl", "libhttp-oai-perl"),
        ("Catmandu::Importer::OAI", "with_catmandu.pl", "libcatmandu-oai-perl"),
    ],
)
def test_perl(archive: Archive, module: str, program: str, package: str) -> None:
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("perl is not installed")
    if subprocess.run([perl, f"-M{module}", "-e", "1"], capture_output=True).returncode:
        pytest.skip(f"{module} is not installed: `make clients` or apt-get install {package}")
    # Catmandu asks for the first page of sets only, whatever its token says.
    sets = archive.sets[:SETS] if "Catmandu" in module else None
    harvested(archive, perl, PROGRAMS / program, archive.url, sets=sets)
