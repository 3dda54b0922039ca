"""Whole runs of the command line, and a server over what they publish."""

import argparse
import io
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from builder.commands.cli import main
from builder.store.context import Context
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from tests.clock import CLOCK, make_context
from tests.serving import serving

Surround = Callable[[argparse.Namespace], Context]
SHARED = Path(__file__).parents[2].parent / "shared" / "data"
ARCHIVES = SHARED / "webarchive"


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def sheaf(*arguments: object, surround: Surround = make_context) -> Result:
    """Carry out the command in this process, by the clock of the tests unless told otherwise."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main([str(argument) for argument in arguments], surround)
        except SystemExit as exit_:
            code = int(exit_.code or 0)
    return Result(code, out.getvalue(), err.getvalue())


def warc(path: Path, pages: dict[str, bytes], date: str = "2007-11-05T12:00:00Z") -> Path:
    """Write a WARC with a response for each page."""
    with path.open("wb") as out:
        writer = WARCWriter(out, gzip=True)
        for url, body in pages.items():
            headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], "HTTP/1.1")
            record = writer.create_warc_record(
                url,
                "response",
                io.BytesIO(body),
                http_headers=headers,
                warc_headers_dict={"WARC-Date": date},
            )
            writer.write_record(record)
    return path


@dataclass
class Home:
    """A folder with a configuration and a store, as a person has it."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "sheaf.toml"

    def __call__(self, command: str, *arguments: object) -> Result:
        return sheaf(command, "--config", self.config, *arguments)

    def publish_pages(self, path: Path, pages: dict[str, bytes], *more: object) -> Path:
        """Ingest a WARC of these pages, with more arguments, and publish; return the WARC."""
        ingested = self("ingest", "--jobs", "1", warc(path, pages), *more)
        assert ingested.code == 0, ingested.err
        published = self("publish")
        assert published.code == 0, published.err
        return path

    @contextmanager
    def served(self, **settings: str) -> Iterator[str]:
        """Serve the store; give the base URL of OAI-PMH."""
        values = configuration.parse(self.config.read_text(), settings).relative_to(self.folder)
        repository = DuckRepository(FolderStore(self.folder / "store"))
        application = Application(repository, values, CLOCK.now)
        try:
            with serving(application.answer) as server:
                yield f"{server.url}/oai"
        finally:
            repository.close()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path / "home")


@pytest.fixture
def published(original: Home, tmp_path: Path) -> Home:
    """Give a copy of what a module calls its `original`, for one test alone."""
    return Home(Path(shutil.copytree(original.folder, tmp_path / "home")))


@pytest.fixture(scope="module")
def lasting_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home"))


def make_home(folder: Path) -> Home:
    result = sheaf(
        "init", folder, "--name", "An archive", "--email", "a@b.cz", "--namespace", "b.cz"
    )
    assert result.code == 0, result.err
    config = folder / "sheaf.toml"
    # Nobody waits for it, so that it may be long enough for the busiest machine: one that comes too
    # late leaves a snapshot more.
    # Tables cost each publish a sixth of a second, and have tests of their own.
    text = config.read_text().replace("# lead = 2", "lead = 5")
    config.write_text(text.replace("# tables = true", "tables = false"))
    return Home(folder)
